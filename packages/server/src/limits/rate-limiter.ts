/** So many in so long. */
export interface RateRule {
  readonly limit: number
  readonly periodMs: number
}

export interface Verdict {
  readonly isAllowed: boolean
  /** How many more would be allowed right now. */
  readonly left: number
  /** How long until one more is allowed; zero when one is. */
  readonly retryMs: number
  /** How long until it is as if nothing had been asked. */
  readonly resetMs: number
}

/**
 * Counts who asks how often. The one in memory counts for this process; an implementation on a store that several
 * instances share may take its place, which is why the answer may be a promise.
 */
export interface RateLimiter {
  /** Asks for one more, and counts it if it is allowed. What is refused costs nothing, so patience always helps. */
  take(key: string, rule: RateRule, nowMs: number): Verdict | Promise<Verdict>
  /** The same without counting. */
  look(key: string, rule: RateRule, nowMs: number): Verdict | Promise<Verdict>
}

/** 100 bytes each: some 10 MB at most. */
export const KEYS_MAX = 100_000

/**
 * The generic cell rate algorithm: for every key one number, the moment when all that it has asked for is paid off. Each
 * request puts that moment off by period ÷ limit; it may lie one period ahead. So a whole burst is allowed at once, and
 * afterwards one request after the other as time goes by: there is no window at whose end everything is possible again,
 * and none that a refused request would restart.
 *
 * A key whose moment has passed is as good as one never seen. Those go first when there are too many, then the ones that
 * were not used for the longest time.
 */
export class MemoryRateLimiter implements RateLimiter {
  readonly #paidOffAt = new Map<string, number>()
  readonly #keysMax: number

  constructor(keysMax: number = KEYS_MAX) {
    this.#keysMax = keysMax
  }

  get size(): number {
    return this.#paidOffAt.size
  }

  take(key: string, rule: RateRule, nowMs: number): Verdict {
    const verdict = this.look(key, rule, nowMs)
    if (!verdict.isAllowed) return verdict
    const spacing = rule.periodMs / rule.limit
    const paidOffAt = Math.max(this.#paidOffAt.get(key) ?? 0, nowMs) + spacing
    // Deleted and set, so that the order of the map is the order of use.
    this.#paidOffAt.delete(key)
    this.#paidOffAt.set(key, paidOffAt)
    if (this.#paidOffAt.size > this.#keysMax) this.#makeRoom(nowMs)
    return verdictOf(paidOffAt, rule, nowMs, true)
  }

  look(key: string, rule: RateRule, nowMs: number): Verdict {
    const paidOffAt = this.#paidOffAt.get(key) ?? nowMs
    const isAllowed = retryOf(paidOffAt, rule, nowMs) <= 0
    return verdictOf(paidOffAt, rule, nowMs, isAllowed)
  }

  /** An eighth at a time, so that a flood of new keys does not cost a search for every one of them. */
  #makeRoom(nowMs: number): void {
    for (const [key, at] of this.#paidOffAt) if (at <= nowMs) this.#paidOffAt.delete(key)
    const keep = Math.floor((this.#keysMax * 7) / 8)
    for (const key of this.#paidOffAt.keys()) {
      if (this.#paidOffAt.size <= keep) break
      this.#paidOffAt.delete(key)
    }
  }
}

/** Sums of fractions are off by some millionths of a millisecond, which must not refuse a request that waited long enough. */
export const ROUNDING_MS = 1e-3

function retryOf(paidOffAt: number, { limit, periodMs }: RateRule, nowMs: number): number {
  const ahead = paidOffAt + periodMs / limit - nowMs - periodMs
  return ahead <= ROUNDING_MS ? 0 : ahead
}

function verdictOf(paidOffAt: number, rule: RateRule, nowMs: number, isAllowed: boolean): Verdict {
  const resetMs = Math.max(0, paidOffAt - nowMs)
  const left = roomOf(paidOffAt, rule, nowMs)
  return { isAllowed, left, retryMs: retryOf(paidOffAt, rule, nowMs), resetMs }
}

/** How many more there may be now. */
export function roomOf(paidOffAt: number, { limit, periodMs }: RateRule, nowMs: number): number {
  const resetMs = Math.max(0, paidOffAt - nowMs)
  return Math.max(0, Math.floor((periodMs - resetMs + ROUNDING_MS) / (periodMs / limit)))
}
