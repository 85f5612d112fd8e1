import { startRedis } from '../backing.ts'
import type { Contestant, Payload, Venue, Variant } from '../contest/contestant.ts'
import { loadModules } from '../contest/peer-home.ts'

interface Queue {
  add(name: string, data: Payload): Promise<unknown>
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
}
interface Job {
  readonly name: string
  readonly data: Payload
  getChildrenValues(): Promise<Readonly<Record<string, number>>>
}
interface Worker {
  on(event: 'completed', listener: (job: Job) => void): void
  on(event: 'error', listener: (error: Error) => void): void
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
}
interface Flow {
  readonly name: string
  readonly queueName: string
  readonly data: Payload
  readonly opts: object
  readonly children?: readonly Flow[]
}
interface Modules {
  readonly Queue: new (name: string, options: object) => Queue
  readonly Worker: new (name: string, work: (job: Job) => Promise<number>, options: object) => Worker
  readonly FlowProducer: new (options: object) => { add(flow: Flow): Promise<unknown>; close(): Promise<void> }
}

const modules = (): Promise<Modules> => loadModules('bullmq')
/** As few ended jobs are kept as its guide recommends. */
const KEPT = { removeOnComplete: { count: 1000 }, removeOnFail: { count: 1000 } }

function connection({ url }: Venue): { readonly connection: object } {
  return { connection: { url, maxRetriesPerRequest: null } }
}

function variant(appendfsync: 'everysec' | 'always'): Variant {
  return {
    league: `redis-${appendfsync}`,
    durability: `Redis, appendfsync ${appendfsync}`,
    shape: 'apart',
    note: 'It has no diamonds: A adds a tree D(B, C) when it runs. Four jobs, as for everybody.',
  }
}

function stepOf(name: string, data: Payload, children?: readonly Flow[]): Flow {
  return { name, queueName: 'flow', data, opts: KEPT, ...(children === undefined ? {} : { children }) }
}

export const bullmq: Contestant = {
  title: 'BullMQ',
  home: { folder: 'bullmq', packages: ['bullmq'] },
  variants: { everysec: variant('everysec'), always: variant('always') },
  serve: (name) => startRedis(name === 'always' ? 'always' : 'everysec'),
  async producer(place) {
    const { Queue } = await modules()
    const options = { ...connection(place), defaultJobOptions: KEPT }
    const jobs = new Queue('job', options)
    const flows = new Queue('flow', options)
    await Promise.all([jobs.waitUntilReady(), flows.waitUntilReady()])
    return {
      start: (payload) => jobs.add('job', payload),
      flow: (payload) => flows.add('A', payload),
      async close() {
        await jobs.close()
        await flows.close()
      },
    }
  },
  async worker(place, hooks) {
    const { Worker, FlowProducer } = await modules()
    const options = { ...connection(place), concurrency: hooks.concurrency, ...KEPT }
    const trees = new FlowProducer(connection(place))
    const work = async (job: Job): Promise<number> => {
      hooks.started(job.data)
      return 1
    }
    const step = async (job: Job): Promise<number> => {
      const { name, data } = job
      if (name === 'A') await trees.add(stepOf('D', data, [stepOf('B', data), stepOf('C', data)]))
      if (name !== 'D') return 1
      return Object.values(await job.getChildrenValues()).reduce((sum, value) => sum + value, 0)
    }
    const jobs = new Worker('job', work, options)
    const flows = new Worker('flow', step, options)
    jobs.on('completed', (job) => hooks.ended(job.data))
    flows.on('completed', (job) => {
      if (job.name === 'D') hooks.flowEnded(job.data)
    })
    for (const worker of [jobs, flows]) worker.on('error', (error) => console.error(`bullmq: ${error.message}`))
    await Promise.all([jobs.waitUntilReady(), flows.waitUntilReady()])
    return {
      async close() {
        await Promise.all([jobs.close(), flows.close()])
        await trees.close()
      },
    }
  },
}
