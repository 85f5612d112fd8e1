import { setImmediate as nextTick } from 'node:timers/promises'
import { isEnded, storedCopy } from '@impresario/core'
import type {
  ClientInfo,
  InitialDataOf,
  Job,
  ListQuery,
  NamedBlueprint,
  ResultOf,
  Stored,
  WorkerRecord,
} from '@impresario/core'
import type { Commanded, Engine, NewJob, TaskExplanation } from '@impresario/engine'
import {
  ImpresarioError,
  isEventType,
  isImpresarioError,
  isJsonObject,
  LIMITS,
  readJson,
  stringifyExact,
  traceContextOf,
} from '@impresario/protocol'
import type { DataObject, EventPayload, EventType, JsonObject, TraceContext } from '@impresario/protocol'

export interface LocalStartOptions {
  /** The same key gives the same job, however often it is asked for. */
  readonly idempotencyKey?: string
  readonly priority?: number
  readonly dispatchTimeoutMs?: number
  readonly resultTimeoutMs?: number
  readonly executionTimeoutMs?: number
  readonly metadata?: DataObject
  readonly webhookUrl?: string
  /** The trace that the job belongs to; its workers, children and webhooks get it (W3C Trace Context). */
  readonly tracingContext?: TraceContext
}

export interface LocalWaitOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface LocalSend {
  /** The same id is the same event, however often it is sent. */
  readonly eventId?: string
}

export interface LocalKeyedSend extends LocalSend {
  /** Reaches the jobs whose `match` is this key. */
  readonly key: string
}

/** Why a job gave no result. */
export class JobFailedError extends Error {
  override readonly name = 'JobFailedError'
  readonly job: Job

  constructor(job: Job) {
    super(`Job ${job.id} is "${job.status}"${job.error === undefined ? '' : `: ${job.error.message}`}`)
    this.job = job
  }
}

/** A job is looked at again after this long although nothing was heard of it. */
const LOOK_MS = 60_000

/** Starts, watches and commands jobs in the same process, in the name of one client. */
export class LocalClient {
  readonly #engine: Engine
  readonly #client: ClientInfo
  readonly #checkUrl: (url: string) => void

  constructor(engine: Engine, client: ClientInfo, checkUrl: (url: string) => void) {
    this.#engine = engine
    this.#client = client
    this.#checkUrl = checkUrl
  }

  /** Resolves once the job is safe. */
  async start<const B extends NamedBlueprint>(
    blueprint: B,
    input: NoInfer<InitialDataOf<B>>,
    options?: LocalStartOptions,
  ): Promise<LocalJob<ResultOf<B>>>
  async start(blueprint: string, input?: DataObject, options?: LocalStartOptions): Promise<LocalJob>
  async start(
    blueprint: NamedBlueprint | string,
    input: unknown = {},
    options: LocalStartOptions = {},
  ): Promise<LocalJob> {
    const { idempotencyKey, tracingContext, metadata, ...rest } = options
    if (rest.webhookUrl !== undefined) this.#checkUrl(rest.webhookUrl)
    const trace = tracingContext === undefined ? undefined : traceContextOf({ ...tracingContext })
    const request: NewJob = {
      ...rest,
      ...(trace === undefined ? {} : { tracing: { ...trace } }),
      ...(metadata === undefined ? {} : { metadata: asData('The metadata', metadata) }),
      blueprint: typeof blueprint === 'string' ? blueprint : blueprint.name,
      client: this.#client,
      initialData: asData('The initial data', input),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    }
    const { jobId } = await this.#engine.createJob(request)
    return this.job(jobId)
  }

