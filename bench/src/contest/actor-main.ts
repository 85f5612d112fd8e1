/** A process of a contestant: its producer, its worker, or both. Executes the commands of its parent. */
import { obeyParent } from '../channel.ts'
import { CONTESTANTS } from '../contestants/index.ts'
import { inFlightFor, now } from '../measure.ts'
import type { Consumer, Hooks, Payload, Producer } from './contestant.ts'
import type { Orders, WorkKind } from './orders.ts'
import { Tally } from './tally.ts'

const [name = '', variant = '', url = ''] = process.argv.slice(2)
const contestant = CONTESTANTS[name]
if (contestant === undefined) throw new Error(`There is no contestant "${name}".`)
const place = { url, variant }
const tallies = { job: new Tally(), flow: new Tally() }
const produced = { job: 0, flow: 0 }
let producer: Producer | undefined
let worker: Consumer | undefined
/** Timed jobs that have started, and those that a caller waits for. */
const startedAt = new Map<number, number>()
const onStart = new Map<number, (at: number) => void>()

function hooksFor(concurrency: number): Hooks {
  return {
    concurrency,
    started: ({ index, sentAt }) => {
      if (sentAt === undefined) return
      const at = now()
      startedAt.set(index, at)
      onStart.get(index)?.(at)
    },
    ended: ({ index, sentAt }) => {
      if (sentAt === undefined) tallies.job.add(index)
    },
    flowEnded: ({ index }) => tallies.flow.add(index),
  }
}

function mustHave<T>(part: T | undefined, what: string): T {
  if (part === undefined) throw new Error(`${name} has no ${what} here.`)
  return part
}

function starter(kind: WorkKind): (payload: Payload) => Promise<unknown> {
  const own = mustHave(producer, 'producer')
  return kind === 'job' ? (payload) => own.start(payload) : (payload) => mustHave(own.flow?.(payload), 'diamonds')
}

obeyParent<Orders>({
  prepare: async () => contestant.prepare?.(place),
  openProducer: async () => {
    producer = await contestant.producer(place)
  },
  openWorker: async (concurrency) => {
    worker = await contestant.worker(place, hooksFor(concurrency))
  },
  introduce: async () => contestant.introduce?.(place),
  produce: async ({ kind, load }) => {
    const start = starter(kind)
    const beganAt = now()
    const first = produced[kind]
    const count = await inFlightFor(load, (index) => start({ index: first + index }))
    produced[kind] += count
    return { count, beganAt, endedAt: now() }
  },
  sendOne: async (index) => {
    const sentAt = now()
    await mustHave(producer, 'producer').start({ index, sentAt })
    return { sentAt }
  },
  awaitStart: async (index) => {
    const at = startedAt.get(index) ?? (await new Promise<number>((resolve) => onStart.set(index, resolve)))
    return { startedAt: at }
  },
  mark: async () => {
    tallies.job.mark()
    tallies.flow.mark()
  },
  awaitCount: ({ kind, distinct }) => tallies[kind].until(distinct),
  count: async (kind) => tallies[kind].count(),
  settle: async () => {
    await producer?.settled?.()
    return { settledAt: producer?.settled === undefined ? 0 : now() }
  },
  close: async () => {
    await worker?.close()
    await producer?.close()
  },
})
