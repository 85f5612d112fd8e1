import { setTimeout as sleep } from 'node:timers/promises'
import { createWorker, outcome } from 'impresario/worker'
import type { Task, Worker, WorkerOptions } from 'impresario/worker'
import { PROFILE } from './blueprints.ts'
import { shop } from './contract.ts'

/** A task that somebody was given. */
export interface Assignment {
  readonly worker: string
  readonly type: string
  readonly jobId: string
  readonly attempt: number
}

interface CrewOptions {
  /** Inside this process, without a network. */
  readonly inside: Pick<WorkerOptions, 'transport'>
  /** By HTTP, as from any other machine. */
  readonly outside: Pick<WorkerOptions, 'url' | 'token'>
  readonly tell: (worker: string, what: string) => void
  readonly onAssigned: (assignment: Assignment) => void
  /** The rack has been told to stop; here is why. */
  readonly onRackStopped: (reason: unknown) => void
}

const DPI_MIN = 300
/** Long enough to be seen, short enough not to bore. */
const WORK_MS = 120
const HOUR_MS = 3_600_000
const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** Three kinds of worker: two in the studio, two presses, two inspectors. Prices are per second of work. */
export function createCrew(options: CrewOptions): readonly Worker[] {
  const { inside, outside } = options
  const studio = { ...inside, type: 'studio', log: QUIET, concurrency: 4 }
  const press = { ...outside, type: 'press', log: QUIET, concurrency: 8, webSockets: true }
  const inspector = { ...outside, type: 'inspector', log: QUIET, concurrency: 8 }
  return [
    withProfile(designer(createWorker({ ...studio, id: 'lena', costPerSecond: 0.03 }), options)),
    designer(createWorker({ ...studio, id: 'otto', costPerSecond: 0.01 }), options),
    printer(createWorker({ ...press, id: 'press-east', costPerSecond: 0.08 }), options),
    printer(createWorker({ ...press, id: 'press-west', costPerSecond: 0.09 }), options),
    examiner(createWorker({ ...inspector, id: 'ines', costPerSecond: 0.025 }), options, () => false),
    examiner(createWorker({ ...inspector, id: 'tim', costPerSecond: 0.02 }), options, everySecond()),
  ]
}

/** Has the colour profile in memory, and says so: work that needs it is faster here. */
function withProfile(worker: Worker): Worker {
  worker.setHot(PROFILE)
  return worker
}

function everySecond(): () => boolean {
  let count = 0
  return () => {
    count += 1
    return count % 2 === 0
  }
}

function noted(worker: Worker, { onAssigned }: CrewOptions): Worker {
  return worker.use(async ({ task }, next) => {
    const { type, jobId, attempt } = task
    onAssigned({ worker: worker.id, type, jobId, attempt })
    return next()
  })
}

async function work(task: Task): Promise<void> {
  await sleep(WORK_MS, undefined, { signal: task.signal })
}

function designer(worker: Worker, options: CrewOptions): Worker {
  const tell = (what: string): void => options.tell(worker.id, what)
  const { check, retouch, count, pack } = shop
  return noted(worker, options).handle(
    { check, retouch, count, pack },
    {
      check: async ({ file, dpi }, task) => {
        await work(task)
        if (dpi < DPI_MIN) {
          tell(`checks ${file}: ${dpi} dpi are too coarse`)
          return outcome('too_coarse', { dpi, needed: DPI_MIN })
        }
        tell(`checks ${file}: fine`)
        return { file, dpi }
      },
      retouch: async ({ file }, task) => {
        await work(task)
        const better = file.replace('.pdf', '-sharp.pdf')
        tell(`retouches ${file} and calls it ${better}`)
        return { file: better, dpi: DPI_MIN }
      },
      count: async (_params, task) => {
        await work(task)
        tell('counts the paper: 12,000 sheets')
        return { paper: 12_000 }
      },
      pack: async ({ title, copies }, task) => {
        await work(task)
        tell(`packs ${copies} copies of "${title}"`)
        return { parcel: `parcel of ${copies}` }
      },
    },
  )
}

function printer(worker: Worker, options: CrewOptions): Worker {
  const tell = (what: string): void => options.tell(worker.id, what)
  const { proof, dry, plate, print } = shop
  return noted(worker, options).handle(
    { proof, dry, plate, print },
    {
      proof: async ({ file }, task) => {
        await work(task)
        tell(`prints a proof of ${file}`)
        return { proof: `proof of ${file}` }
      },
      dry: async (_params, task) => {
        await work(task)
        tell('reports from its drying rack: touch-dry, long before the hour is over')
        await task.sendEvent('touch_dry', { moisture: 4 })
        // The job has gone on. The rack runs until it hears of that.
        await sleep(HOUR_MS, undefined, { signal: task.signal }).catch(() => {
          options.onRackStopped(task.signal.reason)
        })
        tell('hears that the job has gone on, and stops its rack')
        return { moisture: 0 }
      },
      plate: async ({ colour }, task) => {
        await work(task)
        tell(`makes the plate for ${colour}`)
        return { plate: colour }
      },
      print: async ({ bundle, copies }, task) => {
        task.progress(0.5, `bundle ${bundle}`)
        await work(task)
        tell(`prints bundle ${bundle}, ${copies} copies`)
        return { sheets: copies }
      },
    },
  )
}

function examiner(worker: Worker, options: CrewOptions, botches: () => boolean): Worker {
  return noted(worker, options).handle(
    { inspect: shop.inspect },
    {
      inspect: async ({ sheet }, task) => {
        const isBotched = botches()
        await work(task)
        if (isBotched) {
          options.tell(worker.id, `spills coffee over sheet ${sheet}`)
          throw new Error('There is coffee all over the sheet.')
        }
        options.tell(worker.id, `inspects sheet ${sheet}: good`)
        return { good: true }
      },
    },
  )
}
