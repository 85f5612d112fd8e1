import { isEnded } from '@impresario/core'
import type {
  ClientInfo,
  InitialDataOf,
  Job,
  JobRequest,
  ListQuery,
  NamedBlueprint,
  ResultOf,
  Stored,
  WorkerRecord,
} from '@impresario/core'
import type { Applied, CreateOptions, Engine, TaskExplanation } from '@impresario/engine'
import { ImpresarioError, LIMITS, isJsonObject } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'

export interface LocalStartOptions {
  /** The same key gives the same job, however often it is asked for. */
  readonly idempotencyKey?: string
  readonly priority?: number
  readonly dispatchTimeoutMs?: number
  readonly resultTimeoutMs?: number
  readonly executionTimeoutMs?: number
  readonly metadata?: JsonObject
  readonly webhookUrl?: string
}

export interface LocalWaitOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
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
  async start(blueprint: string, input?: JsonObject, options?: LocalStartOptions): Promise<LocalJob>
  async start(
    blueprint: NamedBlueprint | string,
    input: unknown = {},
    options: LocalStartOptions = {},
  ): Promise<LocalJob> {
    const { idempotencyKey, ...rest } = options
    if (rest.webhookUrl !== undefined) this.#checkUrl(rest.webhookUrl)
    const name = typeof blueprint === 'string' ? blueprint : blueprint.name
    const request: JobRequest = { ...rest, blueprint: name, client: this.#client, initialData: asData(input) }
    const once: CreateOptions = idempotencyKey === undefined ? {} : { idempotencyKey }
    const { jobId } = await this.#engine.createJob(request, once)
    return this.job(jobId)
  }

  /** A job that exists already. Asks nothing. */
  job<B extends NamedBlueprint = NamedBlueprint>(id: string, _blueprint?: B): LocalJob<ResultOf<B>> {
    return new LocalJob(this.#engine, this.#client, id)
  }

  /** Newest first. */
  async list(query: Partial<Omit<ListQuery, 'owner'>> = {}): Promise<readonly Job[]> {
    const found = await this.#engine.listJobs({ limit: LIMITS.pageSizeDefault, ...query, owner: this.#client.id })
    return found.map(({ value }) => value)
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
    return this.#own(await this.#engine.readJob(this.id)).value
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
      job = this.#own(await this.#engine.waitForJob(this.id, { waitMs, signal })).value
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

  /** Sends a quarantined job back into the state where it failed, perhaps with other data. */
  async retry(data: { readonly initialData?: JsonObject; readonly stateHistory?: JsonObject } = {}): Promise<void> {
    await this.status()
    mustApply(await this.#engine.retryJob(this.id, this.#client.id, data), 'The job is not in quarantine.')
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

function mustApply(applied: Applied, otherwise: string): void {
  if (applied.type !== 'applied') throw new ImpresarioError('NOT_WAITING', otherwise)
}

/** The engine checks it against the blueprint's schema; here it only has to be an object. */
function asData(input: unknown): JsonObject {
  const copied: unknown = JSON.parse(JSON.stringify(input))
  if (isJsonObject(copied)) return copied
  throw new ImpresarioError('INPUT_REFUSED', 'The initial data must be an object.')
}

/** The boundary at which a finished job is believed to have what its blueprint declared. */
function resultOf<Output>(job: Job): Output {
  return job.result as Output
}
