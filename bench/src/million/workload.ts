/** Jobs as the engine creates them, in any number. */
import type { Batch, Item, Put } from '@impresario/core'
import { createOrchestrator } from '@impresario/server/embedded'
import { createMemoryStorage } from '@impresario/storage-embedded'
import { noop } from '../blueprints/workload.ts'

/** A job that waits for a worker: its record and its task. */
export interface QueuedJob {
  readonly put: JobPut
  readonly item: Item
}
export type JobPut = Extract<Put, { readonly kind: 'job' }>

/** Creates queued jobs modelled on one that the engine itself created. */
export class Workload {
  /** The lane where their tasks wait. */
  readonly lane: string
  readonly #id: string
  readonly #text: string
  #made = 0

  constructor(model: QueuedJob) {
    this.lane = model.item.lane
    this.#id = model.put.id
    // As a first commit: nothing of it exists yet.
    this.#text = JSON.stringify({ ...model, put: { ...model.put, version: 1 } })
  }

  next(): QueuedJob {
    this.#made += 1
    return queuedJobIn(this.#text.replaceAll(this.#id, jobId(this.#made)))
  }

  /** One batch with so many of them. */
  batch(count: number): Batch {
    const jobs = Array.from({ length: count }, () => this.next())
    return { put: jobs.map(({ put }) => put), enqueue: jobs.map(({ item }) => item) }
  }
}

/** Lets the engine create one job for which there is no worker, and captures what it writes. */
export async function recordedWorkload(): Promise<Workload> {
  const storage = createMemoryStorage({ now: () => Date.now() })
  const commit = storage.commit.bind(storage)
  const batches: Batch[] = []
  storage.commit = (batch) => {
    batches.push(batch)
    return commit(batch)
  }
  const orchestrator = createOrchestrator({ storage, blueprints: [noop], settings: { logLevel: 'error' } })
  await orchestrator.start()
  const { id } = await orchestrator.client().start('noop', { index: 0 })
  for (;;) {
    const item = batches.flatMap(({ enqueue = [] }) => enqueue).find(({ queue }) => queue === 'tasks')
    const put = batches.flatMap(({ put: puts = [] }) => puts.filter(isJob)).findLast((one) => one.id === id)
    if (item !== undefined && put !== undefined) {
      await orchestrator.stop()
      return new Workload({ put, item })
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** The record of a job whose task has been done. */
export function endedPut({ id, value }: JobPut): JobPut {
  const facets = { owner: value.client.id, status: 'finished', name: value.blueprint }
  return { kind: 'job', id, value: { ...value, status: 'finished' }, version: 2, facets }
}

function isJob(put: Put): put is JobPut {
  return put.kind === 'job'
}

/** The form of the engine's own ids: time first, so that later ones sort after earlier ones. */
function jobId(index: number): string {
  const time = Date.now().toString(16).padStart(12, '0')
  const rest = index.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${rest}`
}

/** Type boundary: our own copy has the type of its original. */
function queuedJobIn(text: string): QueuedJob {
  return JSON.parse(text) as QueuedJob
}
