import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

/** Bytes with random access: a file, or a part of one in memory. */
export interface ByteSource {
  readonly size: number
  /** Up to `length` bytes from `offset`; fewer at the end. */
  read(offset: number, length: number): Buffer
}

export class BufferSource implements ByteSource {
  readonly #bytes: Uint8Array
  readonly size: number

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.size = bytes.length
  }

  read(offset: number, length: number): Buffer {
    const piece = this.#bytes.subarray(offset, offset + length)
    return Buffer.from(piece.buffer, piece.byteOffset, piece.length)
  }
}

/**
 * No link is followed, and nothing is waited for: what was a regular file when it was looked at may be a link into another
 * folder by now, or a pipe.
 */
const REGULAR = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** A file that is read in pieces, so that its size does not matter for memory. */
export class FileSource implements ByteSource {
  readonly #fd: number
  readonly size: number
  readonly mtimeMs: number

  constructor(path: string | Buffer) {
    this.#fd = openSync(path, REGULAR)
    const facts = fstatSync(this.#fd)
    if (!facts.isFile()) {
      closeSync(this.#fd)
      throw Object.assign(new Error('It is no regular file any more.'), { code: 'ELOOP' })
    }
    this.size = facts.size
    this.mtimeMs = facts.mtimeMs
  }

  read(offset: number, length: number): Buffer {
    const wanted = Math.max(0, Math.min(length, this.size - offset))
    const bytes = Buffer.allocUnsafe(wanted)
    let got = 0
    while (got < wanted) {
      const count = readSync(this.#fd, bytes, got, wanted - got, offset + got)
      if (count === 0) break
      got += count
    }
    return bytes.subarray(0, got)
  }

  close(): void {
    closeSync(this.#fd)
  }
}

const PIECE_BYTES = 65_536

export function* piecesOf(source: ByteSource, from = 0, to = source.size): Generator<Buffer> {
  for (let at = from; at < to; at += PIECE_BYTES) {
    const piece = source.read(at, Math.min(PIECE_BYTES, to - at))
    if (piece.length === 0) return
    yield piece
  }
}
