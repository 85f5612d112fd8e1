import { ignoredResult, parseDeliveryId, taskId } from '@impresario/core'
import type { Clock, DeliveryRef, ItemView, LeaseRef, Log, Put, Random, Storage } from '@impresario/core'
import { ImpresarioError, LIMITS, promised, utf8Bytes } from '@impresario/protocol'
import type { JsonObject, Soon, TaskError } from '@impresario/protocol'
import { leaseOf } from './custody.ts'
import type { Custody } from './custody.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Lost, Metering, Receipt, Report, WorkerEvent, WorkerEventNews } from './desk-messages.ts'
import type { Applied, Director } from '../job/director.ts'
import { excerpt } from '../job/excerpt.ts'
import { readTask } from '../job/payload.ts'

export interface ReceptionOptions {
  readonly storage: Storage
  readonly director: Director
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly custody: Custody
  /** Counts who has what. */
  readonly load: Pick<Dispatcher, 'assign' | 'release'>
}

/** What can be seen of a delivery. `gone`: its task is in no queue any more. `stale`: another delivery or try has followed. */
export type Ownership = 'own' | 'other' | 'stale' | 'next try' | 'gone'

/** Where workers bring what they have to say about their tasks: results, progress, events. */
export class Reception {
  readonly #options: ReceptionOptions
  readonly #listeners = new Set<(news: WorkerEventNews) => void>()

  constructor(options: ReceptionOptions) {
    this.#options = options
  }

  /** Takes results. Each counts once; all of them are durable when this resolves. */
  async results(workerId: string, reports: readonly Report[]): Promise<readonly Receipt[]> {
    const receipts = reports.map((report) => this.#resultOrRejection(workerId, report))
    const known = await all(receipts)
    await this.#options.storage.sync()
    return known
  }

  /** One that cannot be taken must not keep the next ones from being looked at. */
  #resultOrRejection(workerId: string, report: Report): Soon<Receipt> {
    try {
      return this.#result(workerId, report)
    } catch (error) {
      return promised<Receipt>(() => {
        throw error
      })
    }
  }