  /** A job that exists already. Asks nothing. */
  job<B extends NamedBlueprint = NamedBlueprint>(id: string, _blueprint?: B): LocalJob<ResultOf<B>> {
    return new LocalJob(this.#engine, this.#client, id)
  }

  /** Newest first. */
  async list(query: Partial<Omit<ListQuery, 'owner' | 'bytesMax' | 'looksMax'>> = {}): Promise<readonly Job[]> {
    const { limit = LIMITS.pageSizeDefault } = query
    const found: Job[] = []
    for (let { before } = query; ;) {
      const piece = { ...query, owner: this.#client.id, limit: limit - found.length, bytesMax: LIMITS.pagePieceBytes }
      const page = await this.#engine.listJobs(before === undefined ? piece : { ...piece, before })
      found.push(...page.map(({ value }) => asSeen(value)))
      if (page.next === undefined) return found
      before = page.next
      await nextTick()
    }
  }

  /** Sends an event to every job of this client that waits for it with this key, now or within a day. */
  async send<E extends EventType>(event: E, payload: NoInfer<EventPayload<E>>, options: LocalKeyedSend): Promise<void>
  async send(topic: string, payload: DataObject, options: LocalKeyedSend): Promise<void>
  async send(event: EventType | string, payload: object, { key, eventId }: LocalKeyedSend): Promise<void> {
    await this.#engine.publishEvent(this.#client.id, key, { ...sentEvent(event, payload), eventId })
  }

  workers(): readonly WorkerRecord[] {
    return this.#engine.dispatcher.workers()
  }
}

/** A job that was started, here or elsewhere. Holds nothing but its id: make as many as you like. */
export class LocalJob<Output = unknown> {
  readonly id: string
  readonly #engine: Engine
  readonly #client: ClientInfo

  constructor(engine: Engine, client: ClientInfo, id: string) {
    this.#engine = engine
    this.#client = client
    this.id = id
  }

  /** What it looks like now. */
  async status(): Promise<Job> {
    return asSeen(this.#own(await this.#engine.readJob(this.id)).value)
  }

  /** Resolves when the job has ended, however it did, or stands aside in quarantine; or when the time is up. */
  async wait(options: LocalWaitOptions = {}): Promise<Job> {
    const { timeoutMs = Number.POSITIVE_INFINITY, signal = new AbortController().signal } = options
    const endsAt = performance.now() + timeoutMs
    let job = await this.status()
    while (!isEnded(job) && job.status !== 'quarantined') {
      const leftMs = endsAt - performance.now()
      if (leftMs <= 0 || signal.aborted) break
      const waitMs = Math.min(leftMs, LOOK_MS)
      job = asSeen(this.#own(await this.#engine.waitForJob(this.id, { waitMs, signal })).value)
    }
    return job
  }

  /** The result once the job has finished; rejects with `JobFailedError` when it ends in any other way, or not in time. */
  async result(options: LocalWaitOptions = {}): Promise<Output> {
    const job = await this.wait(options)
    if (job.status === 'finished') return resultOf<Output>(job)
    throw new JobFailedError(job)
  }

  async cancel(reason?: string): Promise<void> {
    await this.status()
    mustApply(await this.#engine.cancelJob(this.id, this.#client.id, reason), 'The job has ended already.')
  }

  /** Answers for a person. With `visit`, only the very request that was seen is answered. */
  async decide(decision: string, options: { readonly comment?: string; readonly visit?: number } = {}): Promise<void> {
    await this.status()
    const { comment, visit } = options
    const applied = await this.#engine.decideApproval(this.id, decision, this.#client.id, comment, visit)
    mustApply(applied, `The job does not wait for the decision "${decision}".`)
  }

  /** Sends the job an event, to take now or when it waits for it. */
  async send<E extends EventType>(event: E, payload: NoInfer<EventPayload<E>>, options?: LocalSend): Promise<void>
  async send(topic: string, payload?: DataObject, options?: LocalSend): Promise<void>
  async send(event: EventType | string, payload: object = {}, { eventId }: LocalSend = {}): Promise<void> {
    await this.status()
    await this.#engine.sendEvent(this.id, { ...sentEvent(event, payload), eventId })
  }

  /** Sends a quarantined job back into the state where it failed, perhaps with other data. */
  async retry(data: { readonly initialData?: DataObject; readonly stateHistory?: DataObject } = {}): Promise<void> {
    await this.status()
    const { initialData, stateHistory } = data
    const kept = {
      ...(initialData === undefined ? {} : { initialData: asData('The initial data', initialData) }),
      ...(stateHistory === undefined ? {} : { stateHistory: asData('The state history', stateHistory) }),
    }
    mustApply(await this.#engine.retryJob(this.id, this.#client.id, kept), 'The job is not in quarantine.')
  }

  /** Gives a quarantined job up. */
  async discard(): Promise<void> {
    await this.status()
    mustApply(await this.#engine.discardJob(this.id, this.#client.id), 'The job is not in quarantine.')
  }

  /** Where its tasks are, and why. */
  async explain(): Promise<readonly TaskExplanation[]> {
    return this.#engine.explainJob(await this.status())
  }

  /** Others' jobs do not exist for it. */
  #own(stored: Stored<Job> | undefined): Stored<Job> {
    if (stored?.value.client.id !== this.#client.id) throw new ImpresarioError('JOB_NOT_FOUND', 'Job not found')
    return stored
  }
}

/** What was done before, when the same was asked for, is done. */
function mustApply(applied: Commanded, otherwise: string): void {
  if (applied.type !== 'applied' && applied.type !== 'repeated') throw new ImpresarioError('NOT_WAITING', otherwise)
}

function sentEvent(
  event: EventType | string,
  payload: object,
): { readonly topic: string; readonly payload: JsonObject } {
  return { topic: isEventType(event) ? event.topic : event, payload: asData('The payload', payload) }
}

/** The engine checks it against the blueprint's schema; here it only has to be an object that JSON can hold. */
function asData(what: string, input: unknown): JsonObject {
  let kept: unknown
  try {
    kept = readJson(stringifyExact(input))
  } catch (cause) {
    if (isImpresarioError(cause)) throw cause
    throw new ImpresarioError('INPUT_REFUSED', `${what} cannot be written as JSON: ${String(cause)}`, { cause })
  }
  if (isJsonObject(kept)) return kept
  throw new ImpresarioError('INPUT_REFUSED', `${what} must be an object.`)
}

/** The job with its data as users see them: the record keeps numbers of many digits as texts. */
function asSeen(job: Job): Job {
  const { initialData, stateHistory, result, metadata } = job
  return {
    ...job,
    initialData: storedCopy(initialData),
    stateHistory: storedCopy(stateHistory),
    ...(result === undefined ? {} : { result: storedCopy(result) }),
    ...(metadata === undefined ? {} : { metadata: storedCopy(metadata) }),
  }
}

/** The boundary at which a finished job is believed to have what its blueprint declared. */
function resultOf<Output>(job: Job): Output {
  return job.result as Output
}
