import { pipeline, Readable } from 'node:stream'
import { createInflateRaw } from 'node:zlib'
import { piecesOf } from '../byte-source.ts'
import type { ByteSource } from '../byte-source.ts'
import { UnreadableError } from '../parsed.ts'
import type { TextSink } from '../text-sink.ts'

export interface ZipEntry {
  readonly name: string
  readonly method: number
  readonly isEncrypted: boolean
  readonly packedSize: number
  readonly size: number
  readonly headerAt: number
}

const END_SIGNATURE = 0x06_05_4b_50
const ENTRY_SIGNATURE = 0x02_01_4b_50
const LOCAL_SIGNATURE = 0x04_03_4b_50
const END64_SIGNATURE = 0x06_06_4b_50
const LOCATOR64_SIGNATURE = 0x07_06_4b_50
const END_BYTES = 22
const COMMENT_BYTES_MAX = 65_535

/** A document of any Office suite has a few hundred; an archive with more is read up to here. */
const ENTRIES_MAX = 20_000
const DIRECTORY_BYTES_MAX = 16_777_216

/** The files in a ZIP archive, which is read in place: only what is asked for is unpacked. */
export class ZipArchive {
  readonly #source: ByteSource
  readonly entries: ReadonlyMap<string, ZipEntry>

  constructor(source: ByteSource) {
    this.#source = source
    this.entries = readDirectory(source)
  }

  /** A file by its name. Office programs do not look at the case of letters, so that some files have other ones. */
  entryNamed(name: string): ZipEntry | undefined {
    const entry = this.entries.get(name)
    if (entry !== undefined) return entry
    const lower = name.toLowerCase()
    return [...this.entries.values()].find((one) => one.name.toLowerCase() === lower)
  }

  /** The pieces of a file, unpacked. What they amount to is counted in the sink. */
  async *pieces(entry: ZipEntry, sink: TextSink): AsyncGenerator<Buffer> {
    if (entry.isEncrypted) throw new UnreadableError('ENCRYPTED', `${entry.name} inside of it.`)
    const [from, to] = this.#span(entry)
    const packed = piecesOf(this.#source, from, to)
    for await (const piece of entry.method === 0 ? packed : inflated(packed, entry)) {
      sink.countUnpacked(piece.length)
      yield piece
    }
  }

  /** A whole file; the rest of one that is longer than `bytesMax` is left out. */
  async bytes(entry: ZipEntry, sink: TextSink, bytesMax: number): Promise<Buffer> {
    const pieces: Buffer[] = []
    let total = 0
    for await (const piece of this.pieces(entry, sink)) {
      pieces.push(piece)
      total += piece.length
      if (total < bytesMax) continue
      sink.truncate()
      break
    }
    return Buffer.concat(pieces).subarray(0, bytesMax)
  }

  #span({ headerAt, packedSize, name }: ZipEntry): readonly [number, number] {
    const header = this.#source.read(headerAt, 30)
    if (header.length < 30 || header.readUInt32LE(0) !== LOCAL_SIGNATURE) {
      throw new UnreadableError('BROKEN', `${name} is not where the archive says.`)
    }
    const from = headerAt + 30 + header.readUInt16LE(26) + header.readUInt16LE(28)
    return [from, from + packedSize]
  }
}

async function* inflated(packed: Iterable<Buffer>, { method, name }: ZipEntry): AsyncGenerator<Buffer> {
  if (method !== 8) throw new UnreadableError('UNSUPPORTED', `${name} is packed with method ${method}.`)
  const inflate = createInflateRaw()
  // The iteration below reports what goes wrong.
  pipeline(Readable.from(packed), inflate, () => undefined)
  try {
    for await (const piece of inflate) yield pieceOf(piece)
  } catch (error) {
    if (error instanceof UnreadableError) throw error
    throw new UnreadableError('BROKEN', `${name} cannot be unpacked.`)
  } finally {
    inflate.destroy()
  }
}

/** Boundary: a stream of bytes gives buffers. */
function pieceOf(piece: unknown): Buffer {
  return piece as Buffer
}

