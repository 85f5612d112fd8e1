/**
 * Proves that nothing acknowledged is lost, nothing ends twice, and everything continues soon (RELIABILITY §4.5): three
 * orchestrators on one Redis or PostgreSQL, workers, and kills of all of them. `npm run kill:night` and `npm run
 * kill:release` do the same in larger sizes; KILL_SEED repeats a run.
 */
import type { Job, Storage } from '@impresario/core'
import { openPostgresStorage } from '@impresario/storage-postgres'
import { openRedisStorage } from '@impresario/storage-redis'
import { afterEach, expect, test } from 'vitest'
import { startPostgres } from '../servers/postgres-server.ts'
import { startRedis } from '../servers/redis-server.ts'
import { chanceOf } from './chance.fixture.ts'
import { KilledCluster } from './killed-cluster.fixture.ts'
import type { KillReport, KillSizes, StorageServer } from './killed-cluster.fixture.ts'

const MUCH = { jobs: 10_000, inFlight: 100, workers: 50 }
const SIZES: Readonly<Record<string, KillSizes>> = {
  ci: { jobs: 1_000, inFlight: 50, workers: 6, oneOrchestrator: 20, allOrchestrators: 5, worker: 20, storage: 10 },
  night: { ...MUCH, oneOrchestrator: 500, allOrchestrators: 100, worker: 500, storage: 300 },
  release: { ...MUCH, oneOrchestrator: 2_000, allOrchestrators: 500, worker: 2_000, storage: 1_000 },
}
const SIZE = process.env['KILL_SIZE'] ?? 'ci'
const sizes = SIZES[SIZE]
if (sizes === undefined) throw new Error(`KILL_SIZE is one of ${Object.keys(SIZES).join(', ')}.`)
const SEED = Number(process.env['KILL_SEED'] ?? Date.now() % 1_000_000)
const TIMEOUT_MS = SIZE === 'ci' ? 300_000 : 36_000_000
/** One lease and one poll (RELIABILITY, P5). */
const RECOVERY_MS_MAX = 31_000

const endings: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

async function killed(server: StorageServer): Promise<KillReport> {
  const cluster = new KilledCluster(server, sizes as KillSizes, chanceOf(SEED))
  endings.push(() => cluster.stop())
  await cluster.start()
  const report = await cluster.run()
  endings.pop()
  expect(await cluster.stop()).toEqual([0, 0, 0])
  return report
}

interface Verdict {
  readonly seed: number
  readonly lost: readonly string[]
  readonly endedTwice: readonly string[]
  readonly wrong: readonly string[]
  readonly unexpected: number
  readonly leftBehind: readonly string[]
  readonly isSoon: boolean
}

const GOOD: Verdict = {
  seed: SEED,
  lost: [],
  endedTwice: [],
  wrong: [],
  unexpected: 0,
  leftBehind: [],
  isSoon: true,
}

/** Reads the storage itself, after all processes have stopped. */
async function verdictOf(report: KillReport, storage: Storage): Promise<Verdict> {
  const { acknowledged, recoveryMs, kills, retries } = report
  console.log(
    `${JSON.stringify(kills)}, ${acknowledged.size} jobs, ${retries} requests repeated, ` +
      `what the last fault met ended ${recoveryMs} ms after it, seed ${SEED}`,
  )
  const stored = await allJobs(storage)
  const endsOf = (id: string): number =>
    stored.get(id)?.trail.filter(({ event }) => event === 'job_finished').length ?? 0
  const isRight = (index: number, id: string): boolean => {
    const job = stored.get(id)
    return job?.status === 'finished' && job.stateHistory['sum'] === index * 2 * 6
  }
  const ids = [...acknowledged.values()]
  const leftBehind: string[] = []
  for (const queue of ['turns', 'tasks', 'timers', 'mail'] as const) {
    for (const { lane } of await storage.lanes(queue)) leftBehind.push(`${queue} ${lane}`)
  }
  return {
    seed: SEED,
    lost: ids.filter((id) => !stored.has(id)),
    endedTwice: ids.filter((id) => endsOf(id) > 1),
    wrong: [...acknowledged].filter(([index, id]) => !isRight(index, id)).map(([, id]) => id),
    unexpected: stored.size - acknowledged.size,
    leftBehind,
    isSoon: recoveryMs <= RECOVERY_MS_MAX,
  }
}

async function allJobs(storage: Storage): Promise<ReadonlyMap<string, Job>> {
  const stored = new Map<string, Job>()
  let before: string | undefined
  for (;;) {
    const page = await storage.list('job', before === undefined ? { limit: 100 } : { limit: 100, before })
    for (const { id, value } of page) stored.set(id, value)
    if (page.length < 100) return stored
    before = page.at(-1)?.id
  }
}

test(
  '[C-09] [G-02] [I-01] nothing is lost or ended twice while orchestrators, workers and Redis are killed at random',
  { timeout: TIMEOUT_MS, retry: 0 },
  async () => {
    const server = await startRedis()
    endings.push(() => server.remove())
    const report = await killed(server)
    const storage = await openRedisStorage({ url: server.url })
    endings.push(() => storage.close())
    expect(await verdictOf(report, storage)).toEqual(GOOD)
  },
)

test(
  '[C-09] [G-03] [I-01] nothing is lost or ended twice while orchestrators, workers and PostgreSQL are killed at random',
  { timeout: TIMEOUT_MS, retry: 0 },
  async () => {
    const server = await startPostgres([])
    endings.push(() => server.stop())
    const report = await killed(server)
    const storage = await openPostgresStorage({ url: server.url })
    endings.push(() => storage.close())
    expect(await verdictOf(report, storage)).toEqual(GOOD)
  },
)