  #result(workerId: string, report: Report): Soon<Receipt> {
    const { custody, load } = this.#options
    const ref = parseDeliveryId(report.taskId)
    if (ref === undefined) return STALE
    const lease = leaseOf(ref)
    const wasHeld = custody.answer(workerId, report.taskId, lease)
    // The worker has room from now on, and not only when its result is written.
    if (wasHeld) load.release(lease.id)
    const taken = (receipt: Receipt): Receipt => {
      if (receipt.type === 'refused') this.#restore(workerId, report, ref, wasHeld)
      return receipt
    }
    const failed = (error: unknown): never => {
      this.#restore(workerId, report, ref, wasHeld)
      throw error
    }
    try {
      const receipt = wasHeld
        ? this.#take(workerId, ref, report, lease)
        : this.#takeUnknown(workerId, ref, report, lease)
      return receipt instanceof Promise ? receipt.then(taken, failed) : taken(receipt)
    } catch (error) {
      return failed(error)
    }
  }

  /** The result could not be taken: the worker has the task as before. */
  #restore(workerId: string, { taskId: id }: Report, ref: DeliveryRef, wasHeld: boolean): void {
    const { custody, load } = this.#options
    custody.restore(workerId, id, ref, wasHeld)
    if (wasHeld) load.assign(leaseOf(ref).id, workerId)
  }

  /** Of a delivery that the worker is not known to hold. */
  async #takeUnknown(workerId: string, ref: DeliveryRef, report: Report, lease: LeaseRef): Promise<Receipt> {
    const ownership = await this.ownership(workerId, ref)
    if (ownership === 'other') return { type: 'ignored', reason: 'worker_mismatch', job: undefined }
    return ownership === 'stale' ? this.#late(workerId, ref, report) : this.#take(workerId, ref, report, lease)
  }

  #take(workerId: string, ref: DeliveryRef, report: Report, lease: LeaseRef): Soon<Receipt> {
    const { director, clock, random } = this.#options
    const { visit, branch, attempt } = ref
    const applied = director.apply(
      ref.jobId,
      {
        type: 'taskEnded',
        at: clock.now(),
        visit,
        branch,
        attempt,
        workerId,
        status: report.status,
        data: report.data,
        error: report.error && shortened(report.error),
        stack: report.stack && excerpt(report.stack, LIMITS.taskStackCharsMax),
        chance: random.next(),
        token: ref.token,
      },
      { settle: lease },
    )
    const receipt = (known: Applied): Soon<Receipt> =>
      known.type === 'lost' ? this.#late(workerId, ref, report) : receiptOf(known)
    return applied instanceof Promise ? applied.then(receipt) : receipt(applied)
  }

  /** Another delivery of the task has followed. Nothing changes; the history says that the result came. */
  async #late(workerId: string, ref: DeliveryRef, { status }: Report): Promise<Receipt> {
    const { storage, director, clock } = this.#options
    const job = (await storage.read('job', ref.jobId))?.value
    if (job !== undefined) {
      const entry = ignoredResult(job, { ...ref, at: clock.now(), status, workerId }, 'stale_task')
      director.remark(job.id, job, [entry])
    }
    return { type: 'ignored', reason: 'stale_task', job }
  }

  /**
   * After a restart the desk does not know who holds what; the storage does. `own` also for what no worker
   * holds now: the rules decide about it. `stale` for a delivery or a try that another one has followed,
   * and for an id that we never gave out: nothing may be settled by it.
   */
  async ownership(workerId: string, ref: DeliveryRef): Promise<'own' | 'other' | 'stale'> {
    const [ownership] = await this.ownerships(workerId, [ref])
    if (ownership === 'gone' || ownership === undefined) return 'own'
    return ownership === 'next try' ? 'stale' : ownership
  }

  /** What the queue shows of each of these deliveries, in their order. */
  async ownerships(workerId: string, refs: readonly DeliveryRef[]): Promise<readonly Ownership[]> {
    if (refs.length === 0) return []
    const ids = refs.map(({ jobId, visit, branch }) => taskId(jobId, visit, branch))
    const views = await this.#options.storage.peek('tasks', ids)
    return refs.map((ref, index) => ownershipOf(views[index], workerId, ref))
  }

  /** How far a task is. What comes from another than its worker, or too late, is ignored. */
  async progress(workerId: string, id: string, fraction: number, message: string | undefined): Promise<Receipt> {
    const ref = parseDeliveryId(id)
    if (ref === undefined) return STALE
    const ownership = await this.ownership(workerId, ref)
    if (ownership === 'other') return { type: 'ignored', reason: 'worker_mismatch', job: undefined }
    if (ownership === 'stale') return STALE
    const { visit, branch, attempt } = ref
    const at = this.#options.clock.now()
    const progressed = { type: 'progressed', at, visit, branch, attempt, fraction, message } as const
    // Only the holder of the task may report on it, as with events: it may be in a queue again.
    const applied = await this.#options.director.apply(ref.jobId, progressed, { guard: leaseOf(ref) })
    return applied.type === 'lost' ? STALE : receiptOf(applied)
  }

  /**
   * Takes what a task has used so far. Each report counts once, and is durable when this resolves. `extra` is written in the
   * same commit; `lost` when that has changed meanwhile, or when the worker holds the task no longer: look again.
   */
  async meter(workerId: string, id: string, metering: Metering, extra?: readonly Put[]): Promise<Receipt | Lost> {
    const { storage, director, clock } = this.#options
    const ref = parseDeliveryId(id)
    if (ref === undefined) return STALE
    const ownership = await this.ownership(workerId, ref)
    if (ownership === 'other') return { type: 'ignored', reason: 'worker_mismatch', job: undefined }
    if (ownership === 'stale') return STALE
    const { visit, branch, attempt, jobId } = ref
    const metered = { type: 'metered', at: clock.now(), visit, branch, attempt, ...metering } as const
    const applied = await director.apply(jobId, metered, { guard: leaseOf(ref), extra })
    await storage.sync()
    if (applied.type === 'lost') return extra === undefined ? STALE : applied
    return receiptOf(applied)
  }

  /**
   * Takes an event of a task that the worker holds. Durable when this resolves, and only then told to listeners.
   *
   * A sender that got no answer sends the event again. Under the same `eventId` it is ignored as `repeated_event`, or as
   * stale when the first one made the job go on: both mean that there is nothing left to send.
   */
  async event(workerId: string, id: string, event: WorkerEvent): Promise<Receipt> {
    const { storage, director, clock } = this.#options
    checkEvent(event)
    const ref = parseDeliveryId(id)
    if (ref === undefined) return STALE
    const ownership = await this.ownership(workerId, ref)
    if (ownership === 'other') return { type: 'ignored', reason: 'worker_mismatch', job: undefined }
    const { visit, branch, attempt, jobId } = ref
    const { type: name, payload, eventId } = event
    const at = clock.now()
    const raised = { type: 'eventRaised', at, visit, branch, attempt, workerId, name, payload, eventId } as const
    // Only the holder of the task may report on it: the claim guards the commit.
    const applied = await director.apply(jobId, raised, { guard: leaseOf(ref) })
    await storage.sync()
    if (applied.type === 'lost') {
      return { type: 'ignored', reason: 'stale_task', job: (await storage.read('job', jobId))?.value }
    }
    if (applied.type === 'applied') this.#tell({ workerId, jobId, taskId: id, type: name, payload, eventId })
    return receiptOf(applied)
  }

  /** Calls `listener` with every event that was taken here. */
  onEvent(listener: (news: WorkerEventNews) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  #tell(news: WorkerEventNews): void {
    for (const listener of this.#listeners) {
      try {
        listener(news)
      } catch (error) {
        const { jobId: job_id, type } = news
        this.#options.log.error('a listener for events of workers failed', { job_id, type, error: String(error) })
      }
    }
  }
}

