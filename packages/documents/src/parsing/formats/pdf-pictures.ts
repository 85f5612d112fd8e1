import { getResolvedPDFJS } from 'unpdf'
import type { ByteSource } from '../byte-source.ts'
import { openPdf, reasonOf } from './pdf.ts'
import type { PdfDocument, PdfJs, PdfPage } from './pdf.ts'

/** Smaller ones are lines, stamps and logos. */
const SIDE_MIN = 50
const PIXELS_MIN = 20_000
/** A page of A3 in 600 dpi has 70 million. */
const PIXELS_MAX = 80_000_000
const PICTURES_PER_PAGE_MAX = 20

/** As pdf.js gives it: one bit, three bytes or four bytes for each pixel. */
interface Picture {
  readonly width: number
  readonly height: number
  readonly data: Uint8Array | Uint8ClampedArray
}

/** The pictures on the first pages, each as a file that every program reads (PNM). */
export async function* picturesOf(source: ByteSource, pagesMax: number): AsyncGenerator<Uint8Array> {
  const pdfjs = await getResolvedPDFJS()
  const task = openPdf(pdfjs, source)
  try {
    const document = await task.promise
    for (let number = 1; number <= Math.min(document.numPages, pagesMax); number += 1) {
      for await (const picture of onPage(pdfjs, document, number)) yield fileOf(picture)
    }
  } catch (error) {
    throw reasonOf(error)
  } finally {
    await task.destroy()
  }
}

async function* onPage(pdfjs: PdfJs, document: PdfDocument, number: number): AsyncGenerator<Picture> {
  const page = await document.getPage(number)
  const { fnArray, argsArray } = await page.getOperatorList()
  let count = 0
  for (const [index, operator] of fnArray.entries()) {
    const isNamed = operator === pdfjs.OPS.paintImageXObject
    if (!isNamed && operator !== pdfjs.OPS.paintInlineImageXObject) continue
    const [given]: readonly unknown[] = argsIn(argsArray[index])
    const found = isNamed && typeof given === 'string' ? await namedPicture(page, given) : given
    if (!isPicture(found)) continue
    count += 1
    if (count > PICTURES_PER_PAGE_MAX) break
    yield found
  }
  page.cleanup()
}

/** Boundary: the arguments of an operator have no type. */
function argsIn(given: unknown): readonly unknown[] {
  return Array.isArray(given) ? (given as readonly unknown[]) : []
}

function namedPicture(page: PdfPage, name: string): Promise<unknown> {
  return new Promise((resolve) => {
    const objects = name.startsWith('g_') ? page.commonObjs : page.objs
    objects.get(name, (found: unknown) => resolve(found))
  })
}

function isPicture(found: unknown): found is Picture {
  if (typeof found !== 'object' || found === null || !('width' in found && 'height' in found && 'data' in found)) {
    return false
  }
  const { width, height, data } = found
  if (typeof width !== 'number' || typeof height !== 'number') return false
  if (!(data instanceof Uint8Array || data instanceof Uint8ClampedArray)) return false
  const pixels = width * height
  return Math.min(width, height) >= SIDE_MIN && pixels >= PIXELS_MIN && pixels <= PIXELS_MAX
}

function fileOf({ width, height, data }: Picture): Uint8Array {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  const pixels = width * height
  if (bytes.length >= pixels * 4) return pnm('P6', width, height, withoutAlpha(bytes, pixels))
  if (bytes.length >= pixels * 3) return pnm('P6', width, height, bytes.subarray(0, pixels * 3))
  if (bytes.length >= pixels) return pnm('P5', width, height, bytes.subarray(0, pixels))
  // One bit for each pixel, where one is white; in the file one is black.
  return pnm(
    'P4',
    width,
    height,
    bytes.map((byte) => ~byte & 0xff),
  )
}

function pnm(type: 'P4' | 'P5' | 'P6', width: number, height: number, body: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${type}\n${width} ${height}\n${type === 'P4' ? '' : '255\n'}`), body])
}

function withoutAlpha(bytes: Uint8Array, pixels: number): Uint8Array {
  const rgb = new Uint8Array(pixels * 3)
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    rgb.set(bytes.subarray(pixel * 4, pixel * 4 + 3), pixel * 3)
  }
  return rgb
}
