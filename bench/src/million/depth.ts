import type { Lease, Storage } from '@impresario/core'
import { inFlight, now, percentile } from '../measure.ts'
import { endedPut } from './workload.ts'
import type { JobPut, Workload } from './workload.ts'

export interface Rates {
  /** Claimed and settled, one at a time. */
  readonly onePerS: number
  readonly oneP50Ms: number
  readonly oneP99Ms: number
  /** By twenties. */
  readonly twentyPerS: number
  readonly twentyP50Ms: number
  readonly twentyP99Ms: number
}

/** Jobs of one commit while a queue is filled, and commits under way. */
const FILL_BATCH = 200
const FILL_WIDTH = 4
/** Tasks in hand at once. */
const WIDTH = 64
/** Tasks of one round. Then as many come again, so that the queue stays as long as it was. */
const ROUND = 500
const LEASE_MS = 60_000
const WARM_UP_MS = 1_000

export async function fill(storage: Storage, workload: Workload, count: number): Promise<void> {
  const batches = Math.ceil(count / FILL_BATCH)
  await inFlight(batches, FILL_WIDTH, async (index) => {
    const jobs = Math.min(FILL_BATCH, count - index * FILL_BATCH)
    const outcome = await storage.commit(workload.batch(jobs))
    if (outcome !== 'committed') throw new Error(`A batch of ${jobs} new jobs was refused: ${outcome}.`)
  })
  await storage.sync()
}

export async function claimRates(storage: Storage, workload: Workload, ms: number): Promise<Rates> {
  await rounds(storage, workload, { limit: 1, ms: WARM_UP_MS })
  const one = await rounds(storage, workload, { limit: 1, ms })
  const twenty = await rounds(storage, workload, { limit: 20, ms })
  return {
    onePerS: one.perS,
    oneP50Ms: percentile(one.claimMs, 50),
    oneP99Ms: percentile(one.claimMs, 99),
    twentyPerS: twenty.perS,
    twentyP50Ms: percentile(twenty.claimMs, 50),
    twentyP99Ms: percentile(twenty.claimMs, 99),
  }
}

interface Pace {
  /** Of one claim. */
  readonly limit: number
  readonly ms: number
}

async function rounds(
  storage: Storage,
  workload: Workload,
  pace: Pace,
): Promise<{ readonly perS: number; readonly claimMs: readonly number[] }> {
  const claimMs: number[] = []
  let spentMs = 0
  let done = 0
  while (spentMs < pace.ms) {
    const begin = now()
    done += await round(storage, workload.lane, pace.limit, claimMs)
    spentMs += now() - begin
    await fill(storage, workload, ROUND)
  }
  return { perS: done / (spentMs / 1000), claimMs }
}

async function round(storage: Storage, lane: string, limit: number, claimMs: number[]): Promise<number> {
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
  return ROUND
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
