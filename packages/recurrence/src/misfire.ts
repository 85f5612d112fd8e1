import { exclusionOf, restricted, UNRESTRICTED } from './calendars/restriction.ts'
import type { Restriction } from './calendars/restriction.ts'
import { jitterMs } from './jitter.ts'
import { refusal } from './refusal.ts'
import { lastOccurrence, occurrencesBetween } from './series.ts'
import type { Occurrence, Series } from './series.ts'
import { LIMITS } from './limits.ts'

/**
 * How to handle occurrences that did not run in time: none of them runs (`skip`), the newest runs for all (`run_once`),
 * or each of the newest `max` runs, oldest first (`catch_up`), spread over `spreadMs`.
 */
export type MisfirePolicy =
  | { readonly kind: 'skip'; readonly graceMs?: number | undefined }
  | { readonly kind: 'run_once'; readonly graceMs?: number | undefined }
  | {
      readonly kind: 'catch_up'
      readonly max: number
      readonly spreadMs?: number | undefined
      readonly graceMs?: number | undefined
    }

export interface MisfireInput {
  readonly series: Series
  readonly restriction?: Restriction | undefined
  /** All occurrences up to here have been handled, run or skipped. */
  readonly handledUpTo: number
  readonly now: number
  readonly policy: MisfirePolicy
  /** Delays each run by up to `maxMs`, always by the same for the same seed and time. */
  readonly jitter?: { readonly maxMs: number; readonly seed: string } | undefined
}

/** An occurrence that runs. */
export interface PlannedRun {
  readonly scheduledFor: number
  readonly runAt: number
}

/**
 * Occurrences that do not run, and why: no orchestrator was running (`missed`), a newer one runs for them (`merged`),
 * there are more newer ones than `catch_up` may run (`over_max`), a calendar excludes them (`excluded`).
 */
export interface SkippedRuns {
  readonly reason: 'missed' | 'merged' | 'over_max' | 'excluded'
  readonly first: number
  readonly last: number
  readonly count: number
  /** There are more than were counted. */
  readonly isMore: boolean
  /** The calendar and the label of its period. */
  readonly calendar?: string | undefined
  readonly label?: string | undefined
}

export interface MisfirePlan {
  /** Oldest first. */
  readonly runs: readonly PlannedRun[]
  readonly skips: readonly SkippedRuns[]
  /** All occurrences up to here are settled with these runs and skips. */
  readonly upTo: number
  /** The next occurrence, with its delay; `undefined` if the series is at its end. */
  readonly next: PlannedRun | undefined
  /** The last handled time is far in the future: a wrong clock wrote it, and counting restarts from now. */
  readonly isClockBack: boolean
}

/** An occurrence that is handled later than this was missed. A change of leaders takes less. */
const GRACE_MS = 60_000
const AHEAD_MS_MAX = 7 * 86_400_000
/** Beyond this number occurrences are not counted individually; the record says that there were more. */
const COUNTED_MAX = 10_000
/** Beyond this number, stretches of excluded times are merged. */
const STRETCHES_MAX = 500
/** Limit per plan; the next plan continues from there. */
const SERVED_MAX = 1_000

/**
 * Decides which of the due occurrences run. Every occurrence in (handledUpTo, upTo] is in exactly one run or one skip.
 * A clock that goes back runs nothing again; one that jumps ahead is like a time in which nothing ran.
 */
export function planMisfires(input: MisfireInput): MisfirePlan {
  const { series, now, policy, restriction = UNRESTRICTED } = input
  const isClockBack = input.handledUpTo > now + AHEAD_MS_MAX
  const handled = isClockBack ? now : input.handledUpTo
  const allowed = restricted(series, restriction)
  const graceFrom = Math.max(handled, now - graceOf(policy) - 1)
  const onTime = handled >= now ? [] : occurrencesBetween(allowed, graceFrom, now, SERVED_MAX)
  const chosen = choose(policy, { series, allowed, after: handled, upTo: graceFrom, onTime })
  const upTo = onTime.length < SERVED_MAX ? Math.max(now, handled) : (onTime.at(-1)?.at ?? now)
  const { lost } = chosen
  return {
    runs: runsOf(input, chosen.late, chosen.onTime),
    skips: [
      ...(lost === undefined ? [] : countSkips(series, lost.reason, handled, lost.upTo)),
      ...excludedBetween(series, restriction, lost?.upTo ?? handled, Math.min(upTo, now)),
    ],
    upTo,
    next: nextRun(input, allowed, upTo),
    isClockBack,
  }
}

function graceOf({ graceMs = GRACE_MS }: MisfirePolicy): number {
  if (!(graceMs >= 0)) throw refusal('misfire', 'The grace of a misfire policy is not negative.')
  return graceMs
}

interface Due {
  readonly series: Series
  /** The series without the occurrences that calendars exclude. */
  readonly allowed: Series
  /** The missed occurrences are in (after, upTo]. */
  readonly after: number
  readonly upTo: number
  /** The occurrences that are at most late, in order. */
  readonly onTime: readonly Occurrence[]
}

