import type { Clock, Job, JobRequest, Put, Random, Storage } from '@impresario/core'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { Backlog } from './backlog.ts'
import type { BacklogBounds } from './backlog.ts'
import type { Retention } from './batch.ts'
import type { BlueprintShelf } from './blueprint-shelf.ts'
import type { Applied, Director } from './director.ts'
import { fingerprintOf } from './fingerprint.ts'
import { QuotaBook } from './quota.ts'
import type { Quota, QuotaUse } from './quota.ts'

export interface CreateOptions {
  readonly idempotencyKey?: string | undefined
  /** A UUIDv7 that becomes the job's id; a repeated request finds the job again. */
  readonly jobId?: string | undefined
  /** What the client may start; without it, as much as it likes, and nothing is counted. */
  readonly quota?: Quota | undefined
}

export interface JobCreationOptions {
  readonly storage: Storage
  readonly shelf: BlueprintShelf
  readonly director: Director
  readonly clock: Clock
  readonly random: Random
  readonly retention?: Retention | undefined
  /** How many jobs may be open; without it, any number. */
  readonly backlog?: BacklogBounds | undefined
}

export interface Created {
  readonly jobId: string
  readonly isNew: boolean
}

/** A request whose data fits its blueprint. `given`: the data as it was sent, by which a repeated request is known. */
interface Checked {
  readonly request: JobRequest
  readonly given: JsonObject
  readonly quota: Quota | undefined
}

/** After so many others were faster, in a row, something is wrong with the storage and not with the timing. */
const CONFLICTS_MAX = 100

/** Starts jobs: once for each key or id, and no more than the client's quota has. */
export class JobCreation {
  readonly #options: JobCreationOptions
  readonly #quotas: QuotaBook
  readonly #backlog: Backlog | undefined

  constructor(options: JobCreationOptions) {
    this.#options = options
    this.#quotas = new QuotaBook(options.storage)
    const { storage, clock, backlog: bounds } = options
    this.#backlog = bounds && new Backlog({ storage, clock, bounds })
  }

  async create(request: JobRequest, { idempotencyKey, jobId, quota }: CreateOptions): Promise<Created> {
    const blueprint = this.#options.shelf.latest(request.blueprint)
    const checked = await blueprint.validateInput(request.initialData)
    if ('problems' in checked) {
      throw new ImpresarioError(
        'INPUT_REFUSED',
        `The initial data does not fit "${blueprint.name}": ${checked.problems.join('; ')}`,
      )
    }
    await this.#admit(request.client.id, { idempotencyKey, jobId })
    const wanted = { request: { ...request, initialData: checked.value }, given: request.initialData, quota }
    const start = (): Promise<Created> => {
      if (idempotencyKey !== undefined) return this.#createOnce(wanted, idempotencyKey)
      return jobId === undefined ? this.#createNew(wanted) : this.#createAs(jobId, wanted)
    }
    return quota === undefined ? start() : this.#quotas.inTurn(request.client.id, start)
  }

  /** Who asks again for a job that is there gets it, however many are open. */
  async #admit(clientId: string, { idempotencyKey, jobId }: CreateOptions): Promise<void> {
    const refusal = await this.#backlog?.admit(clientId)
    if (refusal === undefined) return
    const { storage } = this.#options
    if (jobId !== undefined && (await storage.read('job', jobId)) !== undefined) return
    const keyId = idempotencyKey === undefined ? undefined : keyIdOf(clientId, idempotencyKey)
    if (keyId !== undefined && (await storage.read('key', keyId)) !== undefined) return
    throw refusal
  }

  quotaUse(clientId: string, quota: Quota): Promise<QuotaUse> {
    return this.#quotas.use(clientId, quota)
  }

  async #createNew(wanted: Checked): Promise<Created> {
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const id = this.#options.random.id()
      const created = await this.#commit(id, wanted)
      if (created.type === 'applied') return { jobId: id, isNew: true }
    }
    throw tooManyConflicts()
  }

  /** The caller named the job: the same request again finds it, and needs no record beside it. */
  async #createAs(id: string, wanted: Checked): Promise<Created> {
    if (Math.abs(timeIn(id) - this.#options.clock.now()) > JOB_ID_SKEW_MS) {
      throw new ImpresarioError('INVALID_REQUEST', 'The time in "job_id" is more than a day off. Check your clock.')
    }
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      // Before the quota is looked at: what is there already has been paid for.
      const known = wanted.quota === undefined ? undefined : await this.#options.storage.read('job', id)
      if (known !== undefined) return repeated(id, known.value, wanted.request)
      const created = await this.#commit(id, wanted)
      if (created.type === 'applied') return { jobId: id, isNew: true }
      if (created.type === 'ignored') return repeated(id, created.job, wanted.request)
    }
    throw tooManyConflicts()
  }

  async #createOnce(wanted: Checked, key: string): Promise<Created> {
    const { storage, clock, random } = this.#options
    const { client, blueprint } = wanted.request
    const keyId = keyIdOf(client.id, key)
    const fingerprint = fingerprintOf({ blueprint, data: wanted.given })
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const stored = await storage.read('key', keyId)
      const known = stored?.value
      if (known !== undefined) {
        if (known.fingerprint === fingerprint) return { jobId: known.jobId, isNew: false }
        throw new ImpresarioError(
          'IDEMPOTENCY_KEY_REUSED',
          `The idempotency key "${key}" was used for other data before. Use a new key for a new request.`,
        )
      }
      const id = random.id(keyId)
      const value = { jobId: id, fingerprint, createdAt: clock.now() }
      const expiresMs = this.#options.retention?.keyMs ?? LIMITS.idempotencyKeyMs
      const used: Put = { kind: 'key', id: keyId, version: 1, value, expiresMs }
      const created = await this.#commit(id, wanted, used)
      if (created.type === 'applied') return { jobId: id, isNew: true }
    }
    throw tooManyConflicts()
  }

  async #commit(id: string, { request, quota }: Checked, beside?: Put): Promise<Applied> {
    const { director, clock } = this.#options
    const counted = quota === undefined ? undefined : await this.#quotas.next(request.client.id, quota)
    const extra = [beside, counted].filter((put) => put !== undefined)
    const event = { type: 'created', at: creationTime(id, clock.now()), id, request } as const
    return director.apply(id, event, undefined, extra.length === 0 ? undefined : extra)
  }
}

function repeated(id: string, known: Job | undefined, request: JobRequest): Created {
  const isSame =
    known?.client.id === request.client.id &&
    known.blueprint === request.blueprint &&
    fingerprintOf(known.initialData) === fingerprintOf(request.initialData)
  if (isSame) return { jobId: id, isNew: false }
  throw new ImpresarioError('IDEMPOTENCY_KEY_REUSED', `The id "${id}" was used for another job before.`)
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

/** Ids sort by the time in them, and lists and look-ups rely on new ones being near the present. */
const JOB_ID_SKEW_MS = 86_400_000

/** Escaped, so that no client's name and key together read like those of another. */
function keyIdOf(clientId: string, key: string): string {
  return `${clientId.replaceAll('%', '%25').replaceAll('/', '%2F')}/${key}`
}