/** As `Promise.all`, where most are no promises: then nothing is awaited. */
function all<T>(values: readonly Soon<T>[]): Soon<readonly T[]> {
  const isThere = (value: Soon<T>): value is T => !(value instanceof Promise)
  return values.every(isThere) ? values : Promise.all(values.map(async (value) => value))
}

const STALE: Receipt = { type: 'ignored', reason: 'stale_task', job: undefined }

function ownershipOf(view: ItemView | undefined, workerId: string, ref: DeliveryRef): Ownership {
  if (view === undefined) return 'gone'
  const { lease } = view
  if (readTask(view.payload).attempt !== ref.attempt) return 'next try'
  if (lease !== undefined && lease.token !== ref.token) return 'stale'
  return lease?.holder !== undefined && lease.holder !== workerId ? 'other' : 'own'
}

function checkEvent({ type, eventId, payload }: WorkerEvent): void {
  const charsMax = LIMITS.eventTypeCharsMax
  if (type === '' || type.length > charsMax) throw refusal(`The type of an event has from 1 to ${charsMax} characters.`)
  if (eventId !== undefined && (eventId === '' || eventId.length > LIMITS.identifierCharsMax)) {
    throw refusal(`The id of an event has from 1 to ${LIMITS.identifierCharsMax} characters.`)
  }
  if (sizeOf(payload) > LIMITS.contextBytesMax) {
    throw refusal(`The payload of an event has at most ${LIMITS.contextBytesMax} bytes. Put large data into files.`)
  }
}

function sizeOf(payload: JsonObject): number {
  return utf8Bytes(JSON.stringify(payload))
}

function refusal(message: string): ImpresarioError {
  return new ImpresarioError('INVALID_REQUEST', message)
}

function shortened({ code, message }: TaskError): TaskError {
  return { code, message: excerpt(message, LIMITS.taskErrorCharsMax) }
}

const TOO_LARGE =
  `The data does not fit into the job: its state history would have more than ${LIMITS.contextBytesMax} bytes. ` +
  'Put large data into a file and return its address.'

function receiptOf(applied: Exclude<Applied, { type: 'lost' }>): Receipt {
  if (applied.type === 'applied') return { type: 'accepted', job: applied.job, before: applied.before }
  if (applied.reason === 'too_large') return { type: 'refused', message: TOO_LARGE }
  return { type: 'ignored', reason: applied.reason, job: applied.job }
}
