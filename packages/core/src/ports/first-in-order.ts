/** Items that are taken in before the first of them are chosen. */
const ROOM = 1_000

/**
 * The first so many of any number of items, in an order. Sorting a few now and then takes less time, and far less memory, than
 * sorting all of a million once; and it can be done piece by piece.
 */
export class FirstInOrder<T> {
  readonly #limit: number
  readonly #compare: (a: T, b: T) => number
  readonly #kept: T[] = []
  #count = 0

  constructor(limit: number, compare: (a: T, b: T) => number) {
    this.#limit = limit
    this.#compare = compare
  }

  /** How many there were. */
  get count(): number {
    return this.#count
  }

  add(item: T): void {
    this.#count += 1
    this.#kept.push(item)
    if (this.#kept.length >= 2 * this.#limit + ROOM) this.first()
  }

  /** Sorted. */
  first(): readonly T[] {
    this.#kept.sort(this.#compare)
    if (this.#kept.length > this.#limit) this.#kept.length = this.#limit
    return this.#kept
  }
}
