import { createHash } from 'node:crypto'
import { ImpresarioError } from '@impresario/protocol'
import type { PutOptions } from './file-store.ts'

/** Hands the bytes of a file on, counts them, and refuses what is not the file that was announced. */
export class CheckedBody {
  readonly #body: AsyncIterable<Uint8Array>
  readonly #options: PutOptions
  readonly #hash = createHash('sha256')
  #bytes = 0
  #sha256 = ''

  constructor(body: AsyncIterable<Uint8Array>, options: PutOptions) {
    this.#body = body
    this.#options = options
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Known when all is read. */
  get sha256(): string {
    return this.#sha256
  }

  /** Throws at the end if length or checksum are others: whoever reads it keeps nothing then. */
  async *read(): AsyncGenerator<Uint8Array> {
    const { bytes, bytesMax = Infinity, signal } = this.#options
    const most = Math.min(bytesMax, bytes ?? Infinity)
    if (bytes !== undefined && bytes > bytesMax) throw tooLarge(bytesMax)
    for await (const chunk of this.#body) {
      signal?.throwIfAborted()
      this.#bytes += chunk.byteLength
      if (this.#bytes > most) throw this.#bytes > bytesMax ? tooLarge(bytesMax) : wrongLength(bytes ?? 0, this.#bytes)
      this.#hash.update(chunk)
      yield chunk
    }
    signal?.throwIfAborted()
    this.#sha256 = this.#hash.digest('hex')
    if (bytes !== undefined && this.#bytes !== bytes) throw wrongLength(bytes, this.#bytes)
    const expected = this.#options.sha256?.toLowerCase()
    if (expected !== undefined && expected !== this.#sha256) {
      throw new ImpresarioError('FILE_MISMATCH', 'The checksum (SHA-256) of what arrived is not the announced one.')
    }
  }
}

function tooLarge(bytesMax: number): ImpresarioError {
  return new ImpresarioError(
    'FILE_TOO_LARGE',
    `The file has more than ${bytesMax} bytes, which is the most for one file.`,
  )
}

function wrongLength(announced: number, arrived: number): ImpresarioError {
  const more = arrived > announced ? 'More' : `Only ${arrived}`
  return new ImpresarioError('FILE_MISMATCH', `${announced} bytes were announced. ${more} arrived.`)
}
