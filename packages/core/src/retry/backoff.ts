export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
  /** By how much each wait is longer than the one before; 2 without it. */
  readonly factor?: number | undefined
  /** Which try has just failed, counted from 1. */
  readonly attempt: number
  /** From 0 up to 1, drawn by the caller. */
  readonly chance: number
}

/** Past this many doublings every real ceiling is reached, and `2 ** n` is still exact. */
const DOUBLINGS_MAX = 40

/**
 * How long to wait before the next try: a whole number of milliseconds.
 *
 * Exponential with full jitter: drawn evenly from between half of `baseMs` and `baseMs` multiplied
 * by `factor` with every attempt. The floor is there because plain full jitter may draw nearly zero, which
 * hits a struggling worker again at once. `maxMs` bounds everything, the floor included. Values
 * that make no sense (negative, NaN) count as zero: a wrong setting must not stop a retry.
 */
export function backoffMs({ baseMs, maxMs, factor = 2, attempt, chance }: Backoff): number {
  const base = atLeastZero(baseMs)
  const ceiling = Math.min(atLeastZero(maxMs), Number.MAX_SAFE_INTEGER)
  const doublings = Math.min(atLeastZero(attempt - 1), DOUBLINGS_MAX)
  const upper = Math.min(ceiling, base * Math.max(1, atLeastZero(factor)) ** doublings)
  const lower = Math.min(upper, base / 2)
  return Math.ceil(lower + Math.min(atLeastZero(chance), 1) * (upper - lower))
}

function atLeastZero(value: number): number {
  return Number.isNaN(value) ? 0 : Math.max(0, value)
}
