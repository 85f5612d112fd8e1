import { startPostgres } from '../backing.ts'
import { untilNoneOpen } from '../contest/agreement.ts'
import type { Consumer, Contestant, Hooks, Payload, Venue, Producer } from '../contest/contestant.ts'
import { loadModules } from '../contest/peer-home.ts'
import { sleep } from '../measure.ts'
import { POOL_MAX, countOf } from './postgres-pool.ts'
import type { Driver } from './postgres-pool.ts'

interface Handle {
  getResult(): Promise<unknown>
}
type Workflow = (payload: Payload) => Promise<number>
interface Modules {
  readonly DBOS: {
    setConfig(options: object): void
    launch(): Promise<void>
    shutdown(): Promise<void>
    registerWorkflow(workflow: Workflow, options: { readonly name: string }): Workflow
    registerQueue(name: string, options: object): Promise<unknown>
    startWorkflow(workflow: Workflow): (payload: Payload) => Promise<Handle>
    runStep(step: () => Promise<number>, options: { readonly name: string }): Promise<number>
  }
  readonly DBOSClient: {
    create(
      options: object,
    ): Promise<{ enqueue(options: object, payload: Payload): Promise<Handle>; destroy(): Promise<void> }>
  }
  readonly pg: Driver
}

const modules = (): Promise<Modules> => loadModules('dbos')
const VERSION = { appVersion: '1' }
const OPEN = `SELECT count(*) FROM dbos.workflow_status WHERE status IN ('PENDING', 'ENQUEUED')`
/** Instead of its default of a second, which would dominate the measurement. */
const POLL_MS = 10

function systemUrl({ url }: Venue): string {
  return url.replace(/\/postgres$/, '/dbos_sys')
}

async function launch(place: Venue): Promise<Modules['DBOS']> {
  const { DBOS } = await modules()
  const systemDatabaseUrl = systemUrl(place)
  const quiet = { logLevel: 'error', applicationVersion: VERSION.appVersion }
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl, systemDatabasePoolSize: POOL_MAX, ...quiet })
  await DBOS.launch()
  return DBOS
}

function register(
  { DBOS }: Modules,
  hooks: () => Hooks | undefined,
): { readonly job: Workflow; readonly flow: Workflow } {
  const step = (name: string, value: number): Promise<number> => DBOS.runStep(async () => value, { name })
  const job = async (payload: Payload): Promise<number> => {
    hooks()?.started(payload)
    hooks()?.ended(payload)
    return 1
  }
  const flow = async (payload: Payload): Promise<number> => {
    const a = await step('A', 1)
    const [b, c] = await Promise.all([step('B', a + 1), step('C', a + 2)])
    const result = await step('D', b + c)
    hooks()?.flowEnded(payload)
    return result
  }
  return { job: DBOS.registerWorkflow(job, { name: 'job' }), flow: DBOS.registerWorkflow(flow, { name: 'flow' }) }
}

async function queueProducer(place: Venue): Promise<Producer> {
  const { DBOSClient, pg } = await modules()
  const systemDatabaseUrl = systemUrl(place)
  const pool = new pg.Pool({ connectionString: systemDatabaseUrl, max: 1 })
  const options = { systemDatabaseUrl, applicationName: 'bench', systemDatabasePoolSize: POOL_MAX }
  const client = await DBOSClient.create(options)
  const enqueue = (workflowName: string, payload: Payload): Promise<Handle> =>
    client.enqueue({ workflowName, queueName: 'q', ...VERSION }, payload)
  return {
    start: (payload) => enqueue('job', payload),
    flow: (payload) => enqueue('flow', payload),
    settled: () => untilNoneOpen(() => countOf(pool, OPEN)),
    async close() {
      await pool.end()
      await client.destroy()
    },
  }
}

/** For the single process of the worker and the producer of the variant `direct`. */
let directHooks: Hooks | undefined

/** A start has ended when its workflow has: nothing is in between. */
async function directProducer(place: Venue): Promise<Producer> {
  const loaded = await modules()
  const { job, flow } = register(loaded, () => directHooks)
  const DBOS = await launch(place)
  const run = async (workflow: Workflow, payload: Payload): Promise<unknown> =>
    (await DBOS.startWorkflow(workflow)(payload)).getResult()
  return {
    start: (payload) => run(job, payload),
    flow: (payload) => run(flow, payload),
    close: () => DBOS.shutdown(),
  }
}

async function queueWorker(place: Venue, hooks: Hooks): Promise<Consumer> {
  register(await modules(), () => hooks)
  const DBOS = await launch(place)
  await DBOS.registerQueue('q', { workerConcurrency: hooks.concurrency, minPollingIntervalMs: POLL_MS })
  return { close: () => DBOS.shutdown() }
}

export const dbos: Contestant = {
  title: 'DBOS',
  home: { folder: 'dbos', packages: ['@dbos-inc/dbos-sdk'] },
  variants: {
    queue: {
      league: 'postgres',
      durability: 'PostgreSQL, synchronous',
      shape: 'apart',
      jobsMax: 3_000,
      note: `Through its queue, asked every ${POLL_MS} ms instead of every second.`,
    },
    direct: {
      league: 'postgres',
      durability: 'PostgreSQL, synchronous',
      shape: 'together',
      without: ['enqueue', 'drain'],
      note: 'Workflows run where they are started; there is no queue in between.',
    },
  },
  serve: startPostgres,
  async prepare(place) {
    const { pg } = await modules()
    const pool = new pg.Pool({ connectionString: place.url, max: 1 })
    await pool.query('CREATE DATABASE dbos_sys')
    await pool.end()
    const DBOS = await launch(place)
    await DBOS.shutdown()
    // Its connections must be closed before others take over.
    await sleep(100)
  },
  producer: (place) => (place.variant === 'direct' ? directProducer(place) : queueProducer(place)),
  async worker(place, hooks) {
    if (place.variant !== 'direct') return queueWorker(place, hooks)
    directHooks = hooks
    return { close: async () => {} }
  },
}
