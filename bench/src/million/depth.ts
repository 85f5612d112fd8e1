import type { Lease, Storage } from '@impresario/core'
import { inFlight, now } from '../measure.ts'
import { endedPut } from './workload.ts'
import type { JobPut, Workload } from './workload.ts'

export interface Slice {
  /** Tasks that were claimed and settled, and the time that it took. */
  readonly done: number
  readonly ms: number
  /** How long each claim took. */
  readonly claimMs: readonly number[]
}

interface Pace {
  /** Of one claim. */
  readonly limit: number
  readonly ms: number
}

/** Jobs per commit while a queue is filled, and concurrent commits. */
const FILL_BATCH = 200
const FILL_WIDTH = 4
/** Tasks claimed at once. */
const WIDTH = 64
/** Tasks per round. Then the same number is added again, so that the queue keeps its length. */
const ROUND = 500
const LEASE_MS = 60_000

export async function fill(storage: Storage, workload: Workload, count: number): Promise<void> {
  const batches = Math.ceil(count / FILL_BATCH)
  await inFlight(batches, FILL_WIDTH, async (index) => {
    const jobs = Math.min(FILL_BATCH, count - index * FILL_BATCH)
    const outcome = await storage.commit(workload.batch(jobs))
    if (outcome !== 'committed') throw new Error(`A batch of ${jobs} new jobs was refused: ${outcome}.`)
    // As a creator of jobs does it. It also prevents unwritten data from accumulating in memory.
    await storage.sync()
  })
}

/** Rounds of claims. Filling the queue between them is not counted. */
export async function slice(storage: Storage, workload: Workload, { limit, ms }: Pace): Promise<Slice> {
  const claimMs: number[] = []
  let spentMs = 0
  let done = 0
  while (spentMs < ms) {
    const begin = now()
    await round(storage, workload.lane, limit, claimMs)
    spentMs += now() - begin
    done += ROUND
    await fill(storage, workload, ROUND)
  }
  return { done, ms: spentMs, claimMs }
}

async function round(storage: Storage, lane: string, limit: number, claimMs: number[]): Promise<void> {
  const seen = new Set<string>()
  await inFlight(ROUND / limit, Math.max(1, Math.round(WIDTH / limit)), async () => {
    const begin = now()
    const { leases } = await storage.claim('tasks', { lanes: [lane], limit, leaseMs: LEASE_MS, holder: 'bench' })
    claimMs.push(now() - begin)
    if (leases.length !== limit) throw new Error(`A claim of ${limit} from a full queue got ${leases.length}.`)
    for (const { id } of leases) seen.add(id)
    // As the desk does it: the worker gets its tasks when its leases are durable, and its acknowledgement when its
    // results are.
    await storage.sync()
    await Promise.all(leases.map((lease) => settle(storage, lease)))
    await storage.sync()
  })
  if (seen.size !== ROUND) throw new Error(`${ROUND} claims got ${seen.size} different tasks.`)
}

async function settle(storage: Storage, lease: Lease): Promise<void> {
  const id = jobIdOf(lease)
  const stored = await storage.read('job', id)
  if (stored === undefined) throw new Error(`The job ${id} of a claimed task is not there.`)
  const job: JobPut = { kind: 'job', id, value: stored.value, version: stored.version }
  const { queue, id: task, token } = lease
  const outcome = await storage.commit({ put: [endedPut(job)], settle: { queue, id: task, token } })
  if (outcome !== 'committed') throw new Error(`A settled task was refused: ${outcome}.`)
}

/** Type boundary: a task's payload is the engine's. */
function jobIdOf({ payload }: Lease): string {
  return (payload as { readonly jobId: string }).jobId
}
