import { join } from 'node:path'
import { setImmediate as nextRound } from 'node:timers/promises'
import { openDirectory, startPostgres } from '../backing.ts'
import { untilNoneOpen } from '../contest/agreement.ts'
import type { Contestant, Payload, Venue } from '../contest/contestant.ts'
import { loadModules } from '../contest/peer-home.ts'

interface Backend {
  countWorkflowRuns(): Promise<Readonly<Record<string, number>>>
  stop(): Promise<void>
}
interface Steps {
  run(options: { readonly name: string }, work: () => Promise<number>): Promise<number>
}
interface Context {
  readonly input: Payload
  readonly step: Steps
}
interface Workflows {
  runWorkflow(spec: { readonly name: string }, input: Payload): Promise<unknown>
  implementWorkflow(spec: { readonly name: string }, work: (context: Context) => Promise<number>): void
  newWorker(options: { readonly concurrency: number }): { start(): Promise<void>; stop(): Promise<void> }
}
interface Modules {
  readonly OpenWorkflow: new (options: { readonly backend: Backend }) => Workflows
  readonly BackendPostgres: { connect(url: string): Promise<Backend> }
  readonly BackendSqlite: { connect(file: string): Backend | Promise<Backend> }
}

const modules = (): Promise<Modules> => loadModules('openworkflow')

async function connect({ url, variant }: Venue): Promise<Backend> {
  const { BackendPostgres, BackendSqlite } = await modules()
  return variant === 'sqlite' ? BackendSqlite.connect(join(url, 'workflows.db')) : BackendPostgres.connect(url)
}

async function openRuns(backend: Backend): Promise<number> {
  const { pending = 0, running = 0 } = await backend.countWorkflowRuns()
  return pending + running
}

async function diamond({ step }: Context): Promise<number> {
  const run = (name: string, value: number): Promise<number> => step.run({ name }, async () => value)
  const a = await run('A', 1)
  const [b, c] = await Promise.all([run('B', a + 1), run('C', a + 2)])
  return run('D', b + c)
}

export const openworkflow: Contestant = {
  title: 'openworkflow',
  home: { folder: 'openworkflow', packages: ['openworkflow'] },
  variants: {
    postgres: {
      league: 'postgres',
      durability: 'PostgreSQL, synchronous',
      shape: 'apart',
      jobsMax: 1_000,
      flowsMax: 400,
    },
    sqlite: {
      league: 'embedded',
      durability: 'SQLite WAL, synchronous FULL',
      shape: 'together',
      jobsMax: 1_000,
      flowsMax: 400,
      note: 'One process: of two on one file, one finds it locked at times.',
    },
  },
  serve: async (variant) => (variant === 'sqlite' ? openDirectory('openworkflow') : startPostgres()),
  async prepare(place) {
    const backend = await connect(place)
    await backend.stop()
  },
  async producer(place) {
    const { OpenWorkflow } = await modules()
    const backend = await connect(place)
    const workflows = new OpenWorkflow({ backend })
    const isOneProcess = place.variant === 'sqlite'
    const run = async (name: string, payload: Payload): Promise<void> => {
      await workflows.runWorkflow({ name }, payload)
      // It writes before it returns, and does not let the worker beside it run.
      if (isOneProcess) await nextRound()
    }
    return {
      start: (payload) => run('job', payload),
      flow: (payload) => run('flow', payload),
      settled: () => untilNoneOpen(() => openRuns(backend)),
      close: () => backend.stop(),
    }
  },
  async worker(place, hooks) {
    const { OpenWorkflow } = await modules()
    const backend = await connect(place)
    const workflows = new OpenWorkflow({ backend })
    workflows.implementWorkflow({ name: 'job' }, async ({ input }) => {
      hooks.started(input)
      hooks.ended(input)
      return 1
    })
    workflows.implementWorkflow({ name: 'flow' }, async (context) => {
      const result = await diamond(context)
      hooks.flowEnded(context.input)
      return result
    })
    const worker = workflows.newWorker({ concurrency: hooks.concurrency })
    await worker.start()
    return {
      async close() {
        await worker.stop()
        await backend.stop()
      },
    }
  },
}
