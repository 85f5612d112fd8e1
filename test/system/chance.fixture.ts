/** Mulberry32: a run of a kill test can be repeated with its seed. */
export function chanceOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** The same elements in another order. */
export function shuffled<T>(things: readonly T[], chance: () => number): readonly T[] {
  return things
    .map((thing) => ({ thing, at: chance() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ thing }) => thing)
}
