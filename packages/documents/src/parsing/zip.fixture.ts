import { crc32, deflateRawSync } from 'node:zlib'

export interface Member {
  readonly name: string
  readonly content: string | Uint8Array
  /** Kept as it is instead of packed. */
  readonly isStored?: boolean
}

/** A ZIP archive with these files, in their order. */
export function zipOf(members: readonly Member[]): Buffer {
  const pieces: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const { name, content, isStored = false } of members) {
    const bytes = Buffer.from(content)
    const packed = isStored ? bytes : deflateRawSync(bytes)
    const nameBytes = Buffer.from(name)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(0x08_00, 2)
    common.writeUInt16LE(isStored ? 0 : 8, 4)
    common.writeUInt32LE(crc32(bytes), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(bytes.length, 18)
    common.writeUInt16LE(nameBytes.length, 22)
    pieces.push(Buffer.from('PK\u0003\u0004', 'latin1'), common, nameBytes, packed)
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(at, 10)
    directory.push(Buffer.from('PK\u0001\u0002\u0014\u0000', 'latin1'), common, tail, nameBytes)
    at += 30 + nameBytes.length + packed.length
  }
  const entries = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(members.length, 4)
  end.writeUInt16LE(members.length, 6)
  end.writeUInt32LE(entries.length, 8)
  end.writeUInt32LE(at, 12)
  return Buffer.concat([...pieces, entries, Buffer.from('PK\u0005\u0006', 'latin1'), end])
}
