import type { Mark } from './marks.ts'

/** Counts what happened, over one world or many. */
export class Tally {
  readonly #counts = new Map<string, number>()

  /** A rare event was seen. A long run that never sees it has become too weak. */
  sometimes(mark: Mark): void {
    this.add(mark, 1)
  }

  add(name: string, count: number): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count)
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  addAll(counts: Readonly<Record<string, number>>): void {
    for (const [name, count] of Object.entries(counts)) this.add(name, count)
  }

  toRecord(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)))
  }
}
