import type { JsonObject } from '@impresario/protocol'
import type { Queue } from '../ports/storage.ts'
import { childJobId, endedId, orderId, taskId, timerId, turnId } from './identity.ts'
import { isEnded } from './job.ts'
import type { Job } from './job.ts'

/** An item that the storage must hold for a job, claimed or not. */
export interface WakeUpItem {
  readonly queue: Queue
  readonly id: string
  /** Fields that its payload must have, with these values; it may have more. */
  readonly payload: JsonObject
}

/** A child that a job waits for. It is on its way while it has not ended, or while one of the letters is in the mail. */
export interface AwaitedChild {
  readonly jobId: string
  readonly letters: readonly string[]
}

/** What will move a job. Everything named here must be there as long as the job is as it is. */
export interface WakeUps {
  /** Turns, tasks and the end of a sleep: each of them will move the job. */
  readonly items: readonly WakeUpItem[]
  /** Ends of patience. They come on top: a job that had nothing but its time limit would be stuck until then. */
  readonly timers: readonly WakeUpItem[]
  readonly children: readonly AwaitedChild[]
  /** It waits for the outside: a decision, an event, or a person who looks at a quarantined job. */
  readonly isUpToPerson: boolean
}

/**
 * Says what the storage must hold so that this job goes on (J2). After every commit, the tasks and timers of a job are
 * exactly these. A turn may outlive its job for a moment: the executor that claims it finds it stale and drops it.
 */
export function wakeUps(job: Job): WakeUps {
  const nothing = { items: [], timers: [], children: [] }
  if (isEnded(job)) return { ...nothing, isUpToPerson: false }
  if (job.status === 'quarantined') return { ...nothing, isUpToPerson: true }
  return {
    items: itemsOf(job),
    timers: timersOf(job),
    children: childrenOf(job),
    isUpToPerson: job.wait?.kind === 'human' || job.wait?.kind === 'event',
  }
}

function itemsOf(job: Job): readonly WakeUpItem[] {
  const { id: jobId, visit, wait } = job
  if (wait === undefined) return [turnOf(job)]
  if (wait.kind !== 'sleep') return tasksOf(job)
  return [{ queue: 'timers', id: timerId(jobId, 'sleep'), payload: { jobId, timer: 'sleep', visit } }]
}

function turnOf(job: Job): WakeUpItem {
  return { queue: 'turns', id: turnId(job.id), payload: { visit: job.visit } }
}

function tasksOf(job: Job): WakeUpItem[] {
  const { id: jobId, visit } = job
  const found: WakeUpItem[] = []
  for (const [branch, { call, attempt, outcome }] of Object.entries(job.branches)) {
    if (call.kind !== 'task' || outcome !== undefined) continue
    const payload = { jobId, visit, branch, attempt, type: call.type }
    found.push({ queue: 'tasks', id: taskId(jobId, visit, branch), payload })
  }
  return found
}

function timersOf(job: Job): WakeUpItem[] {
  const { id: jobId, visit, wait } = job
  const found: WakeUpItem[] = []
  // Undoing has no limit: it must not be cut short.
  if (job.executionTimeoutMs !== undefined && job.compensation === undefined) {
    found.push({ queue: 'timers', id: timerId(jobId, 'life'), payload: { jobId, timer: 'life' } })
  }
  if (wait?.kind === 'human' && wait.expiresAt !== undefined) {
    found.push({ queue: 'timers', id: timerId(jobId, 'approval'), payload: { jobId, timer: 'approval', visit } })
  }
  if (wait?.kind === 'human' && wait.remindAt !== undefined) {
    found.push({ queue: 'timers', id: timerId(jobId, 'reminder'), payload: { jobId, timer: 'reminder', visit } })
  }
  if (wait?.kind === 'event' && wait.expiresAt !== undefined) {
    found.push({ queue: 'timers', id: timerId(jobId, 'event'), payload: { jobId, timer: 'event', visit } })
  }
  return found
}

function childrenOf(job: Job): AwaitedChild[] {
  const found: AwaitedChild[] = []
  for (const [branch, { call, outcome }] of Object.entries(job.branches)) {
    if (call.kind !== 'child' || outcome !== undefined) continue
    const jobId = childJobId(job.id, job.visit, branch)
    found.push({ jobId, letters: [orderId(jobId), endedId(jobId)] })
  }
  return found
}

const WAITS: Readonly<Record<string, string>> = {
  task: 'waiting_for_worker',
  child: 'waiting_for_child',
  parallel: 'waiting_for_parallel',
  human: 'waiting_for_human',
  sleep: 'waiting_for_time',
  event: 'waiting_for_event',
}

/** What is wrong with a job's record on its own, one sentence each; empty when nothing is. */
export function contradictions(job: Job): readonly string[] {
  const found: string[] = []
  const { wait, status } = job
  const { items, children, isUpToPerson } = wakeUps(job)
  const isWaiting = Object.values(WAITS).includes(status)
  if (wait === undefined ? isWaiting : WAITS[wait.kind] !== status) {
    found.push(`It is "${status}" and waits for ${wait?.kind ?? 'nothing'}.`)
  }
  const isOpen = !isEnded(job)
  if (isOpen && items.length + children.length === 0 && !isUpToPerson) found.push('Nothing will move it.') // J2
  if (isOpen !== (job.endedAt === undefined)) found.push(`It is "${status}" and ended at ${job.endedAt ?? 'no time'}.`)
  const calls = Object.keys(job.branches).length
  const isCalling = wait?.kind === 'task' || wait?.kind === 'child' || wait?.kind === 'parallel'
  if (calls > 0 && !isCalling) found.push(`It is "${status}" and keeps ${calls} calls.`)
  const isSingle = wait?.kind === 'task' || wait?.kind === 'child'
  if (isSingle && calls !== 1) found.push(`It waits for ${calls} calls at once.`)
  found.push(...oddQuarantine(job))
  if (!isOpen && (job.compensation?.left ?? []).length > 0) found.push('It has ended and not undone what it did.') // J7
  if (status === 'finished' && job.error !== undefined) found.push('It is finished with an error.')
  return found
}

function oddQuarantine({ status, error, onward }: Job): readonly string[] {
  if (status === 'quarantined') return error === undefined ? ['It is quarantined without a reason.'] : []
  return onward === undefined ? [] : [`It is "${status}" and held before a state.`]
}
