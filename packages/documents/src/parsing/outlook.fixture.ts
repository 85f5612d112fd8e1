import { PARAGRAPHS, TITLE } from './files.fixture.ts'

interface Stream {
  readonly name: string
  readonly content: Buffer
}

/** An Outlook message: a compound file with one stream for each property. All streams are short, so they share one. */
export function msg(text = PARAGRAPHS.join('\r\n')): Buffer {
  return compoundFile([
    { name: '__properties_version1.0', content: Buffer.alloc(32) },
    { name: '__substg1.0_0037001F', content: Buffer.from(TITLE, 'utf16le') },
    { name: '__substg1.0_0C1A001F', content: Buffer.from('Иван Петров', 'utf16le') },
    { name: '__substg1.0_1000001F', content: Buffer.from(text, 'utf16le') },
  ])
}

const SECTOR = 512
const END = 0xff_ff_ff_fe
const FREE = 0xff_ff_ff_ff

export function compoundFile(streams: readonly Stream[]): Buffer {
  // Sector 0: the table. Then the directory, the table of small sectors, and the stream that holds them.
  const smallSectors = streams.map(({ content }) => Math.max(1, Math.ceil(content.length / 64)))
  const smallTotal = smallSectors.reduce((sum, count) => sum + count, 0)
  const directorySectors = Math.ceil((streams.length + 1) / 4)
  const smallTableSectors = Math.ceil((smallTotal * 4) / SECTOR)
  const dataSectors = Math.ceil((smallTotal * 64) / SECTOR)
  const directoryAt = 1
  const smallTableAt = directoryAt + directorySectors
  const dataAt = smallTableAt + smallTableSectors
  const header = Buffer.alloc(SECTOR)
  header.write('d0cf11e0a1b11ae1', 'hex')
  header.writeUInt16LE(0x3e, 24)
  header.writeUInt16LE(3, 26)
  header.writeUInt16LE(0xff_fe, 28)
  header.writeUInt16LE(9, 30)
  header.writeUInt16LE(6, 32)
  header.writeUInt32LE(1, 44)
  header.writeUInt32LE(directoryAt, 48)
  header.writeUInt32LE(1_000_000, 56)
  header.writeUInt32LE(smallTableAt, 60)
  header.writeUInt32LE(smallTableSectors, 64)
  header.writeUInt32LE(END, 68)
  for (let at = 76; at < SECTOR; at += 4) header.writeUInt32LE(at === 76 ? 0 : FREE, at)
  const table = Buffer.alloc(SECTOR, 0xff)
  table.writeUInt32LE(0xff_ff_ff_fd, 0)
  for (const [first, count] of [
    [directoryAt, directorySectors],
    [smallTableAt, smallTableSectors],
    [dataAt, dataSectors],
  ] as const) {
    for (let index = 0; index < count; index += 1) {
      table.writeUInt32LE(index === count - 1 ? END : first + index + 1, (first + index) * 4)
    }
  }
  const directory = Buffer.alloc(directorySectors * SECTOR)
  const smallTable = Buffer.alloc(smallTableSectors * SECTOR, 0xff)
  const data = Buffer.alloc(dataSectors * SECTOR)
  entry(directory, 0, { name: 'Root Entry', type: 5, child: 1, start: dataAt, size: smallTotal * 64 })
  let small = 0
  for (const [index, { name, content }] of streams.entries()) {
    const count = smallSectors[index] ?? 1
    const right = index + 1 < streams.length ? index + 2 : FREE
    entry(directory, index + 1, { name, type: 2, right, start: small, size: content.length })
    content.copy(data, small * 64)
    for (let at = 0; at < count; at += 1) {
      smallTable.writeUInt32LE(at === count - 1 ? END : small + at + 1, (small + at) * 4)
    }
    small += count
  }
  return Buffer.concat([header, table, directory, smallTable, data])
}

interface Entry {
  readonly name: string
  readonly type: number
  readonly right?: number
  readonly child?: number
  readonly start: number
  readonly size: number
}

function entry(directory: Buffer, index: number, { name, type, right = FREE, child = FREE, start, size }: Entry): void {
  const at = index * 128
  directory.write(name, at, 'utf16le')
  directory.writeUInt16LE(name.length * 2 + 2, at + 64)
  directory.writeUInt8(type, at + 66)
  directory.writeUInt32LE(FREE, at + 68)
  directory.writeUInt32LE(right, at + 72)
  directory.writeUInt32LE(child, at + 76)
  directory.writeUInt32LE(start, at + 116)
  directory.writeUInt32LE(size, at + 120)
}
