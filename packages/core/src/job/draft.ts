import { LIMITS } from '@impresario/protocol'
import type { Script } from '../blueprint/script.ts'
import type { Decision, Effect } from './effect.ts'
import type { Branch, EventWait, Job, JobError, JobFailure, Outcome, TrailEntry } from './job.ts'
import type { JsonObject } from '@impresario/protocol'
import { childJobId, endedId, messageId, orderId, tryId } from './identity.ts'
import { preserveResults } from './result.ts'

/**
 * A decision in the making: the job as it will be, and what must follow. Lives only inside one
 * call of `decide`; the functions below are the only ways a job moves.
 *
 * `job` is the draft's own copy, made once and changed in place, whole values at a time: what they
 * hold may be shared with the job as it was. A decision takes up to six steps, and a copy for each,
 * or a copy whose fields come and go, was a sixth of the CPU of a busy engine.
 */
export interface Draft {
  readonly script: Script
  readonly at: number
  readonly job: Mutable<Job>
  readonly before: Job
  /** A person edited the state history: results that refer to it are meant too. */
  isEdited: boolean
  readonly effects: Effect[]
  /** For the history. */
  readonly entries: TrailEntry[]
  /** For the job's record. */
  readonly kept: TrailEntry[]
  /** Tries that are taken back from workers. */
  readonly takenBack: string[]
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export function openDraft(script: Script, job: Job, at: number): Draft {
  return {
    script,
    at,
    job: copyOf(job),
    before: job,
    isEdited: false,
    effects: [],
    entries: [],
    kept: [],
    takenBack: [],
  }
}

/** Every field is written out, so that all jobs have one shape, whether they were just made or come from a disk. */
function copyOf(job: Job): Mutable<Job> {
  return {
    id: job.id,
    blueprint: job.blueprint,
    blueprintVersion: job.blueprintVersion,
    client: job.client,
    status: job.status,
    state: job.state,
    visit: job.visit,
    enteredAt: job.enteredAt,
    loopFrom: job.loopFrom,
    failures: job.failures,
    begun: job.begun,
    begunBy: job.begunBy,
    lost: job.lost,
    initialData: job.initialData,
    stateHistory: job.stateHistory,
    results: job.results,
    wait: job.wait,
    branches: job.branches,
    aggregationResults: job.aggregationResults,
    priority: job.priority,
    parent: job.parent,
    depth: job.depth,
    dispatchTimeoutMs: job.dispatchTimeoutMs,
    resultTimeoutMs: job.resultTimeoutMs,
    executionTimeoutMs: job.executionTimeoutMs,
    tracing: job.tracing,
    metadata: job.metadata,
    webhookUrl: job.webhookUrl,
    workerEvents: job.workerEvents,
    progress: job.progress,
    usage: job.usage,
    takenBack: job.takenBack,
    error: job.error,
    failure: job.failure,
    event: job.event,
    events: job.events,
    onward: job.onward,
    undos: job.undos,
    compensation: job.compensation,
    result: job.result,
    commands: job.commands,
    trail: job.trail,
    createdAt: job.createdAt,
    updatedAt: job.updatedAt,
    endedAt: job.endedAt,
  } satisfies { [K in keyof Required<Job>]: Job[K] }
}

/** Closes the draft: the newest moments go into the record, older ones make room. */
export function conclude(draft: Draft): Decision {
  const { job, effects, entries, kept, takenBack } = draft
  settleResults(draft)
  const trail = [...job.trail, ...kept]
  const extra = trail.length - LIMITS.trailEntriesMax
  draft.job.trail = extra > 0 ? trail.slice(extra) : trail
  draft.job.updatedAt = draft.at
  if (takenBack.length > 0) draft.job.takenBack = newest(job.takenBack ?? [], takenBack)
  return { type: 'decided', job, effects, entries }
}

/** Results outlive what is written over them in the state history. */
function settleResults(draft: Draft): void {
  const { job, before } = draft
  const isEnded = job.endedAt !== undefined
  const isSame = job.results === before.results && job.stateHistory === before.stateHistory
  if (job.results === undefined || (isSame && !isEnded)) return
  // An ended job keeps few bytes of them, for a job that is run again from one of its states.
  const bytesMax = isEnded ? LIMITS.endedResultsBytesMax : LIMITS.contextBytesMax
  const { results, dropped } = preserveResults({ before: draft.isEdited ? job : before, after: job, bytesMax })
  draft.job.results = results
  if (isEnded) return
  for (const { of, state } of dropped) {
    note(draft, 'result_dropped', `the result of "${of}" in "${state}" is not kept: all results together are too large`)
  }
}

/** Tries that are remembered as taken back, beside those of the last time: all of a fan-out may be taken back at once. */
const TAKEN_BACK_MIN = 20

function newest(before: readonly string[], now: readonly string[]): readonly string[] {
  return [...before, ...now].slice(-Math.max(TAKEN_BACK_MIN, now.length))
}

/** What the history says of a moment beyond what fits into a record that is written with every step. */
export type Facts = Omit<TrailEntry, 'at' | 'event' | 'state' | 'note'>

/** A notable moment: for the record and for the history. */
export function note(draft: Draft, event: string, text?: string, facts?: Facts): void {
  keep(draft, event, text, facts)
  remark(draft, event, text, facts)
}

/** For the record alone: one line where the history has many. */
export function keep(draft: Draft, event: string, text?: string, facts: Facts = NO_FACTS): void {
  draft.kept.push(entryOf(draft, event, text, facts))
}

/** For the history alone: the record says it in other words. */
export function remark(draft: Draft, event: string, text?: string, facts: Facts = NO_FACTS): void {
  // Every field is written out: entries of one shape cost a third of those that are put together field by field.
  const { workerId, taskId, attempt, durationMs, previousState, nextState, visit, code } = facts
  const { at, job } = draft
  const { state } = job
  draft.entries.push({
    at,
    event,
    state,
    note: text,
    workerId,
    taskId,
    attempt,
    durationMs,
    previousState,
    nextState,
    visit,
    code,
  })
}

const NO_FACTS: Facts = {}

/** Of the facts only what people look for first, who did it and how long it took, and which delivery it was. */
function entryOf({ at, job }: Draft, event: string, text: string | undefined, facts: Facts): TrailEntry {
  const { state } = job
  const { workerId, durationMs, delivery } = facts
  if (delivery !== undefined) return { at, event, state, note: text, workerId, durationMs, delivery }
  const entry = text === undefined ? { at, event, state } : { at, event, state, note: text }
  if (durationMs === undefined) return workerId === undefined ? entry : { ...entry, workerId }
  return workerId === undefined ? { ...entry, durationMs } : { ...entry, workerId, durationMs }
}

/** The handler's state is behind the job. */
export function finishState(draft: Draft, nextState: string | undefined): void {
  const { enteredAt, createdAt, visit } = draft.job
  remark(draft, 'state_finished', undefined, { durationMs: draft.at - (enteredAt ?? createdAt), nextState, visit })
}

/** Tells the job's webhook, if it has one. `what` names the message among those of this visit. */
export function announce(draft: Draft, event: string, what: string, details?: JsonObject): void {
  const { webhookUrl, id, visit } = draft.job
  if (webhookUrl === undefined) return
  const message = { type: 'webhook', event, messageId: messageId(id, visit, what) } as const
  draft.effects.push(details === undefined ? message : { ...message, details })
}

/** Leaves whatever the job is waiting for: open tasks are taken back, open children are told to stop. */
export function leaveVisit(draft: Draft): void {
  const { job } = draft
  for (const [name, branch] of Object.entries(job.branches)) dropBranch(draft, name, branch)
  if (job.wait?.kind === 'event') leaveEvent(draft, job.wait)
  if (job.wait?.kind === 'sleep') draft.effects.push({ type: 'dropTimer', timer: 'sleep' })
  if (job.wait?.kind !== 'human') return
  if (job.wait.expiresAt !== undefined) draft.effects.push({ type: 'dropTimer', timer: 'approval' })
  if (job.wait.remindAt !== undefined) draft.effects.push({ type: 'dropTimer', timer: 'reminder' })
}

function leaveEvent({ job, effects }: Draft, { topic, key, expiresAt }: EventWait): void {
  if (expiresAt !== undefined) effects.push({ type: 'dropTimer', timer: 'event' })
  if (key !== undefined) effects.push({ type: 'unlisten', visit: job.visit, topic, key })
}

/** The job is in this state now, and nothing of the visit before is left with it. */
export function beginVisit(draft: Draft, state: string): void {
  draft.job.status = 'running'
  draft.job.state = state
  draft.job.visit += 1
  draft.job.enteredAt = draft.at
  draft.job.failures = 0
  draft.job.failure = undefined
  draft.job.event = undefined
  draft.job.onward = undefined
  draft.job.begun = undefined
  draft.job.begunBy = undefined
  draft.job.lost = undefined
  draft.job.wait = undefined
  draft.job.branches = {}
  draft.job.aggregationResults = undefined
  draft.job.progress = undefined
  draft.job.workerEvents = undefined
}

export function dropBranch(draft: Draft, name: string, branch: Branch): void {
  if (branch.outcome !== undefined) return
  const { job } = draft
  if (branch.call.kind === 'task') {
    const dropped = { visit: job.visit, branch: name, attempt: branch.attempt }
    draft.effects.push({ type: 'dropTask', ...dropped })
    draft.takenBack.push(tryId(dropped))
    return
  }
  const childId = childJobId(job.id, job.visit, name)
  draft.effects.push({
    type: 'mail',
    to: childId,
    letterId: orderId(childId),
    letter: {
      type: 'cancelled',
      at: draft.at,
      by: `job ${job.id}`,
      reason: 'The job that started it went on without it.',
    },
  })
}

/** Gives the job its whole time limit, if it has one. */
export function armLife(draft: Draft): void {
  const { executionTimeoutMs, visit } = draft.job
  if (executionTimeoutMs === undefined) return
  draft.effects.push({ type: 'timer', timer: 'life', visit, afterMs: executionTimeoutMs })
}

export function dropLife(draft: Draft): void {
  if (draft.job.executionTimeoutMs !== undefined) draft.effects.push({ type: 'dropTimer', timer: 'life' })
}

export function mailParent(draft: Draft, outcome: Outcome | 'quarantined'): void {
  const { parent, id, result, error } = draft.job
  if (parent === undefined) return
  draft.effects.push({
    type: 'mail',
    to: parent.jobId,
    letterId: outcome === 'quarantined' ? `${id}.quarantined.${draft.job.visit}` : endedId(id),
    letter: {
      type: 'childEnded',
      at: draft.at,
      visit: parent.visit,
      branch: parent.branch,
      outcome,
      result,
      error: error === undefined ? undefined : { code: error.code, message: error.message },
    },
  })
}

/** The same as a handler sees it: without the stack, which may show what clients must not see. */
export function failureOf({ code, message, state }: Omit<JobError, 'stack'>, attempts = 1): JobFailure {
  return { code, message, state, attempts }
}

/** A target that the blueprint itself declared, never one inherited from `Object`. */
export function ownTransition(transitions: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(transitions, key) ? transitions[key] : undefined
}
