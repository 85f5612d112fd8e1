import { besideJobId, shownJobId, wallTime } from '@impresario/core'
import type { Batch, Clock, Job, JobRequest, Lease, LeaseRef, Put, Random, Storage } from '@impresario/core'
import { chain, ImpresarioError, jsonWeight, promised } from '@impresario/protocol'
import type { JsonObject, Soon } from '@impresario/protocol'
import { OPEN_ADMISSION } from './admission.ts'
import type { Admission, Pass } from './admission.ts'
import { Backlog } from './backlog.ts'
import type { BacklogBounds } from './backlog.ts'
import type { ScriptRegistry } from './script-registry.ts'
import type { Applied, Conditions, Director } from './director.ts'
import { fingerprintOf } from './fingerprint.ts'
import { keyIdOf, mustBeKey } from './key-book.ts'
import type { KeyBook } from './key-book.ts'
import { QuotaBook } from './quota.ts'
import type { Quota, QuotaUse } from './quota.ts'
import { checkRequest } from './request-check.ts'
import type { CheckedRequest, RequestRefusal } from './request-check.ts'
import type { TurnQueue } from './turn-queue.ts'

/** A job that a client asks for. */
export interface NewJob extends JobRequest {
  /** A request with a key that the client has used before gives the job of that time. */
  readonly idempotencyKey?: string | undefined
  /** A UUIDv7 that becomes the job's id; a repeated request finds the job again. */
  readonly jobId?: string | undefined
  /** What the client may start; without it, as much as it likes, and nothing is counted. */
  readonly quota?: Quota | undefined
}

/** What is written with a job: the claim that it answers, and records and items beside it. */
export interface Beside extends Pick<Batch, 'put' | 'enqueue' | 'remove' | 'drop'> {
  readonly settle?: LeaseRef | undefined
}

/** Says for a job that comes without a trace whether one begins with it. */
export interface NewTraces {
  /** What its record keeps of it. Nothing where the id of the job says all. */
  begin(jobId: string): JobRequest['tracing']
}

export interface JobCreationOptions {
  readonly storage: Storage
  readonly registry: ScriptRegistry
  readonly director: Director
  readonly clock: Clock
  readonly random: Random
  readonly keys: KeyBook
  /** How many jobs may be open; without it, any number. */
  readonly backlog?: BacklogBounds | undefined
  /** Other instances start jobs on the same storage. */
  readonly isShared: boolean
  readonly turnQueue: TurnQueue
  /** Without it everything is taken. */
  readonly admission?: Admission | undefined
  readonly traces?: NewTraces | undefined
}

export interface Created {
  readonly jobId: string
  readonly isNew: boolean
}

/** A request whose data fits its blueprint. */
interface Checked {
  readonly request: JobRequest
  /** The data as it was sent, by which a repeated request is known. */
  readonly given: JsonObject
  readonly jobId: string | undefined
  readonly quota: Quota | undefined
}

const NOTHING_TO_DO = (): void => {}

/** After so many others were faster, in a row, something is wrong with the storage and not with the timing. */
const CONFLICTS_MAX = 100

/** A letter is delivered every fifteen seconds until its child is there: a child waits five minutes for its place. */
const CHILD_DELIVERIES_MAX = 20

/** What came of a child: it is there, or can never be. */
export type ChildStarted =
  | Applied
  | { readonly type: 'refused'; readonly refusal: { readonly code: string; readonly message: string } }

/**
 * The one door for new jobs. Clients come in by `start` and `startAll`, parents by `startChild`, schedules by
 * `startScheduled`, automations by `startWith`. Each request is checked in the same way, and each counts in the bounds on open jobs.
 */
export class JobCreation {
  readonly #options: JobCreationOptions
  readonly #quotas: QuotaBook
  readonly #keys: KeyBook
  readonly #backlog: Backlog | undefined

  constructor(options: JobCreationOptions) {
    this.#options = options
    this.#quotas = new QuotaBook(options.storage)
    this.#keys = options.keys
    const { storage, clock, backlog: bounds, isShared } = options
    this.#backlog = bounds && new Backlog({ storage, clock, bounds, isShared })
  }

  /** Resolves when the job is durable. */
  async start(wanted: NewJob): Promise<Created> {
    const pass = this.#enter([wanted])
    try {
      const creating = this.#create(wanted, pass)
      const created = creating instanceof Promise ? await creating : creating
      await this.#options.storage.sync()
      return created
    } finally {
      pass.leave()
    }
  }

