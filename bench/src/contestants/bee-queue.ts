import { startRedis } from '../backing.ts'
import type { Contestant, Payload, Venue } from '../contest/contestant.ts'
import { loadModules } from '../contest/peer-home.ts'

interface Job {
  readonly data: Payload
  save(): Promise<unknown>
}
interface Queue {
  ready(): Promise<unknown>
  createJob(data: Payload): Job
  process(concurrency: number, work: (job: Job) => Promise<number>): void
  on(event: 'succeeded', listener: (job: Job) => void): void
  close(): Promise<unknown>
}
interface Modules {
  readonly Queue: new (name: string, options: object) => Queue
}

async function open({ url }: Venue, options: object): Promise<Queue> {
  const { Queue } = await loadModules<Modules>('bee-queue')
  const { hostname: host, port } = new URL(url)
  const queue = new Queue('job', { redis: { host, port: Number(port) }, removeOnSuccess: true, ...options })
  await queue.ready()
  return queue
}

export const beeQueue: Contestant = {
  title: 'bee-queue',
  home: { folder: 'bee-queue', packages: ['bee-queue'] },
  variants: {
    everysec: {
      league: 'redis-everysec',
      durability: 'Redis, appendfsync everysec',
      shape: 'apart',
      without: ['diamonds'],
      note: 'A plain queue: no steps, no priorities, no rate limits.',
    },
  },
  serve: () => startRedis('everysec'),
  async producer(place) {
    const queue = await open(place, { isWorker: false, getEvents: false })
    return {
      start: (payload) => queue.createJob(payload).save(),
      async close() {
        await queue.close()
      },
    }
  },
  async worker(place, hooks) {
    const queue = await open(place, { getEvents: false, sendEvents: false })
    queue.on('succeeded', (job) => hooks.ended(job.data))
    queue.process(hooks.concurrency, async (job) => {
      hooks.started(job.data)
      return 1
    })
    return {
      async close() {
        await queue.close()
      },
    }
  },
}