function readDirectory(source: ByteSource): ReadonlyMap<string, ZipEntry> {
  const { at, bytes, count, base } = findDirectory(source)
  const directory = source.read(at, Math.min(bytes, DIRECTORY_BYTES_MAX))
  const entries = new Map<string, ZipEntry>()
  let offset = 0
  while (entries.size < Math.min(count, ENTRIES_MAX) && offset + 46 <= directory.length) {
    if (directory.readUInt32LE(offset) !== ENTRY_SIGNATURE) break
    const next = offset + 46 + directory.readUInt16LE(offset + 28) + directory.readUInt16LE(offset + 30)
    const end = next + directory.readUInt16LE(offset + 32)
    if (end > directory.length) break
    const entry = entryAt(directory, offset)
    if (!entries.has(entry.name)) entries.set(entry.name, { ...entry, headerAt: entry.headerAt + base })
    offset = end
  }
  if (entries.size === 0 && count > 0) throw new UnreadableError('BROKEN', 'the archive has no directory.')
  return entries
}

function entryAt(directory: Buffer, at: number): ZipEntry {
  const flags = directory.readUInt16LE(at + 8)
  const nameBytes = directory.subarray(at + 46, at + 46 + directory.readUInt16LE(at + 28))
  const extra = directory.subarray(
    at + 46 + nameBytes.length,
    at + 46 + nameBytes.length + directory.readUInt16LE(at + 30),
  )
  const sizes = {
    size: directory.readUInt32LE(at + 24),
    packedSize: directory.readUInt32LE(at + 20),
    headerAt: directory.readUInt32LE(at + 42),
  }
  return {
    // Some programs of Windows write its separators.
    name: nameOf(nameBytes, (flags & 0x08_00) !== 0).replaceAll('\\', '/'),
    method: directory.readUInt16LE(at + 10),
    isEncrypted: (flags & 1) !== 0,
    ...wideSizes(sizes, extra),
  }
}

interface Sizes {
  readonly size: number
  readonly packedSize: number
  readonly headerAt: number
}

/** ZIP64 keeps what does not fit into 32 bits in an extra field, in this order. */
function wideSizes(sizes: Sizes, extra: Buffer): Sizes {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue
    let next = at + 4
    const wide = (value: number): number => {
      if (value !== 0xff_ff_ff_ff || next + 8 > extra.length) return value
      next += 8
      return Number(extra.readBigUInt64LE(next - 8))
    }
    return { size: wide(sizes.size), packedSize: wide(sizes.packedSize), headerAt: wide(sizes.headerAt) }
  }
  return sizes
}

/** Archives of old Russian programs have names in the charset of DOS. */
function nameOf(bytes: Buffer, isUtf8: boolean): string {
  if (isUtf8) return bytes.toString('utf8')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return new TextDecoder('ibm866').decode(bytes)
  }
}

interface Directory {
  readonly at: number
  readonly bytes: number
  readonly count: number
  /** What stands before the archive, as in programs that unpack themselves: all places are counted from behind it. */
  readonly base: number
}

function findDirectory(source: ByteSource): Directory {
  const tailAt = Math.max(0, source.size - END_BYTES - COMMENT_BYTES_MAX)
  const tail = source.read(tailAt, source.size - tailAt)
  for (let at = tail.length - END_BYTES; at >= 0; at -= 1) {
    if (tail.readUInt32LE(at) !== END_SIGNATURE) continue
    const count = tail.readUInt16LE(at + 10)
    const bytes = tail.readUInt32LE(at + 12)
    const said = tail.readUInt32LE(at + 16)
    const wide = said === 0xff_ff_ff_ff || count === 0xff_ff ? findWideDirectory(source, tail, at) : undefined
    if (wide !== undefined) return wide
    const real = tailAt + at - bytes
    const isThere = source.read(said, 4).equals(source.read(real, 4))
    return isThere || real < 0 ? { at: said, bytes, count, base: 0 } : { at: real, bytes, count, base: real - said }
  }
  throw new UnreadableError('BROKEN', 'the end of the archive is missing.')
}

function findWideDirectory(source: ByteSource, tail: Buffer, endAt: number): Directory | undefined {
  const locatorAt = endAt - 20
  if (locatorAt < 0 || tail.readUInt32LE(locatorAt) !== LOCATOR64_SIGNATURE) return undefined
  const record = source.read(Number(tail.readBigUInt64LE(locatorAt + 8)), 56)
  if (record.length < 56 || record.readUInt32LE(0) !== END64_SIGNATURE) return undefined
  return {
    at: Number(record.readBigUInt64LE(48)),
    bytes: Number(record.readBigUInt64LE(40)),
    count: Number(record.readBigUInt64LE(32)),
    base: 0,
  }
}
