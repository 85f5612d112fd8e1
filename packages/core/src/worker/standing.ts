import { taskErrorKind } from '@impresario/protocol'
import type { TaskErrorCode } from '@impresario/protocol'

/** What became of a worker's tasks in one stretch of time. */
export interface Tally {
  /** The beginning of the stretch. */
  readonly at: number
  readonly succeeded: number
  readonly failed: number
  readonly timedOut: number
}

/** What is remembered of a worker's work, newest stretch last. */
export interface Standing {
  readonly score: number
  readonly tallies: readonly Tally[]
  /** When the newest of it was counted. */
  readonly newsAt?: number
  /** When the score was last worked out from the tallies. */
  readonly judgedAt?: number
}

/**
 * How one try of a task ended, as far as it says something of the worker. `permanent` and `violated` are failures that
 * cost more: the one a task that the worker cannot do, the other an answer that breaks its own contract.
 */
export type Deed = 'succeeded' | 'failed' | 'permanent' | 'violated' | 'timedOut'
export type Deeds = Readonly<Record<Deed, number>>

export const NO_DEEDS: Deeds = { succeeded: 0, failed: 0, permanent: 0, violated: 0, timedOut: 0 }

export interface ReputationRules {
  /** Taken off at once for an answer that breaks the worker's own contract. */
  readonly violationPenalty: number
  /** Subtracted for each permanent failure, timeout or abandoned task. */
  readonly failurePenalty: number
  readonly successReward: number
}

export const REPUTATION_RULES: ReputationRules = { violationPenalty: 0.2, failurePenalty: 0.05, successReward: 0.001 }

/** The lowest score: with zero a worker would come after all others for ever. */
const SCORE_MIN = 0.1
/** How much the rate of the window counts against the score as it is. */
const RATE_SHARE = 0.7
export const STANDING_WINDOW_MS = 7 * 86_400_000
/** 28 stretches make the window: a record of 2 kB, which is written again with every batch of news. */
const STRETCH_MS = 6 * 3_600_000
/** With fewer outcomes in the window a single failure would decide; only the immediate changes count until then. */
const OUTCOMES_MIN = 5
/** A worker that got no task for a day gets this much back per hour, so that it is tried again. */
const FORGIVEN_AFTER_MS = 86_400_000
const FORGIVEN_PER_HOUR = 0.01
const HOUR_MS = 3_600_000

/** What a result says of its worker; nothing when it was cancelled or the caller's data were wrong. */
export function deedOf(status: string, code: TaskErrorCode | undefined): Deed | undefined {
  if (status === 'cancelled') return undefined
  if (status !== 'failure') return 'succeeded'
  switch (code) {
    case undefined:
      return 'failed'
    case 'CONTRACT_VIOLATION_ERROR':
      return 'violated'
    case 'TIMEOUT_ERROR':
      return 'timedOut'
    default: {
      const kind = taskErrorKind(code)
      if (kind === 'invalid_input') return undefined
      return kind === 'permanent' ? 'permanent' : 'failed'
    }
  }
}

/** The standing after more work: everything is counted, and what is grave or good moves the score at once. */
export function countDeeds(
  known: Standing | undefined,
  deeds: Deeds,
  now: number,
  rules: ReputationRules = REPUTATION_RULES,
): Standing {
  const before = known ?? { score: 1, tallies: [] }
  const change =
    deeds.succeeded * rules.successReward -
    (deeds.permanent + deeds.timedOut) * rules.failurePenalty -
    deeds.violated * rules.violationPenalty
  return {
    ...before,
    score: asScore(before.score + change),
    tallies: addTally(within(before.tallies, now), deeds, now),
    newsAt: now,
  }
}

/** The new score: the rate of the window and the score so far, where there is news; some trust back where there is none. */
export function judge(standing: Standing, now: number): Standing {
  const tallies = within(standing.tallies, now)
  return { ...standing, tallies, score: asScore(judgedScore(standing, tallies, now)), judgedAt: now }
}

function judgedScore(standing: Standing, tallies: readonly Tally[], now: number): number {
  const { score, newsAt = 0, judgedAt = 0 } = standing
  if (newsAt <= judgedAt) {
    const quietFrom = Math.max(judgedAt, newsAt + FORGIVEN_AFTER_MS)
    return score + (Math.max(0, now - quietFrom) / HOUR_MS) * FORGIVEN_PER_HOUR
  }
  const succeeded = total(tallies, (tally) => tally.succeeded)
  const outcomes = succeeded + total(tallies, (tally) => tally.failed + tally.timedOut)
  if (outcomes < OUTCOMES_MIN) return score
  return RATE_SHARE * (succeeded / outcomes) + (1 - RATE_SHARE) * score
}

function total(tallies: readonly Tally[], of: (tally: Tally) => number): number {
  return tallies.reduce((sum, tally) => sum + of(tally), 0)
}

function within(tallies: readonly Tally[], now: number): readonly Tally[] {
  return tallies.filter(({ at }) => at > now - STANDING_WINDOW_MS)
}

/** A clock that stands behind another one's adds to the newest stretch that there is, so that they stay in order. */
function addTally(tallies: readonly Tally[], deeds: Deeds, now: number): readonly Tally[] {
  const at = Math.floor(now / STRETCH_MS) * STRETCH_MS
  const last = tallies.at(-1)
  const isGoingOn = last !== undefined && last.at >= at
  const open = isGoingOn ? last : { at, succeeded: 0, failed: 0, timedOut: 0 }
  const grown: Tally = {
    at: open.at,
    succeeded: open.succeeded + deeds.succeeded,
    failed: open.failed + deeds.failed + deeds.permanent + deeds.violated,
    timedOut: open.timedOut + deeds.timedOut,
  }
  return [...(isGoingOn ? tallies.slice(0, -1) : tallies), grown]
}

/** Four decimals are more than the counts can tell apart, and keep records and comparisons stable. */
function asScore(score: number): number {
  return Math.round(Math.min(1, Math.max(SCORE_MIN, score)) * 10_000) / 10_000
}
