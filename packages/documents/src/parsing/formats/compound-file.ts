import type { ByteSource } from '../byte-source.ts'
import { UnreadableError } from '../parsed.ts'

const FREE = 0xff_ff_ff_fa
const END_OF_CHAIN = 0xff_ff_ff_fe
/** Bounds for chains in damaged files, which may run in circles. */
const SECTORS_MAX = 1_000_000

export interface CompoundEntry {
  readonly name: string
  /** The storage that it is in, by its number; the root is 0. */
  readonly path: string
  readonly isStorage: boolean
  readonly size: number
  readonly start: number
}

/** A file system in a file, which Outlook messages and old Office documents are (MS-CFB). */
export class CompoundFile {
  readonly #source: ByteSource
  readonly #sectorBytes: number
  readonly #table: readonly number[]
  readonly #smallTable: readonly number[]
  readonly #smallStream: Buffer
  readonly #smallMax: number
  readonly entries: readonly CompoundEntry[]

  constructor(source: ByteSource) {
    const header = source.read(0, 512)
    const hasHeader = header.length === 512 && header.readUInt32LE(0) === 0xe0_11_cf_d0
    if (!hasHeader) throw new UnreadableError('BROKEN', 'no header.')
    this.#source = source
    this.#sectorBytes = header.readUInt16LE(30) === 12 ? 4_096 : 512
    this.#smallMax = header.readUInt32LE(56)
    this.#table = this.#readTable(header)
    const directory = this.#chain(header.readUInt32LE(48), Number.POSITIVE_INFINITY)
    const nodes = readNodes(directory)
    const [root] = nodes
    if (root === undefined) throw new UnreadableError('BROKEN', 'no directory.')
    this.#smallTable = numbersIn(this.#chain(header.readUInt32LE(60), Number.POSITIVE_INFINITY))
    this.#smallStream = this.#chain(root.start, root.size)
    this.entries = entriesOf(nodes)
  }

  read(entry: CompoundEntry, bytesMax: number): Buffer {
    const size = Math.min(entry.size, bytesMax)
    if (entry.size >= this.#smallMax) return this.#chain(entry.start, size)
    const pieces: Buffer[] = []
    let sector = entry.start
    for (let got = 0; got < size && sector < FREE; got += 64) {
      pieces.push(this.#smallStream.subarray(sector * 64, sector * 64 + 64))
      sector = this.#smallTable[sector] ?? END_OF_CHAIN
    }
    return Buffer.concat(pieces).subarray(0, size)
  }

  #sector(number: number): Buffer {
    return this.#source.read((number + 1) * this.#sectorBytes, this.#sectorBytes)
  }

  #chain(first: number, size: number): Buffer {
    const pieces: Buffer[] = []
    let sector = first
    let got = 0
    for (let count = 0; sector < FREE && got < size; count += 1) {
      if (count > this.#table.length) throw new UnreadableError('BROKEN', 'its sectors run in a circle.')
      const piece = this.#sector(sector)
      pieces.push(piece)
      got += piece.length
      sector = this.#table[sector] ?? END_OF_CHAIN
    }
    return Buffer.concat(pieces).subarray(0, Number.isFinite(size) ? size : got)
  }

  #readTable(header: Buffer): readonly number[] {
    const sectors: number[] = []
    for (let at = 76; at < 512; at += 4) sectors.push(header.readUInt32LE(at))
    let next = header.readUInt32LE(68)
    for (let count = 0; next < FREE && count < 1_000; count += 1) {
      const more = numbersIn(this.#sector(next))
      sectors.push(...more.slice(0, -1))
      next = more.at(-1) ?? END_OF_CHAIN
    }
    const table: number[] = []
    for (const sector of sectors.filter((number) => number < FREE)) {
      if (table.length > SECTORS_MAX) break
      for (const number of numbersIn(this.#sector(sector))) table.push(number)
    }
    return table
  }
}

interface Node {
  readonly name: string
  readonly type: number
  readonly left: number
  readonly right: number
  readonly child: number
  readonly start: number
  readonly size: number
}

function readNodes(directory: Buffer): readonly Node[] {
  const nodes: Node[] = []
  for (let at = 0; at + 128 <= directory.length; at += 128) {
    const nameBytes = Math.max(0, Math.min(64, directory.readUInt16LE(at + 64)) - 2)
    nodes.push({
      name: directory.toString('utf16le', at, at + nameBytes),
      type: directory.readUInt8(at + 66),
      left: directory.readUInt32LE(at + 68),
      right: directory.readUInt32LE(at + 72),
      child: directory.readUInt32LE(at + 76),
      start: directory.readUInt32LE(at + 116),
      size: directory.readUInt32LE(at + 120),
    })
  }
  return nodes
}

/** Each storage has its children in a tree of siblings; each node is visited once, however they point. */
function entriesOf(nodes: readonly Node[]): readonly CompoundEntry[] {
  const entries: CompoundEntry[] = []
  const seen = new Set<number>()
  const waiting: { readonly index: number; readonly path: string }[] = [{ index: nodes[0]?.child ?? FREE, path: '' }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const node = nodes[next.index]
    if (node === undefined || seen.has(next.index)) continue
    seen.add(next.index)
    const { path } = next
    entries.push({ name: node.name, path, isStorage: node.type === 1, size: node.size, start: node.start })
    waiting.push({ index: node.left, path }, { index: node.right, path })
    if (node.type === 1) waiting.push({ index: node.child, path: `${path}${node.name}/` })
  }
  return entries
}

function numbersIn(bytes: Buffer): readonly number[] {
  const numbers: number[] = []
  for (let at = 0; at + 4 <= bytes.length; at += 4) numbers.push(bytes.readUInt32LE(at))
  return numbers
}
