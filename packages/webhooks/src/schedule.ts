const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/**
 * How long after each failed attempt the next one follows: the schedule that Standard Webhooks recommends, ten attempts
 * over about 75 hours. A receiver that breaks on a Friday evening gets its messages on Monday.
 */
export const RETRY_DELAYS_MS: readonly number[] = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
]

/** Messages that failed together must not come back together. */
const JITTER = 0.1

/** A receiver may ask for more time, but not for ever. */
const RETRY_AFTER_MS_MAX = 24 * HOUR

/**
 * The wait before the next attempt, or `undefined` when there is none. What the receiver asked for counts when it is
 * longer than the schedule.
 */
export function retryDelayMs(
  failed: number,
  { chance, retryAfterMs = 0 }: { readonly chance: number; readonly retryAfterMs?: number | undefined },
): number | undefined {
  const base = RETRY_DELAYS_MS[failed - 1]
  return base === undefined ? undefined : Math.max(jittered(base, chance), retryAfterMs)
}

/** A tenth more or less. */
export function jittered(ms: number, chance: number): number {
  return Math.round(ms * (1 - JITTER + 2 * JITTER * chance))
}

/** The header `Retry-After`, in seconds or as a date. What cannot be read, or lies in the past, asks for nothing. */
export function readRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * SECOND : Date.parse(text) - now
  return Number.isFinite(ms) && ms > 0 ? Math.min(ms, RETRY_AFTER_MS_MAX) : undefined
}
