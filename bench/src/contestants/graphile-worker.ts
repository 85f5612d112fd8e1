import { startPostgres } from '../backing.ts'
import { untilNoneOpen } from '../contest/agreement.ts'
import type { Contestant, Payload, Variant } from '../contest/contestant.ts'
import { loadModules } from '../contest/peer-home.ts'
import { POOL_MAX, countOf } from './postgres-pool.ts'
import type { Driver } from './postgres-pool.ts'

interface Runner {
  readonly events: {
    on(event: 'job:complete', listener: (news: { readonly job: { readonly payload: Payload } }) => void): void
  }
  stop(): Promise<void>
}
interface Jobs {
  migrate(): Promise<void>
  addJob(name: string, payload: Payload): Promise<unknown>
  release(): Promise<void>
}
interface Modules {
  readonly Logger: new (factory: () => () => void) => object
  readonly makeWorkerUtils: (options: object) => Promise<Jobs>
  readonly run: (options: object) => Promise<Runner>
  readonly pg: Driver
}

const modules = (): Promise<Modules> => loadModules('graphile-worker')
const SILENT = (): (() => void) => () => undefined
const OPEN = 'SELECT count(*) FROM graphile_worker._private_jobs'
/** The settings that its documentation recommends for speed. */
const BATCHES = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }

function variant(note: string): Variant {
  return { league: 'postgres', durability: 'PostgreSQL, synchronous', shape: 'apart', without: ['diamonds'], note }
}

export const graphileWorker: Contestant = {
  title: 'graphile-worker',
  home: { folder: 'graphile-worker', packages: ['graphile-worker'] },
  variants: { defaults: variant('Its defaults.'), batches: variant('With its settings for batches.') },
  serve: startPostgres,
  async prepare({ url }) {
    const { makeWorkerUtils, Logger } = await modules()
    const jobs = await makeWorkerUtils({ connectionString: url, logger: new Logger(SILENT) })
    await jobs.migrate()
    await jobs.release()
  },
  async producer({ url }) {
    const { makeWorkerUtils, Logger, pg } = await modules()
    const pool = new pg.Pool({ connectionString: url, max: POOL_MAX })
    // It requires these.
    pool.on('error', (error) => console.error(`graphile-worker: ${String(error)}`))
    pool.on('connect', () => undefined)
    const jobs = await makeWorkerUtils({ pgPool: pool, logger: new Logger(SILENT) })
    return {
      start: (payload) => jobs.addJob('job', payload),
      settled: () => untilNoneOpen(() => countOf(pool, OPEN)),
      async close() {
        await jobs.release()
        await pool.end()
      },
    }
  },
  async worker({ url, variant: name }, hooks) {
    const { run, Logger } = await modules()
    const { concurrency: concurrentJobs } = hooks
    const settings = name === 'batches' ? BATCHES : {}
    const preset = { worker: { connectionString: url, concurrentJobs, maxPoolSize: POOL_MAX, ...settings } }
    const job = async (payload: Payload): Promise<void> => hooks.started(payload)
    const taskList = { job }
    const runner = await run({ preset, taskList, noHandleSignals: true, crontab: '', logger: new Logger(SILENT) })
    runner.events.on('job:complete', ({ job: { payload } }) => hooks.ended(payload))
    return { close: () => runner.stop() }
  },
}
