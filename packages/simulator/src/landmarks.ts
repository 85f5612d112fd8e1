import { isEnded, workerOfLane } from '@impresario/core'
import type { Job, JobStatus, Lease, TrailEntry } from '@impresario/core'
import type { Mark } from './marks.ts'
import type { Tally } from './tally.ts'

const BY_EVENT: Readonly<Record<string, Mark>> = {
  task_abandoned: 'abandoned task',
  task_expired: 'expired dispatch',
  state_failed: 'handler failed',
  job_quarantined: 'job quarantined',
  job_retried: 'quarantined job retried',
  job_discarded: 'quarantined job discarded',
  decision_made: 'approval decided',
  approval_expired: 'approval expired',
  child_ended: 'child ended',
  approval_reminded: 'person reminded',
  sleep_ended: 'sleep ended',
  event_kept: 'event kept for later',
  event_received: 'event received',
  event_timed_out: 'event did not come',
  'worker_event:tick': 'event of a worker noted',
  'worker_event:found': 'event of a worker moved its job',
}

const CANCELLED_IN: Partial<Record<JobStatus, Mark>> = {
  running: 'job cancelled while running',
  waiting_for_worker: 'job cancelled while waiting for a worker',
  waiting_for_parallel: 'job cancelled while waiting for branches',
  waiting_for_human: 'job cancelled while waiting for a person',
  waiting_for_child: 'job cancelled while waiting for a child',
  waiting_for_time: 'job cancelled while asleep',
  waiting_for_event: 'job cancelled while waiting for an event',
}

/** Recognises rare moments in what a commit added to a job's trail. */
export function markCommit(tally: Tally, before: Job | undefined, job: Job): void {
  for (const { event, note = '' } of newEntries(before, job)) {
    const mark = BY_EVENT[event]
    if (mark !== undefined) tally.sometimes(mark)
    if (event === 'state_failed' && note.includes('did not answer')) tally.sometimes('handler timed out')
    if (event === 'task_failed' && note.includes('No result of')) tally.sometimes('expired result')
    if (event === 'task_failed' && note.includes('run timeout')) tally.sometimes('expired run')
  }
  if (job.visit > (before?.visit ?? 1) + 1) tally.sometimes('turn taken with its cause')
  if (job.error?.message.includes('leaves no time for another try') === true) tally.sometimes('no time for another try')
  if (job.error?.code === 'HANDLER_NEVER_ENDED') tally.sometimes('handler that never ended given up')
  if (job.error?.code === 'LOOP_LIMIT') tally.sometimes('loop limit reached')
  if (job.error?.code === 'EXECUTION_TIMEOUT') tally.sometimes('life ran out')
  if (before === undefined || !isEnded(job) || job.status !== 'cancelled') return
  const mark = CANCELLED_IN[before.status]
  if (mark !== undefined) tally.sometimes(mark)
  if (job.error?.message.startsWith('The job that started it') === true) {
    tally.sometimes('child cancelled by its parent')
  }
}

function newEntries(before: Job | undefined, job: Job): readonly TrailEntry[] {
  const last = before?.trail.at(-1)
  if (last === undefined) return job.trail
  const index = job.trail.lastIndexOf(last)
  return index === -1 ? job.trail.slice(before?.trail.length ?? 0) : job.trail.slice(index + 1)
}

export function markClaims(tally: Tally, leases: readonly Lease[], holder: string | undefined): void {
  for (const { lane, deliveries } of leases) {
    const placedWith = workerOfLane(lane)
    if (placedWith === undefined) tally.sometimes('task taken from a waiting lane')
    else if (placedWith === holder) tally.sometimes('task taken by the worker it was placed with')
    else if (holder !== undefined) tally.sometimes('task stolen through the fallback lane')
    if (deliveries > 1) tally.sometimes('task delivered again')
  }
}
