import type { FileRecord } from '../index/indexer.ts'
import type { Fingerprint, ParsedDocument } from '../parsing/parser.ts'

/** A document between the task that read it and the one that indexes it. */
export interface Staged {
  readonly print: Fingerprint
  readonly document: ParsedDocument
  /** The record of a document that was moved here. */
  readonly moved: FileRecord | undefined
}

/**
 * Keeps what was read until it is indexed. In memory: what a crash loses is read again, which is cheaper than writing
 * everything twice. Bounded in bytes; the oldest goes first, and its file is read again too.
 */
export class Staging {
  readonly #bytesMax: number
  readonly #staged = new Map<string, Staged>()
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  put(key: string, staged: Staged): void {
    this.take(key)
    this.#staged.set(key, staged)
    this.#bytes += bytesOf(staged)
    for (const oldest of this.#staged.keys()) {
      if (this.#bytes <= this.#bytesMax || oldest === key) break
      this.take(oldest)
    }
  }

  take(key: string): Staged | undefined {
    const staged = this.#staged.get(key)
    if (staged === undefined) return undefined
    this.#staged.delete(key)
    this.#bytes -= bytesOf(staged)
    return staged
  }
}

function bytesOf({ document: { packedText, terms } }: Staged): number {
  return packedText.length + (terms.body.length + terms.parts.length) * 2
}
