import type { Random } from '@impresario/core'

/** Random numbers that are the same for the same seed (mulberry32). */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to, but not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_00_00_00_00
  }

  happens(probability: number | undefined): boolean {
    return probability !== undefined && probability > 0 && this.next() < probability
  }
}

/** Ids in the shape of UUIDv7 that count up, so that each run of a test has the same ones. */
export function seededRandom(chance: Chance, now: () => number): Random {
  let count = 0
  return {
    next: () => chance.next(),
    id: () => {
      count += 1
      const time = Math.floor(now()).toString(16).padStart(12, '0').slice(-12)
      const digits = count.toString(16).padStart(18, '0')
      return `${time.slice(0, 8)}-${time.slice(8)}-7${digits.slice(0, 3)}-8${digits.slice(3, 6)}-${digits.slice(6)}`
    },
  }
}
