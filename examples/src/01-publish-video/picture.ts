import { promisify } from 'node:util'
import { crc32, deflate } from 'node:zlib'

const pack = promisify(deflate)

/** Red, green and blue of every pixel, row by row. */
export interface Frame {
  readonly width: number
  readonly height: number
  readonly rgb: Buffer
}

/** Two waves and a moving spotlight: enough to see that every frame differs. `time` runs from 0 to 1. */
export function drawFrame(width: number, height: number, time: number): Frame {
  // Clamped: a byte that is too bright stays white, and does not turn black.
  const rgb = new Uint8ClampedArray(width * height * 3)
  const turn = time * 2 * Math.PI
  const light = { x: 0.5 + 0.35 * Math.cos(turn), y: 0.5 + 0.3 * Math.sin(2 * turn) }
  let at = 0
  for (let row = 0; row < height; row += 1) {
    const y = row / height
    for (let column = 0; column < width; column += 1) {
      const x = column / width
      const wave = Math.sin(9 * x + turn) + Math.sin(7 * y - turn) + Math.sin(5 * (x + y) + 2 * turn)
      const glow = Math.max(0, 1 - 4 * Math.hypot((x - light.x) * 1.6, y - light.y))
      rgb[at] = 60 + 40 * wave + 140 * glow
      rgb[at + 1] = 40 + 20 * Math.sin(wave * 2) + 120 * glow
      rgb[at + 2] = 110 + 45 * Math.cos(wave) + 40 * glow
      at += 3
    }
  }
  return { width, height, rgb: Buffer.from(rgb.buffer) }
}

/** One image in the PPM format. A file may hold several, one after the other. */
export function encodePpm({ width, height, rgb }: Frame): Buffer {
  return Buffer.concat([Buffer.from(`P6\n${width} ${height}\n255\n`, 'latin1'), rgb])
}

export function decodePpm(file: Buffer): readonly Frame[] {
  const frames: Frame[] = []
  for (let at = 0; at < file.length;) {
    const [header, width, height] = /^P6\n(\d+) (\d+)\n255\n/.exec(file.toString('latin1', at, at + 32)) ?? []
    if (header === undefined) throw new Error(`There is no image at byte ${at}.`)
    const begin = at + header.length
    at = begin + Number(width) * Number(height) * 3
    if (at > file.length) throw new Error(`The image at byte ${begin} is cut off.`)
    frames.push({ width: Number(width), height: Number(height), rgb: file.subarray(begin, at) })
  }
  return frames
}

/** Frames as an animated PNG, which browsers play like a video. */
export async function encodeAnimation(frames: readonly Frame[], framesPerSecond: number): Promise<Buffer> {
  const [first] = frames
  if (first === undefined) throw new Error('A video needs at least one frame.')
  const { width, height } = first
  const parts = [
    Buffer.from('\u0089PNG\r\n\u001A\n', 'latin1'),
    chunk('IHDR', [u32(width), u32(height), Buffer.from([8, 2, 0, 0, 0])]),
    chunk('acTL', [u32(frames.length), u32(0)]),
  ]
  let sequence = 0
  for (const frame of frames) {
    const delay = Buffer.concat([u16(1), u16(framesPerSecond), Buffer.from([0, 0])])
    parts.push(chunk('fcTL', [u32(sequence++), u32(width), u32(height), u32(0), u32(0), delay]))
    const pixels = await pack(scanlines(frame))
    parts.push(frame === first ? chunk('IDAT', [pixels]) : chunk('fdAT', [u32(sequence++), pixels]))
  }
  return Buffer.concat([...parts, chunk('IEND', [])])
}

/** Each row after a byte that names its filter: 1, the difference to the pixel on the left, which packs well. */
function scanlines({ width, height, rgb }: Frame): Buffer {
  const stride = width * 3
  const lines = Buffer.alloc((stride + 1) * height)
  for (let row = 0; row < height; row += 1) {
    const to = row * (stride + 1)
    lines[to] = 1
    for (let byte = 0; byte < stride; byte += 1) {
      const from = row * stride + byte
      lines[to + 1 + byte] = (rgb[from] ?? 0) - (byte < 3 ? 0 : (rgb[from - 3] ?? 0))
    }
  }
  return lines
}

function chunk(type: string, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), ...parts])
  return Buffer.concat([u32(body.length - 4), body, u32(crc32(body))])
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}
