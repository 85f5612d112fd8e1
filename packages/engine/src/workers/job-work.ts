import { childJobId, taskId, workerOfLane } from '@impresario/core'
import type { ItemView, Job, Storage } from '@impresario/core'

/** Where a task is: in which queue, or in whose hands. */
export interface TaskWhereabouts {
  readonly where: 'waiting' | 'assigned' | 'running' | 'delayed' | 'ended'
  readonly worker: string | undefined
}

/** Where the tasks and children are that a job waits for. */
export interface JobWork {
  /** Tasks that no worker has picked up yet. */
  readonly waiting: number
  /** Tasks that are tried again later. */
  readonly delayed: number
  /** Tasks that workers have in their hands. */
  readonly running: number
  /** Who has them, each once, ten at most. */
  readonly workers: readonly string[]
  /** Children that have not ended, ten ids at most. */
  readonly children: readonly string[]
  /** Tasks beyond those that were looked up. */
  readonly unseen: number
}

const NAMED_MAX = 10
/** Tasks that are looked up for one job, and for all jobs of one question. */
const TASKS_OF_JOB_MAX = 100
const TASKS_MAX = 1_000

interface Wanted {
  readonly ids: readonly string[]
  readonly open: number
  readonly children: readonly string[]
}

/**
 * Says where the work of each job is, from its record and from what the storage's queue shows: a handout writes nothing into
 * the record. One look at the queue for all of them, and none where no task is open. `undefined` for a job that has neither
 * open tasks nor open children.
 */
export async function workOf(
  storage: Pick<Storage, 'peek'>,
  jobs: readonly Job[],
  isLive: (workerId: string) => boolean,
): Promise<readonly (JobWork | undefined)[]> {
  let left = TASKS_MAX
  const wanted = jobs.map((job) => {
    const found = openWork(job, Math.min(left, TASKS_OF_JOB_MAX))
    left -= found.ids.length
    return found
  })
  const ids = wanted.flatMap((one) => one.ids)
  const views = ids.length === 0 ? [] : await storage.peek('tasks', ids)
  let next = 0
  return wanted.map((one) => {
    const own = views.slice(next, next + one.ids.length)
    next += one.ids.length
    return one.open === 0 && one.children.length === 0 ? undefined : summed(one, own, isLive)
  })
}

function openWork({ id, visit, branches }: Job, idsMax: number): Wanted {
  const ids: string[] = []
  const children: string[] = []
  let open = 0
  for (const [name, { call, outcome }] of Object.entries(branches)) {
    if (outcome !== undefined) continue
    if (call.kind === 'child') {
      if (children.length < NAMED_MAX) children.push(childJobId(id, visit, name))
      continue
    }
    open += 1
    if (ids.length < idsMax) ids.push(taskId(id, visit, name))
  }
  return { ids, open, children }
}

function summed(
  { ids, open, children }: Wanted,
  views: readonly (ItemView | undefined)[],
  isLive: (workerId: string) => boolean,
): JobWork {
  const counts = { waiting: 0, delayed: 0, running: 0 }
  const workers = new Set<string>()
  for (const view of views) {
    const { where, worker } = whereaboutsOf(view, isLive)
    if (where === 'ended') continue
    counts[where === 'assigned' ? 'waiting' : where] += 1
    if (where === 'running' && worker !== undefined && workers.size < NAMED_MAX) workers.add(worker)
  }
  return { ...counts, workers: [...workers], children, unseen: open - ids.length }
}

/** What is in no queue has ended: its result is about to be in the record. */
export function whereaboutsOf(view: ItemView | undefined, isLive: (workerId: string) => boolean): TaskWhereabouts {
  if (view === undefined) return { where: 'ended', worker: undefined }
  if (view.lease !== undefined) return { where: 'running', worker: view.lease.holder }
  if (view.dueInMs > 0) return { where: 'delayed', worker: undefined }
  const own = workerOfLane(view.lane)
  // What was given to a worker that has gone is open to all.
  const isAssigned = own !== undefined && isLive(own)
  return isAssigned ? { where: 'assigned', worker: own } : { where: 'waiting', worker: undefined }
}
