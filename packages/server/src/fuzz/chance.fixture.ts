/** Repeatable chance: the same seed gives the same inputs, so that a failure can be seen again. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to, but not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from 0 up to, but not including, `below`. */
  below(below: number): number {
    return Math.floor(this.next() * below)
  }

  isTrue(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[this.below(from.length)]
    if (picked === undefined) throw new Error('There is nothing to pick from.')
    return picked
  }
}
