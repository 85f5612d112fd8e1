import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ensure } from '../../../../test/system/debian-packages.ts'
import { documentsConfig } from '../config/config.ts'
import { createDocuments } from '../documents.ts'
import { newDirectory } from '../engine/documents.fixture.ts'
import { findOcr } from './ocr.ts'
import type { OcrConfig } from './ocr.ts'
import { ProcessParser } from './process-parser.ts'
import { SCAN_LINES, scannedPdf, scannedPicture } from './scan.fixture.ts'

const missing = ensure(['tesseract-ocr', 'tesseract-ocr-rus'])
const about = missing === undefined ? '' : ` (${missing})`

const LIMITS = { textCharsMax: 100_000, unpackedBytesMax: 10_000_000 }
const configured = (change: Partial<OcrConfig> = {}): OcrConfig => ({ ...documentsConfig().ocr, ...change })

function parserWith(change: Partial<OcrConfig> = {}): ProcessParser {
  const ocr = findOcr(configured(change))
  const parser = new ProcessParser({
    processesMax: 1,
    timeoutMs: 30_000,
    memoryBytes: 300_000_000,
    limits: LIMITS,
    ocr,
  })
  onTestFinished(() => parser.close())
  return parser
}

async function fileOf(name: string, bytes: Uint8Array): Promise<string> {
  const path = join(await newDirectory('ocr'), name)
  await writeFile(path, bytes)
  return path
}

/** A program that behaves as the test says, in place of the real one. */
async function program(body: string): Promise<string> {
  const path = await fileOf(
    'tesseract',
    Buffer.from(`#!/bin/sh\n[ "$1" = --list-langs ] && echo eng && exit\n${body}\n`),
  )
  await chmod(path, 0o755)
  return path
}

describe.skipIf(missing !== undefined)(`[L-02] with tesseract${about}`, () => {
  test('the text of a picture and of a scanned PDF is found, in Russian and in English', async () => {
    const folder = await newDirectory('scans')
    const plain = join(folder, 'note.txt')
    await writeFile(join(folder, 'photo.png'), scannedPicture())
    await writeFile(join(folder, 'contract.pdf'), scannedPdf(2))
    await writeFile(join(folder, 'broken.jpg'), 'no picture at all')
    await writeFile(plain, 'warehouse')
    const documents = createDocuments({ directory: await newDirectory('scans-data') })
    await documents.start()
    onTestFinished(() => documents.stop())
    await documents.add(folder)
    await documents.idle()
    const found = async (query: string): Promise<readonly string[]> =>
      (await documents.search(query)).hits.map(({ path }) => path.slice(folder.length + 1)).toSorted()
    expect(await found('аренда помещение')).toEqual(['contract.pdf', 'photo.png'])
    expect(await found('warehouses')).toEqual(['contract.pdf', 'note.txt', 'photo.png'])
    expect((await documents.search('type:image delivery')).hits).toHaveLength(1)
    expect(await documents.file(join(folder, 'broken.jpg'))).toMatchObject({ status: 'failed', code: 'BROKEN' })
    expect((await documents.stats()).ocr).toEqual({ is_on: true, languages: ['rus', 'eng'] })
  })

  test('every word is recognised, and only as many pages as the configuration allows', async () => {
    const words = SCAN_LINES.join(' ').toLowerCase().split(' ')
    const textOf = async (pagesMax: number): Promise<number> => {
      const parser = parserWith({ max_pages: pagesMax })
      return (await parser.parseDocument(await fileOf('scan.pdf', scannedPdf(3)))).textChars
    }
    const parser = parserWith()
    const { terms, textChars } = await parser.parseDocument(await fileOf('scan.png', scannedPicture()))
    expect(terms.body.split(/\s+/).filter(Boolean).length).toBeGreaterThanOrEqual(words.length)
    expect(textChars).toBeGreaterThan(SCAN_LINES.join(' ').length - 5)
    const [one, two] = [await textOf(1), await textOf(2)]
    expect(two).toBeGreaterThan(one * 1.8)
    expect(two).toBeLessThan(one * 2.2)
  })

  test('a picture that needs more memory than allowed fails alone', async () => {
    const parser = parserWith({ memory: 8_000_000 })
    await expect(parser.parseDocument(await fileOf('scan.png', scannedPicture()))).rejects.toMatchObject({
      code: 'BROKEN',
    })
    expect(await parser.parseDocument(await fileOf('a.txt', Buffer.from('склад')))).toMatchObject({ kind: 'txt' })
  })
})

describe('[L-02] text in pictures', () => {
  test('is not read where the program or its languages are missing or it is turned off, and the status says why', async () => {
    expect(findOcr(configured({ enabled: false })).status).toEqual({
      is_on: false,
      reason: 'It is turned off (ocr.enabled).',
    })
    expect(findOcr(configured(), '/nowhere').status).toMatchObject({
      reason: expect.stringContaining('apt install tesseract-ocr') as unknown,
    })
    const small = await program('')
    expect(findOcr(configured({ program: small })).status).toEqual({ is_on: true, languages: ['eng'] })
    expect(findOcr(configured({ program: small, languages: ['rus'] })).status).toMatchObject({
      reason: expect.stringContaining('none of the languages rus') as unknown,
    })
    const broken = await fileOf('tesseract', Buffer.from('#!/bin/sh\nexit 3\n'))
    await chmod(broken, 0o755)
    expect(findOcr(configured({ program: broken })).status).toMatchObject({ is_on: false })
    const parser = parserWith({ enabled: false })
    expect(parser.ocr.is_on).toBe(false)
    expect(await parser.parseDocument(await fileOf('scan.pdf', scannedPdf()))).toMatchObject({
      kind: 'pdf',
      textChars: 0,
    })
    expect(() => documentsConfig({ ocr: { languages: ['$(reboot)'] } })).toThrow('must be a name such as rus or eng')
  })

  test('has a bound on time: a program that hangs is ended, and its file has failed', async () => {
    const parser = parserWith({ program: await program('exec sleep 600'), timeout: 300 })
    await expect(parser.parseDocument(await fileOf('scan.png', scannedPicture()))).rejects.toMatchObject({
      code: 'TOO_LARGE',
      message: expect.stringContaining('ocr.timeout') as unknown,
    })
  })
})
