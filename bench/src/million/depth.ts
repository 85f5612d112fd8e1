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

/** Jobs of one commit while a queue is filled, and commits under way. */
const FILL_BATCH = 200
const FILL_WIDTH = 4
/** Tasks in hand at once. */
const WIDTH = 64
/** Tasks of one round. Then as many come again, so that the queue stays as long as it was. */
const ROUND = 500
const LEASE_MS = 60_000

export async function fill(storage: Storage, workload: Workload, count: number): Promise<void> {
  const batches = Math.ceil(count / FILL_BATCH)
  await inFlight(batches, FILL_WIDTH, async (index) => {
    const jobs = Math.min(FILL_BATCH, count - index * FILL_BATCH)
    const outcome = await storage.commit(workload.batch(jobs))
    if (outcome !== 'committed') throw new Error(`A batch of ${jobs} new jobs was refused: ${outcome}.`)
    // As whoever creates jobs does it. It also keeps what is not on disk yet from piling up in memory.
    await storage.sync()
  })
}

/** Rounds of claims. What is put into the queue between them is not counted. */
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
    // As the desk does it: the worker is told when its leases are safe, and thanked when its results are.
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

/** The boundary at which a task's payload is believed to be the engine's. */
function jobIdOf({ payload }: Lease): string {
  return (payload as { readonly jobId: string }).jobId
}
