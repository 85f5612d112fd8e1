import { join } from 'node:path'
import { setImmediate as nextRound } from 'node:timers/promises'
import { openDirectory } from '../backing.ts'
import type { Contestant, Payload, Venue } from '../contest/contestant.ts'
import { loadModules } from '../contest/peer-home.ts'

interface Queue {
  add(name: string, data: Payload): unknown
  close(): void
}
interface Job {
  readonly data: string
}
interface Modules {
  readonly Database: new (file: string) => object
  readonly better: (database: object) => object
  readonly defineQueue: (options: object) => Queue
  readonly defineWorker: (
    name: string,
    work: (job: Job) => Promise<void>,
    options: object,
  ) => { start(): Promise<void>; stop(): Promise<void> }
}

const modules = (): Promise<Modules> => loadModules('plainjob')
const silent = (): void => {}
const logger = { error: console.error, warn: silent, info: silent, debug: silent }

async function open({ url }: Venue): Promise<Queue> {
  const { Database, better, defineQueue } = await modules()
  return defineQueue({ connection: better(new Database(join(url, 'jobs.db'))), logger })
}

/** Type boundary: a row holds what was written to it. */
function payloadOf(job: Job): Payload {
  return JSON.parse(job.data) as Payload
}

export const plainjob: Contestant = {
  title: 'plainjob',
  home: { folder: 'plainjob', packages: ['plainjob'] },
  variants: {
    process: {
      league: 'embedded',
      durability: 'SQLite WAL, synchronous NORMAL',
      shape: 'together',
      without: ['diamonds'],
      note: 'A power cut may undo what it acknowledged. One process, faster than two on one file; one job at a time.',
    },
  },
  serve: async () => openDirectory('plainjob'),
  async producer(place) {
    const queue = await open(place)
    return {
      start: (payload) => {
        queue.add('job', payload)
        // It writes before it returns. A real producer returns to the event loop in between.
        return nextRound()
      },
      close: async () => queue.close(),
    }
  },
  async worker(place, hooks) {
    const { defineWorker } = await modules()
    const queue = await open(place)
    const work = async (job: Job): Promise<void> => hooks.started(payloadOf(job))
    const onCompleted = (job: Job): void => hooks.ended(payloadOf(job))
    const worker = defineWorker('job', work, { queue, logger, onCompleted, pollIntervall: 1 })
    const running = worker.start()
    return {
      async close() {
        await worker.stop()
        await running
      },
    }
  },
}
