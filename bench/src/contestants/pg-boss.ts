import { startPostgres } from '../backing.ts'
import { untilNoneOpen } from '../contest/agreement.ts'
import type { Contestant, Payload, Venue } from '../contest/contestant.ts'
import { loadModules } from '../contest/peer-home.ts'
import { POOL_MAX, countOf } from './postgres-pool.ts'
import type { Driver } from './postgres-pool.ts'

interface Step {
  readonly ref: string
  readonly name: string
  readonly data: Payload
  readonly dependsOn?: readonly string[]
}
interface Boss {
  on(event: 'error', listener: (error: Error) => void): void
  start(): Promise<unknown>
  createQueue(name: string, options: object): Promise<unknown>
  send(queue: string, data: Payload): Promise<unknown>
  flow(steps: readonly Step[]): Promise<unknown>
  work(
    queue: string,
    options: object,
    work: (jobs: readonly { readonly data: Payload }[]) => Promise<void>,
  ): Promise<unknown>
  stop(options: object): Promise<void>
}
interface Modules {
  readonly PgBoss: new (options: object) => Boss
  readonly pg: Driver
}

const modules = (): Promise<Modules> => loadModules('pg-boss')
const STEPS = ['a', 'b', 'c', 'd'] as const
const OPEN = `SELECT count(*) FROM pgboss.job WHERE state < 'completed' AND name IN ('job', 'a', 'b', 'c', 'd')`

async function open({ url }: Venue, supervise: boolean): Promise<Boss> {
  const { PgBoss } = await modules()
  const quick = { useListenNotify: true, flowIntervalSeconds: 1 }
  const boss = new PgBoss({ connectionString: url, max: POOL_MAX, supervise, ...quick })
  boss.on('error', (error) => console.error(`pg-boss: ${error.message}`))
  await boss.start()
  return boss
}

function diamond(data: Payload): readonly Step[] {
  return [
    { ref: 'a', name: 'a', data },
    { ref: 'b', name: 'b', data, dependsOn: ['a'] },
    { ref: 'c', name: 'c', data, dependsOn: ['a'] },
    { ref: 'd', name: 'd', data, dependsOn: ['b', 'c'] },
  ]
}

export const pgBoss: Contestant = {
  title: 'pg-boss',
  home: { folder: 'pg-boss', packages: ['pg-boss'] },
  variants: {
    notify: {
      league: 'postgres',
      durability: 'PostgreSQL, synchronous',
      shape: 'apart',
      note: 'Queues that notify, batches of 100. Steps of diamonds become free once a second, the least that it allows.',
    },
  },
  serve: startPostgres,
  async prepare(place) {
    const boss = await open(place, false)
    for (const queue of ['job', ...STEPS]) await boss.createQueue(queue, { notify: true })
    await boss.stop({ graceful: false })
  },
  async producer(place) {
    const boss = await open(place, false)
    const { pg } = await modules()
    const pool = new pg.Pool({ connectionString: place.url, max: 1 })
    return {
      start: (payload) => boss.send('job', payload),
      flow: (payload) => boss.flow(diamond(payload)),
      settled: () => untilNoneOpen(() => countOf(pool, OPEN)),
      async close() {
        await pool.end()
        await boss.stop({ graceful: false })
      },
    }
  },
  async worker(place, hooks) {
    const boss = await open(place, true)
    // No notification is sent for steps that become ready, so the polls in addition to notifications must be frequent.
    const polls = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 }
    const options = { batchSize: hooks.concurrency, burstWhenBatchFull: true, ...polls }
    await boss.work('job', options, async (jobs) => {
      for (const { data } of jobs) hooks.started(data)
      for (const { data } of jobs) hooks.ended(data)
    })
    for (const step of STEPS) {
      await boss.work(step, options, async (jobs) => {
        if (step === 'd') for (const { data } of jobs) hooks.flowEnded(data)
      })
    }
    return { close: () => boss.stop({ graceful: false }) }
  },
}
