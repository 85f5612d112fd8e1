import { now } from '../measure.ts'

export interface Count {
  /** Distinct ones, since the start. */
  readonly distinct: number
  /** All calls, repeated ones included. */
  readonly handled: number
  /** When the first one came since the last mark, and when the newest distinct one came. */
  readonly firstAt: number
  readonly lastAt: number
}

/** Counts completed work, each index once, so that no contestant gets credit for work that it did not do. */
export class Tally {
  #seen = new Uint8Array(65_536)
  #distinct = 0
  #handled = 0
  #firstAt = 0
  #lastAt = 0
  #waiting: { readonly distinct: number; readonly resolve: (count: Count) => void } | undefined

  /** Treats the next one as the first. */
  mark(): void {
    this.#firstAt = 0
  }

  add(index: number): void {
    const at = now()
    this.#handled += 1
    if (this.#firstAt === 0) this.#firstAt = at
    if (index >= this.#seen.length) this.#grow(index)
    if (this.#seen[index] === 1) return
    this.#seen[index] = 1
    this.#distinct += 1
    this.#lastAt = at
    if (this.#distinct !== this.#waiting?.distinct) return
    this.#waiting.resolve(this.count())
    this.#waiting = undefined
  }

  /** Resolves once this many distinct ones have come since the start. */
  until(distinct: number): Promise<Count> {
    if (this.#distinct >= distinct) return Promise.resolve(this.count())
    return new Promise((resolve) => {
      this.#waiting = { distinct, resolve }
    })
  }

  count(): Count {
    return { distinct: this.#distinct, handled: this.#handled, firstAt: this.#firstAt, lastAt: this.#lastAt }
  }

  #grow(index: number): void {
    const larger = new Uint8Array(Math.max(index + 1, this.#seen.length * 2))
    larger.set(this.#seen)
    this.#seen = larger
  }
}