  /** All of them go in together, or none does; then each succeeds or fails for itself. */
  async startAll(wanted: readonly NewJob[]): Promise<readonly (Created | { readonly error: unknown })[]> {
    const pass = this.#enter(wanted)
    try {
      const creations = wanted.map((one) => promised(() => this.#create(one, pass)))
      const results = await Promise.all(creations.map((one) => one.catch((error: unknown) => ({ error }))))
      await this.#options.storage.sync()
      return results
    } finally {
      pass.leave()
    }
  }

  #enter(requests: readonly JobRequest[]): Pass {
    let bytes = 0
    for (const request of requests) bytes += bytesOf(request)
    return (this.#options.admission ?? OPEN_ADMISSION).enter(bytes)
  }

  /** Whether there can be such a job now. */
  check(request: JobRequest): Soon<CheckedRequest> {
    return checkRequest(this.#options.registry, request)
  }

  /**
   * Starts the child that a letter asks for; the letter is gone with it. Throws while too many jobs are open: the letter
   * then stays and is delivered again, for some minutes. Jobs that wait for their children can fill every bound, so it ends.
   */
  async startChild(id: string, request: JobRequest, letter: Lease): Promise<ChildStarted> {
    const checked = await this.check(request)
    if ('refusal' in checked) return { type: 'refused', refusal: checked.refusal }
    const admitted = await this.#backlog?.admit(request.client.id, { isChild: true, bytes: bytesOf(request) })
    if (admitted instanceof ImpresarioError) {
      if (letter.deliveries < CHILD_DELIVERIES_MAX) throw admitted
      return { type: 'refused', refusal: { code: 'TOO_MANY_REQUESTS', message: admitted.message } }
    }
    try {
      const { director, clock } = this.#options
      const event = { type: 'created', at: clock.now(), id, request: checked.request } as const
      return await director.apply(id, event, { settle: letter })
    } finally {
      admitted?.()
    }
  }

  /** Starts a job of a schedule. The request was checked by `check`. `extra` is written with the job, under `guard`. */
  async startScheduled(
    id: string,
    request: JobRequest,
    { extra, guard }: Omit<Conditions, 'settle'> = {},
  ): Promise<Applied> {
    const settle = await this.#admit(request)
    try {
      const { director, clock } = this.#options
      const event = { type: 'created', at: clock.now(), id, request: this.#traced(id, request) } as const
      return await director.apply(id, event, { extra, guard })
    } finally {
      settle()
    }
  }

  /**
   * Starts a job of the orchestrator itself in one commit with what belongs to it. Nothing is written when any of that
   * conflicts (`lost`), or when there is a job of this id (`exists`).
   */
  async startWith(id: string, request: JobRequest, beside: Beside): Promise<'created' | 'exists' | 'lost'> {
    const checked = await checkRequest(this.#options.registry, request)
    if ('refusal' in checked) throw refusedRequest(request, checked.refusal)
    const done = await this.#admit({ ...request, jobId: id })
    try {
      const { director, clock } = this.#options
      const { settle, put = [], ...items } = beside
      const at = creationTime(id, clock.now())
      const event = { type: 'created', at, id, request: this.#traced(id, checked.request) } as const
      const applied = await director.apply(id, event, { settle, extra: put, beside: items })
      if (applied.type === 'applied') return 'created'
      return applied.type === 'ignored' ? 'exists' : 'lost'
    } finally {
      done()
    }
  }

  #create(asked: NewJob, pass: Pass): Soon<Created> {
    if (asked.idempotencyKey !== undefined) mustBeKey(asked.idempotencyKey)
    return chain(this.check(asked), (checked) => {
      if ('refusal' in checked) throw refusedRequest(asked, checked.refusal)
      if (this.#options.registry.isInternal(asked.blueprint)) throw refusedRequest(asked, notThere(asked))
      pass.begin()
      const { jobId, quota } = asked
      const wanted = { request: checked.request, given: asked.initialData, jobId, quota }
      const settle = this.#admitAtOnce(asked)
      if (settle !== undefined) return this.#startAdmitted(wanted, asked, settle)
      return this.#admit(asked).then((settleLater) => this.#startAdmitted(wanted, asked, settleLater))
    })
  }

  #startAdmitted(wanted: Checked, { idempotencyKey, client }: NewJob, settle: () => void): Soon<Created> {
    let created: Soon<Created> | undefined
    try {
      created =
        wanted.quota === undefined
          ? this.#startAs(wanted, idempotencyKey)
          : this.#quotas.oneByOne(client.id, async () => this.#startAs(wanted, idempotencyKey))
    } finally {
      if (!(created instanceof Promise)) settle()
    }
    return created instanceof Promise ? created.finally(settle) : created
  }

  #startAs(wanted: Checked, idempotencyKey: string | undefined): Soon<Created> {
    if (idempotencyKey !== undefined) return this.#createOnce(wanted, idempotencyKey)
    return wanted.jobId === undefined ? this.#createNew(wanted) : this.#createAs(wanted.jobId, wanted)
  }

  /** Most requests are let in without a look at the storage. */
  #admitAtOnce(wanted: NewJob): (() => void) | undefined {
    const clientId = wanted.client.id
    if (!this.#options.turnQueue.isQuiet(clientId)) return undefined
    return this.#backlog === undefined ? NOTHING_TO_DO : this.#backlog.admitAtOnce(clientId, { bytes: bytesOf(wanted) })
  }

  /** Who asks again for a job that is there gets it, however many are open. Gives what to call when the creation is over. */
  async #admit(wanted: NewJob): Promise<() => void> {
    const { client, idempotencyKey, jobId } = wanted
    const clientId = client.id
    const nothing = NOTHING_TO_DO
    const refusal =
      (await this.#options.turnQueue.refusal(clientId)) ??
      (await this.#backlog?.admit(clientId, { bytes: bytesOf(wanted) })) ??
      nothing
    if (typeof refusal === 'function') return refusal
    const { storage } = this.#options
    if (jobId !== undefined && (await this.#hasNamed(clientId, jobId))) return nothing
    const keyId = idempotencyKey === undefined ? undefined : keyIdOf(clientId, idempotencyKey)
    if (keyId !== undefined && (await storage.read('key', keyId)) !== undefined) return nothing
    throw refusal
  }

  async #hasNamed(clientId: string, jobId: string): Promise<boolean> {
    const { storage } = this.#options
    const known = (await storage.read('job', jobId))?.value
    if (known === undefined || known.client.id === clientId) return known !== undefined
    return (await storage.read('job', besideJobIdOf(jobId, clientId))) !== undefined
  }

  quotaUse(clientId: string, quota: Quota): Promise<QuotaUse> {
    return this.#quotas.use(clientId, quota)
  }

  #createNew(wanted: Checked, conflicts = 0): Soon<Created> {
    if (conflicts === CONFLICTS_MAX) throw tooManyConflicts()
    const id = this.#options.random.id()
    return chain(this.#commit(id, wanted), ({ type }) =>
      type === 'applied' ? { jobId: id, isNew: true } : this.#createNew(wanted, conflicts + 1),
    )
  }

  /** The caller named the job: the same request again finds it, and needs no record beside it. */
  async #createAs(id: string, wanted: Checked): Promise<Created> {
    if (Math.abs(timeIn(id) - wallTime(this.#options.clock)) > JOB_ID_SKEW_MS) {
      throw new ImpresarioError('INVALID_REQUEST', 'The time in "job_id" is more than a day off. Check your clock.')
    }
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      // Before the quota is looked at: what is there already has been paid for.
      const known = wanted.quota === undefined ? undefined : await this.#options.storage.read('job', id)
      const found = known?.value
      if (found !== undefined) return this.#knownAs(id, found, wanted)
      const created = await this.#commit(id, wanted)
      if (created.type === 'applied') return { jobId: id, isNew: true }
      if (created.type === 'ignored') return this.#knownAs(id, created.job, wanted)
    }
    throw tooManyConflicts()
  }

  /** The id is taken by another client, which must stay hidden: the caller gets a job of its own beside it. */
  #knownAs(id: string, known: Job | undefined, wanted: Checked): Promise<Created> | Created {
    const { client } = wanted.request
    const beside = besideJobIdOf(id, client.id)
    const isForeign = known !== undefined && known.client.id !== client.id && beside !== id
    if (isForeign) return this.#createAs(beside, wanted)
    const executionTimeoutMs =
      wanted.request.executionTimeoutMs ?? (known && this.#options.registry.of(known)?.policy.executionTimeoutMs)
    return repeated(id, known, { ...wanted.request, executionTimeoutMs })
  }

  async #createOnce(wanted: Checked, key: string): Promise<Created> {
    const { client, blueprint } = wanted.request
    const words = { ...wordsOf({ ...wanted.request, initialData: wanted.given }), id: wanted.jobId ?? null }
    const use = this.#keys.use({ clientId: client.id, key }, words, { blueprint, data: wanted.given })
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const known = await this.#keys.find(use)
      if (known !== undefined) return { jobId: known, isNew: false }
      const id = this.#options.random.id(use.id)
      const created = await this.#commit(id, wanted, this.#keys.put(use, id))
      if (created.type === 'applied') return { jobId: id, isNew: true }
    }
    throw tooManyConflicts()
  }

  #commit(id: string, { request, quota }: Checked, beside?: Put): Soon<Applied> {
    if (quota === undefined) return this.#apply(id, request, beside === undefined ? undefined : [beside])
    return this.#quotas
      .next(request.client.id, quota)
      .then((counted) => this.#apply(id, request, beside === undefined ? [counted] : [beside, counted]))
  }

  #apply(id: string, request: JobRequest, extra: readonly Put[] | undefined): Soon<Applied> {
    const { director, clock } = this.#options
    const at = creationTime(id, clock.now())
    const event = { type: 'created', at, id, request: this.#traced(id, request) } as const
    return extra === undefined ? director.apply(id, event) : director.apply(id, event, { extra })
  }

  /** Decided once, when the job is made: everything that it does later follows. A child belongs to the trace of its parent. */
  #traced(id: string, request: JobRequest): JobRequest {
    if (request.tracing !== undefined || this.#options.traces === undefined) return request
    const tracing = this.#options.traces.begin(id)
    return tracing === undefined ? request : { ...request, tracing }
  }
}

/** What a job begins with, in memory; one that begins in a later state, with what came of the earlier ones too. */
function bytesOf({ initialData, metadata, from }: JobRequest): number {
  const bytes = jsonWeight(initialData) + jsonWeight(metadata)
  return from === undefined ? bytes : bytes + jsonWeight(from.stateHistory) + jsonWeight(from.results)
}

/** All that a client says of a job. Two requests that differ in any of it are two. */
function wordsOf(said: JobRequest | Job): JsonObject {
  return {
    blueprint: said.blueprint,
    data: said.initialData,
    priority: said.priority ?? 0,
    metadata: said.metadata ?? null,
    webhook: said.webhookUrl ?? null,
    dispatchMs: said.dispatchTimeoutMs ?? null,
    resultMs: said.resultTimeoutMs ?? null,
    executionMs: said.executionTimeoutMs ?? null,
    // Absent for most, so that the marks of all others stay what they were.
    ...('from' in said && said.from !== undefined ? { from: { ...said.from, results: null } } : {}),
  }
}

function repeated(id: string, known: Job | undefined, request: JobRequest): Created {
  const isSame =
    known?.client.id === request.client.id && fingerprintOf(wordsOf(known)) === fingerprintOf(wordsOf(request))
  if (isSame) return { jobId: id, isNew: false }
  throw new ImpresarioError('IDEMPOTENCY_KEY_REUSED', `The id "${shownJobId(id)}" was already used for another job.`)
}

function refusedRequest({ blueprint }: JobRequest, { code, message }: RequestRefusal): ImpresarioError {
  return new ImpresarioError(code, message, code === 'BLUEPRINT_NOT_FOUND' ? { details: { blueprint } } : {})
}

/** What only the orchestrator starts is not there for clients. */
function notThere({ blueprint }: JobRequest): RequestRefusal {
  return { code: 'BLUEPRINT_NOT_FOUND', message: `There is no blueprint "${blueprint}".`, problems: [] }
}

function tooManyConflicts(): ImpresarioError {
  return new ImpresarioError('STORAGE_UNAVAILABLE', `The job could not be written after ${CONFLICTS_MAX} conflicts.`)
}

/**
 * Lists find the jobs of a span of time by the time in their ids, so a job whose id was made a moment ago is as old as
 * its id. An id that says anything else, a caller's or a simulation's, says nothing of when the job came.
 */
function creationTime(id: string, now: number): number {
  const age = now - timeIn(id)
  return age >= 0 && age <= MOMENT_MS ? now - age : now
}

const MOMENT_MS = 1_000

/** The milliseconds since 1970 that an id begins with. */
function timeIn(id: string): number {
  return Number.parseInt(id.replace('-', '').slice(0, 12), 16)
}

/** 128 bits: no two clients share them. */
const MARK_CHARS = 32

/** Where a client's own job of this id lies when another client has one of the same id. */
export function besideJobIdOf(id: string, clientId: string): string {
  return besideJobId(id, fingerprintOf(clientId).slice(0, MARK_CHARS))
}

/** Ids sort by the time in them, and lists and look-ups rely on new ones being near the present. */
const JOB_ID_SKEW_MS = 86_400_000
