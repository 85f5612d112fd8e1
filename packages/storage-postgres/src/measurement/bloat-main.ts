/**
 * Whether the tables stay as small as their contents under a steady load: dead rows, sizes, and how long claims take.
 *
 *   npm run bloat -w @impresario/storage-postgres -- [--url postgres://…] [--minutes 10] [--rate 300] [--held 200]
 *
 * Without an address it starts a server of its own, with the settings of a new installation. Ended jobs are kept for a minute,
 * so that after two minutes as much goes as comes. It fails when dead rows or sizes go on growing after that.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Item, Lease, Storage } from '@impresario/core'
import pg from 'pg'
import { openPostgresStorage } from '../open.ts'
import { startLocalServer } from './local-server.ts'
import { percentile, runNoopJob } from './noop-job.ts'

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '300' },
    held: { type: 'string', default: '200' },
    standing: { type: 'string', default: '10000' },
  },
})

const SCHEMA = 'bloat'
const SAMPLE_MS = 15_000
const TICK_MS = 10
const IN_FLIGHT_MAX = 500
/** Random variation between two samples. */
const GROWTH_MAX = 1.5
const SLACK_ROWS = 20_000
const SLACK_BYTES = 4 * 1024 * 1024

interface Sample {
  readonly second: number
  readonly live: number
  readonly dead: number
  readonly tableBytes: number
  readonly indexBytes: number
  readonly hotPercent: number
  readonly vacuums: number
  readonly claims: readonly number[]
}

const line = (text: string): boolean => process.stdout.write(`${text}\n`)

async function sample(client: pg.Client, second: number, claims: readonly number[]): Promise<Sample> {
  const { rows } = await client.query<Record<string, string>>(
    `SELECT sum(n_live_tup) AS live, sum(n_dead_tup) AS dead, sum(pg_table_size(relid)) AS table_bytes,
      sum(pg_indexes_size(relid)) AS index_bytes, sum(n_tup_hot_upd) * 100 / greatest(sum(n_tup_upd), 1) AS hot,
      sum(autovacuum_count) AS vacuums
    FROM pg_stat_user_tables WHERE schemaname = $1`,
    [SCHEMA],
  )
  const of = (name: string): number => Number(rows[0]?.[name] ?? 0)
  return {
    second,
    live: of('live'),
    dead: of('dead'),
    tableBytes: of('table_bytes'),
    indexBytes: of('index_bytes'),
    hotPercent: Math.round(of('hot')),
    vacuums: of('vacuums'),
    claims,
  }
}

function show({ second, live, dead, tableBytes, indexBytes, hotPercent, vacuums, claims }: Sample): void {
  const megabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`
  const sizes = `tables ${megabytes(tableBytes)}, indexes ${megabytes(indexBytes)}`
  const times = `p50 ${percentile(claims, 50).toFixed(1)} ms, p99 ${percentile(claims, 99).toFixed(1)} ms`
  line(
    `${String(second).padStart(4)} s: ${live} live, ${dead} dead; ${sizes}; HOT ${hotPercent} %; ${vacuums} vacuums; claim ${times}`,
  )
}

/** Which table or index is large. */
async function showRelations(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ readonly name: string; readonly size: string }>(
    `SELECT relname AS name, pg_size_pretty(pg_relation_size(oid)) AS size FROM pg_class
    WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'i') ORDER BY pg_relation_size(oid) DESC LIMIT 10`,
    [SCHEMA],
  )
  line(`       ${rows.map(({ name, size }) => `${name} ${size}`).join(', ')}`)
}

const item = (id: string, lane: string): Item => ({ queue: 'tasks', id, lane, priority: 0, delayMs: 0, payload: null })

/** Items that wait all the time, and items that are held and renewed every second. */
async function waitingItems(storage: Storage, waiting: number, held: number): Promise<readonly Lease[]> {
  const ids = (count: number, name: string): readonly Item[] =>
    Array.from({ length: count }, (_, index) => item(`${name} ${index}`, name))
  await storage.commit({ enqueue: [...ids(waiting, 'standing'), ...ids(held, 'held')] })
  return (await storage.claim('tasks', { lanes: ['held'], limit: held, leaseMs: 60_000, holder: 'w' })).leases
}

/** Starts jobs at an even rate until the time is over, and renews the held items. */
async function load(storage: Storage, leases: readonly Lease[], endsAt: number, claims: number[]): Promise<void> {
  const rate = Number(values.rate)
  const begin = performance.now()
  const run = Date.now().toString(36)
  const running = new Set<Promise<void>>()
  let begun = 0
  let renewals = 0
  while (performance.now() < endsAt) {
    const due = ((performance.now() - begin) / 1_000) * rate
    while (begun < due && running.size < IN_FLIGHT_MAX) {
      const id = `${run} ${String(begun++).padStart(9, '0')}`
      const job = runNoopJob(storage, id, { claim: claims, commit: [] }).finally(() => running.delete(job))
      running.add(job)
    }
    if (renewals < (performance.now() - begin) / 1_000) {
      renewals += 1
      const kept = await storage.renew(leases, 60_000)
      if (kept.includes(false)) throw new Error('A lease was lost that was renewed in time')
    }
    await sleep(TICK_MS)
  }
  await Promise.all(running)
  line(`${begun} jobs of ${Math.round(((endsAt - begin) / 1_000) * rate)} that were to be`)
}

/** What grew from the middle of the run to its end. */
function growth(samples: readonly Sample[]): readonly string[] {
  const third = Math.floor(samples.length / 3)
  const [middle, last] = [samples.slice(third, 2 * third), samples.slice(2 * third)]
  const grown = (name: string, of: (one: Sample) => number, slack: number): readonly string[] => {
    const [before, after] = [Math.max(...middle.map(of)), Math.max(...last.map(of))]
    return after > before * GROWTH_MAX + slack ? [`${name} grew from ${before} to ${after}`] : []
  }
  return [
    ...grown('dead rows', ({ dead }) => dead, SLACK_ROWS),
    ...grown('bytes of tables', ({ tableBytes }) => tableBytes, SLACK_BYTES),
    ...grown('bytes of indexes', ({ indexBytes }) => indexBytes, SLACK_BYTES),
  ]
}

const server = values.url === undefined ? await startLocalServer() : undefined
const url = server?.url ?? values.url ?? ''
const client = new pg.Client({ connectionString: url })
await client.connect()
await client.query(`DROP SCHEMA IF EXISTS ${SCHEMA} CASCADE`)
const storage = await openPostgresStorage({ url, namespace: SCHEMA })
try {
  const leases = await waitingItems(storage, Number(values.standing), Number(values.held))
  const claims: number[] = []
  const samples: Sample[] = []
  const begin = performance.now()
  const endsAt = begin + Number(values.minutes) * 60_000
  const loading = load(storage, leases, endsAt, claims)
  while (performance.now() + SAMPLE_MS <= endsAt) {
    await sleep(SAMPLE_MS)
    const one = await sample(client, Math.round((performance.now() - begin) / 1_000), claims.splice(0))
    samples.push(one)
    show(one)
    if (samples.length % 12 === 0) await showRelations(client)
  }
  await loading
  const found = growth(samples)
  for (const text of found) line(text)
  if (found.length === 0) line('nothing grew')
  process.exitCode = found.length === 0 ? 0 : 1
} finally {
  await storage.close()
  await client.end()
  await server?.stop()
}
