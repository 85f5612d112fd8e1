import type { FileListing, StoredFile } from './file-store.ts'

/** Keeps the first files in the order of their keys' bytes, of any number that come in any order. */
export class FirstKeys {
  readonly #limit: number
  readonly #after: Buffer | undefined
  #kept: Kept[] = []

  constructor(limit: number, after: string | undefined) {
    this.#limit = limit
    this.#after = after === undefined ? undefined : Buffer.from(after)
  }

  add(file: StoredFile): void {
    const bytes = Buffer.from(file.key)
    if (this.#after !== undefined && Buffer.compare(bytes, this.#after) <= 0) return
    this.#kept.push({ bytes, file })
    if (this.#kept.length > 4 * this.#limit) this.#cut()
  }

  listing(): FileListing {
    this.#cut()
    const files = this.#kept.slice(0, this.#limit).map(({ file }) => file)
    return { files, next: this.#kept.length > this.#limit ? files.at(-1)?.key : undefined }
  }

  #cut(): void {
    this.#kept = this.#kept.toSorted((a, b) => Buffer.compare(a.bytes, b.bytes)).slice(0, this.#limit + 1)
  }
}

interface Kept {
  readonly bytes: Buffer
  readonly file: StoredFile
}