interface Chosen {
  /** The missed occurrences that run, oldest first. */
  readonly late: readonly Occurrence[]
  readonly onTime: readonly Occurrence[]
  /** Nothing runs up to here, for this reason. */
  readonly lost: { readonly upTo: number; readonly reason: 'missed' | 'merged' | 'over_max' } | undefined
}

function choose(policy: MisfirePolicy, { series, allowed, after, upTo, onTime }: Due): Chosen {
  const nothingLost: Chosen = { late: [], onTime, lost: undefined }
  if ((series.next(after)?.at ?? Number.POSITIVE_INFINITY) > upTo) return nothingLost
  switch (policy.kind) {
    case 'skip':
      return { ...nothingLost, lost: { upTo, reason: 'missed' } }
    case 'run_once': {
      const newest = lastOccurrence(allowed, after, upTo)
      if (newest === undefined) return nothingLost
      const newestOnTime = onTime.at(-1)
      const lost = { upTo: (newestOnTime ?? newest).at - 1, reason: 'merged' } as const
      return newestOnTime === undefined
        ? { late: [newest], onTime: [], lost }
        : { late: [], onTime: [newestOnTime], lost }
    }
    case 'catch_up': {
      const late = newestOf(allowed, after, upTo, maxOf(policy.max))
      const older = late[0] === undefined ? undefined : lastOccurrence(allowed, after, late[0].at - 1)
      return { late, onTime, lost: older === undefined ? undefined : { upTo: older.at, reason: 'over_max' } }
    }
  }
}

function maxOf(max: number): number {
  if (Number.isInteger(max) && max >= 1 && max <= LIMITS.catchUp) return max
  throw refusal('misfire', `The max of catch_up is a whole number from 1 to ${LIMITS.catchUp}.`)
}

/** The newest `max` in (after, upTo], oldest first. */
function newestOf(series: Series, after: number, upTo: number, max: number): readonly Occurrence[] {
  const newestFirst: Occurrence[] = []
  for (let limit = upTo; newestFirst.length < max;) {
    const found = lastOccurrence(series, after, limit)
    if (found === undefined) break
    newestFirst.push(found)
    limit = found.at - 1
  }
  return newestFirst.reverse()
}

function countSkips(
  series: Series,
  reason: SkippedRuns['reason'],
  after: number,
  upTo: number,
): readonly SkippedRuns[] {
  const counted = occurrencesBetween(series, after, upTo, COUNTED_MAX)
  const [first, last] = [counted[0], counted.at(-1)]
  if (first === undefined || last === undefined) return []
  const isMore = counted.length === COUNTED_MAX
  const lastAt = isMore ? (lastOccurrence(series, last.at, upTo)?.at ?? last.at) : last.at
  return [{ reason, first: first.at, last: lastAt, count: counted.length, isMore: isMore && lastAt > last.at }]
}

/** The occurrences that calendars exclude in (after, upTo]: one skip for each day or window that excludes any. */
function excludedBetween(
  series: Series,
  restriction: Restriction,
  after: number,
  upTo: number,
): readonly SkippedRuns[] {
  if (restriction.exclude.length + restriction.only.length === 0) return []
  const skips: SkippedRuns[] = []
  for (let lower = after; ;) {
    const next = series.next(lower)
    if (next === undefined || next.at > upTo) return skips
    const exclusion = exclusionOf(restriction, next.at)
    if (exclusion === undefined) {
      lower = next.at
      continue
    }
    // The last recorded one stands for the rest.
    const isLast = skips.length === STRETCHES_MAX - 1
    const end = isLast ? upTo : Math.max(next.at, Math.min(upTo, exclusion.until - 1))
    const { calendar, label } = exclusion
    skips.push(...countSkips(series, 'excluded', lower, end).map((skip) => ({ ...skip, calendar, label })))
    lower = end
  }
}

/** Missed occurrences are spread over a time; those that are on time have their jitter. */
function runsOf(
  { policy, now, jitter }: MisfireInput,
  late: readonly Occurrence[],
  onTime: readonly Occurrence[],
): readonly PlannedRun[] {
  const spreadMs = policy.kind === 'catch_up' ? (policy.spreadMs ?? 0) : 0
  const delay = (at: number): number => (jitter === undefined ? 0 : jitterMs(jitter.seed, at, jitter.maxMs))
  return [
    ...late.map(({ at }, index) => ({
      scheduledFor: at,
      runAt: now + Math.floor((index * spreadMs) / late.length) + delay(at),
    })),
    ...onTime.map(({ at }) => ({ scheduledFor: at, runAt: Math.max(now, at + delay(at)) })),
  ]
}

function nextRun({ jitter, now }: MisfireInput, allowed: Series, upTo: number): PlannedRun | undefined {
  const next = allowed.next(Math.max(now, upTo))
  if (next === undefined) return undefined
  const delayMs = jitter === undefined ? 0 : jitterMs(jitter.seed, next.at, jitter.maxMs)
  return { scheduledFor: next.at, runAt: next.at + delayMs }
}
