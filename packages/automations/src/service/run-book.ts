import { nextPage } from '@impresario/core'
import type { Clock, Job, JobStatus, ListQuery, Random, Storage } from '@impresario/core'
import type { Commanded, Engine } from '@impresario/engine'
import { ImpresarioError, isJsonObject } from '@impresario/protocol'
import { authorOf } from './audit.ts'
import type { Actor } from './audit.ts'
import type { Page } from './automations.ts'
import { usageOfRun } from './budgets.ts'
import { putGate, readGate, withoutRun } from './gate.ts'
import { asAutomation, firstIdAt } from './record.ts'
import { cancellationEntry, cancelRun } from './run-cancellation.ts'
import { PART_BLUEPRINT, automationOf, runBlueprintName } from './run-start.ts'
import type { RunTrigger } from './run-start.ts'
import { countedRun, statisticsOf } from './run-statistics.ts'
import type { CountedRun, RunStatistics } from './run-statistics.ts'
import { runViewOf, waitingViewOf } from './run-view.ts'
import type { RunStatus, RunView } from './run-view.ts'
import { asWaitingRun, callItem, eventOfWaiting, waitItemId } from './waiting-run.ts'

export interface RunQuery {
  readonly owner?: string | undefined
  readonly automationId?: string | undefined
  readonly status?: RunStatus | undefined
  /** What set them off. */
  readonly trigger?: RunTrigger['kind'] | undefined
  /** Milliseconds since 1970. */
  readonly createdAfter?: number | undefined
  readonly createdBefore?: number | undefined
  readonly before?: string | undefined
  readonly limit: number
}

const STATUSES: Readonly<Record<RunStatus, readonly JobStatus[]>> = {
  running: [
    'pending',
    'running',
    'waiting_for_worker',
    'waiting_for_human',
    'waiting_for_parallel',
    'waiting_for_child',
    'waiting_for_time',
  ],
  succeeded: ['finished'],
  failed: ['failed', 'error'],
  canceled: ['cancelled'],
  quarantined: ['quarantined'],
}
const PAGE_BYTES = 2_097_152
const LOOKS = 2_000
const READS_MAX = 10
const CONFLICTS_MAX = 20
const STATISTICS_PAGE = 500
const STATISTICS_MAX = 10_000

/** Whether the job belongs to an automation: a run, or a part of one. */
export function isOfAutomation(job: Pick<Job, 'blueprint'>): boolean {
  return job.blueprint === PART_BLUEPRINT || automationOf(job) !== undefined
}

export interface RunBookOptions {
  readonly storage: Storage
  readonly engine: Engine
  readonly clock: Clock
  readonly random: Random
}

/** Runs, for those whom they belong to. What is another's is not there. */
export class RunBook {
  readonly #storage: Storage
  readonly #options: RunBookOptions

  constructor(options: RunBookOptions) {
    this.#storage = options.storage
    this.#options = options
  }

  /** Newest first. A page may have fewer runs than were asked for, and yet not be the last. */
  async list(wanted: RunQuery): Promise<Page<RunView>> {
    const { owner, automationId, status, trigger, createdAfter, createdBefore, limit } = wanted
    const query: ListQuery = {
      limit,
      bytesMax: PAGE_BYTES,
      looksMax: LOOKS,
      ...(owner === undefined ? {} : { owner }),
      ...(automationId === undefined ? { search: runBlueprintName('') } : { name: runBlueprintName(automationId) }),
      ...(status === undefined ? {} : { statuses: [...STATUSES[status]] }),
      ...(createdAfter === undefined ? {} : { from: firstIdAt(createdAfter) }),
    }
    const items: RunView[] = []
    const ends = [wanted.before, createdBefore === undefined ? undefined : firstIdAt(createdBefore)]
    let last = ends.filter((end) => end !== undefined).toSorted()[0]
    for (let reads = 0; reads < READS_MAX; reads += 1) {
      const found = await this.#storage.list('job', { ...query, ...(last === undefined ? {} : { before: last }) })
      // Other jobs may have such words in their texts.
      for (const { value } of found) {
        const view = runViewOf(value)
        if (view !== undefined && (trigger === undefined || view.trigger.kind === trigger)) items.push(view)
      }
      last = nextPage(found, limit)
      if (last === undefined || items.length >= limit) break
    }
    if (items.length > limit) return { items: items.slice(0, limit), next: items[limit - 1]?.id }
    return { items, next: last }
  }

