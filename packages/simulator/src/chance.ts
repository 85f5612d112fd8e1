/** A random stream: the same seed and name give the same numbers, independent of other streams. */
export class Chance {
  #state: number

  constructor(seed: number, name: string) {
    let state = Math.imul(seed ^ 0x9e_37_79_b9, 0x85_eb_ca_6b) >>> 0
    for (let index = 0; index < name.length; index += 1) {
      state = Math.imul(state ^ name.charCodeAt(index), 0x01_00_01_93) >>> 0
    }
    this.#state = state
    // Adjacent seeds start with similar numbers; a few steps separate them.
    for (let index = 0; index < 4; index += 1) this.next()
  }

  /** From 0 up to, but not including, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }

  happens(probability: number): boolean {
    return probability > 0 && this.next() < probability
  }

  /** An integer in this range, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error('There is nothing to pick from.')
    return list[Math.floor(this.next() * list.length)] as T
  }
}
