/** The names that a request touches. Two requests that touch the same name are decided one after the other. */
export interface Touches {
  readonly writes: ReadonlySet<string>
  /** Claims that authorize the write: read, not changed. */
  readonly reads: ReadonlySet<string>
}

/** Names that requests write (one at a time) or read (any number). */
export class NamesInUse {
  readonly #writers = new Map<string, number>()
  readonly #readers = new Map<string, number>()

  isFree({ writes, reads }: Touches): boolean {
    for (const name of writes) if (this.#writers.has(name) || this.#readers.has(name)) return false
    for (const name of reads) if (this.#writers.has(name)) return false
    return true
  }

  take({ writes, reads }: Touches): void {
    for (const name of writes) this.#writers.set(name, (this.#writers.get(name) ?? 0) + 1)
    for (const name of reads) this.#readers.set(name, (this.#readers.get(name) ?? 0) + 1)
  }

  free({ writes, reads }: Touches): void {
    for (const name of writes) dropOne(this.#writers, name)
    for (const name of reads) dropOne(this.#readers, name)
  }
}

function dropOne(counts: Map<string, number>, name: string): void {
  const count = counts.get(name) ?? 0
  if (count > 1) counts.set(name, count - 1)
  else counts.delete(name)
}