  /** What became of the runs of a span of time: at most the newest ten thousand. */
  async statistics(query: Omit<RunQuery, 'before' | 'limit' | 'status'>, until: number): Promise<RunStatistics> {
    const { createdAfter: since = 0 } = query
    const runs: CountedRun[] = []
    let before: string | undefined
    do {
      const page = await this.list({ ...query, before, limit: STATISTICS_PAGE })
      // What the runs themselves hold is not kept: ten thousand of them may be gigabytes.
      for (const run of page.items) runs.push(countedRun(run))
      before = page.next
    } while (before !== undefined && runs.length < STATISTICS_MAX)
    return statisticsOf(runs, { since, until, isPartial: before !== undefined })
  }

  /** Also one that still waits for its place. */
  async read(id: string, actor: Actor): Promise<RunView> {
    // It may begin between the two looks.
    const view = (await this.#begun(id)) ?? (await this.#waiting(id)) ?? (await this.#begun(id))
    if (view === undefined || !isVisible(view.owner, actor)) throw notFound()
    return { ...view, usage: await usageOfRun(this.#storage, id) }
  }

  async #begun(id: string): Promise<RunView | undefined> {
    const job = (await this.#storage.read('job', id))?.value
    return job === undefined ? undefined : runViewOf(job)
  }

  async #waiting(id: string): Promise<RunView | undefined> {
    const [item] = await this.#storage.peek('firings', [waitItemId(id)])
    if (item === undefined || !isJsonObject(item.payload)) return undefined
    const waiting = asWaitingRun(item.payload)
    const stored = await this.#storage.read('automation', waiting.automationId)
    if (stored === undefined) return undefined
    const event = (await eventOfWaiting(this.#storage, waiting)) ?? null
    return waitingViewOf({ ...waiting, event }, asAutomation(stored).value)
  }

  /** Also one that still waits for its place. One that has ended stays as it is. */
  async cancel(id: string, actor: Actor, reason?: string): Promise<void> {
    if (await this.#cancelWaiting(id, actor, reason)) return
    const { automationId, owner } = await this.read(id, actor)
    await cancelRun(this.#options, { runId: id, automationId, owner, author: authorOf(actor), reason })
  }

  /** The same for one who found the run among the jobs. */
  cancelJob(job: Job, actor: Actor, reason?: string): Promise<Commanded> {
    const automationId = automationOf(job)
    if (automationId === undefined) return this.#options.engine.cancelJob(job.id, actor.id, reason)
    const { id: runId, client } = job
    return cancelRun(this.#options, { runId, automationId, owner: client.id, author: authorOf(actor), reason })
  }

  /** Whether it was waiting. */
  async #cancelWaiting(id: string, actor: Actor, reason: string | undefined): Promise<boolean> {
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const [item] = await this.#storage.peek('firings', [waitItemId(id)])
      if (item === undefined || !isJsonObject(item.payload)) return false
      const { automationId, gate: gateId } = asWaitingRun(item.payload)
      const stored = await this.#storage.read('automation', automationId)
      const owner = stored === undefined ? '' : asAutomation(stored).value.owner
      if (!isVisible(owner, actor)) throw notFound()
      const gate = await readGate(this.#storage, gateId, 1)
      if (!gate.waiting.includes(id)) return false
      const cancellation = { runId: id, automationId, owner, author: authorOf(actor), reason }
      const put = [putGate(withoutRun(gate, id)), cancellationEntry(this.#options, cancellation)]
      const batch = { put, remove: [{ queue: 'firings', id: item.id }] } as const
      if ((await this.#storage.commit(batch)) === 'conflict') continue
      const [first] = withoutRun(gate, id).waiting
      if (first !== undefined) await callItem(this.#storage, waitItemId(first))
      await this.#storage.sync()
      return true
    }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The run could not be cancelled: others changed its line.')
  }
}

function isVisible(owner: string, actor: Actor): boolean {
  return actor.isAdmin || owner === actor.id
}

function notFound(): ImpresarioError {
  return new ImpresarioError('NOT_FOUND', 'Run not found')
}
