import { roughJsonLength } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import type { Batch, Branch, Job, Kind, Listing, ListQuery, Log, Put, Records, Storage, Stored } from '@impresario/core'
import type { JobValues, ValueRef } from '@impresario/files'
import type { Json, Soon } from '@impresario/protocol'
import { measuredStorage } from '../metrics/measured-storage.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { errorFields } from '../runtime/log.ts'

export interface OffloadingOptions {
  readonly storage: Storage
  /** Where large values go; nothing while there is no store, and everything stays in the record then. */
  readonly values: () => JobValues | undefined
  /** Larger values are kept in the store. */
  readonly bytesMin: number
  readonly log: Log
  readonly metrics: Metrics
}

type Path = readonly string[]

/** A value that is not in the record, and where in it it belongs. */
interface Offloaded extends ValueRef {
  readonly path: Path
}

/** A job as it is stored: where values were taken out stands `null`. */
interface StoredJob extends Job {
  readonly offloaded?: readonly Offloaded[]
}

/** Values of at least this size are measured once, and not with each commit. */
const REMEMBERED_MIN = 1_024

/**
 * A storage that keeps large values of jobs (initial data, params, results, values of the state history) in the store of
 * files, and puts them back when a job is read. The record has their size and their hash, which is also their name. All others
 * see whole jobs.
 *
 * A value is written before the record that refers to it, so that a crash in between leaves a file that no record knows: the
 * janitor removes it with the job. A value that the store does not take stays in the record.
 */
export class OffloadingStorage implements Storage {
  readonly #options: OffloadingOptions
  readonly #storage: Storage
  /** About how large values are: they are looked at once, and not with each commit. */
  readonly #sizes = new WeakMap<object, number>()
  /** Values that are in the store already, by the job that they belong to. A step of a job keeps what it does not change. */
  readonly #kept = new WeakMap<object, { readonly jobId: string; readonly ref: ValueRef }>()

  constructor(options: OffloadingOptions) {
    this.#options = options
    // Below this one, so that a commit does not count with the time that large values take.
    this.#storage = measuredStorage(options.storage, options.metrics)
  }

  readonly now: Storage['now'] = () => this.#storage.now()
  readonly counts: Storage['counts'] = (kind, facets) => this.#storage.counts(kind, facets)
  readonly peek: Storage['peek'] = (queue, ids) => this.#storage.peek(queue, ids)
  readonly held: Storage['held'] = (queue) => this.#storage.held(queue)
  readonly lanes: Storage['lanes'] = (queue) => this.#storage.lanes(queue)
  readonly oldest: Storage['oldest'] = (queue, lane) => this.#storage.oldest(queue, lane)
  readonly claim: Storage['claim'] = (queue, options) => this.#storage.claim(queue, options)
  readonly claimExpired: Storage['claimExpired'] = (queue, options) => this.#storage.claimExpired(queue, options)
  readonly renew: Storage['renew'] = (leases, leaseMs) => this.#storage.renew(leases, leaseMs)
  readonly sync: Storage['sync'] = () => this.#storage.sync()
  readonly watch: Storage['watch'] = (queue, listener) => this.#storage.watch(queue, listener)
  readonly close: Storage['close'] = () => this.#storage.close()

  async read<K extends Kind>(kind: K, id: string): Promise<Stored<Records[K]> | undefined> {
    const stored = await this.#storage.read(kind, id)
    if (kind !== 'job' || stored === undefined) return stored
    const job = asJob(stored.value)
    return job.offloaded === undefined ? stored : { ...stored, value: asRecord<K>(await this.#whole(job)) }
  }

  /** What is read from the store counts for the length of a page, as it did when it was in the record. */
  async list<K extends Kind>(kind: K, query: ListQuery): Promise<Listing<K>> {
    const page = await this.#storage.list(kind, query)
    if (kind !== 'job' || !page.some(({ value }) => asJob(value).offloaded !== undefined)) return page
    const { bytesMax = Number.POSITIVE_INFINITY } = query
    const whole: Listing<K>[number][] = []
    let bytes = 0
    for (const listed of page) {
      const job = asJob(listed.value)
      for (const { bytes: more } of job.offloaded ?? []) bytes += more
      whole.push({ ...listed, value: asRecord<K>(await this.#whole(job)) })
      if (bytes > bytesMax) break
    }
    const last = whole.at(-1)
    const next = whole.length < page.length ? last?.id : page.next
    return next === undefined ? whole : Object.assign(whole, { next })
  }

  commit(batch: Batch): Soon<'committed' | 'conflict'> {
    const values = this.#options.values()
    const { put = [] } = batch
    const isPlain = values === undefined || !put.some((one) => this.#isLarge(one))
    return isPlain ? this.#storage.commit(batch) : this.#commitWith(values, batch, put)
  }

  async #commitWith(values: JobValues, batch: Batch, puts: readonly Put[]): Promise<'committed' | 'conflict'> {
    const put = await Promise.all(
      puts.map(async (one): Promise<Put> =>
        one.kind === 'job' ? { ...one, value: await this.#taken(values, one.value) } : one,
      ),
    )
    return this.#storage.commit({ ...batch, put })
  }

  #isLarge(put: Put): boolean {
    return (
      put.kind === 'job' && (someValue(put.value, (value) => this.#isLargeValue(value)) || this.#isOverfull(put.value))
    )
  }

  #isLargeValue(value: unknown): boolean {
    const isKept = typeof value === 'object' && value !== null && this.#kept.has(value)
    return isKept || this.#sizeOf(value) > this.#options.bytesMin
  }

  /** Counted up to what matters. */
  #sizeOf(value: unknown): number {
    if (typeof value === 'string') return value.length
    if (typeof value !== 'object' || value === null) return 0
    const known = this.#sizes.get(value)
    if (known !== undefined) return known
    const size = roughJsonLength(value, Math.max(this.#options.bytesMin, LIMITS.contextBytesMax))
    // A short value is measured sooner than remembered.
    if (size > REMEMBERED_MIN) this.#sizes.set(value, size)
    return size
  }

  #isOverfull({ stateHistory }: Job): boolean {
    let size = 0
    for (const value of Object.values(stateHistory)) size += this.#sizeOf(value)
    return size > LIMITS.contextBytesMax
  }

  /** Single values that are large, and of a state history that is large as a whole, its largest ones until the rest fits. */
  #largePaths(job: Job): readonly Path[] {
    const large: Path[] = []
    someValue(job, (value, ...path) => {
      if (this.#isLargeValue(value)) large.push(path)
      return false
    })
    if (!this.#isOverfull(job)) return large
    const known = new Set(large.filter(([root]) => root === 'stateHistory').map(([, key]) => key))
    const rest = Object.entries(job.stateHistory)
      .filter(([key]) => !known.has(key))
      .map(([key, value]) => ({ key, bytes: Buffer.byteLength(JSON.stringify(value)) }))
      .toSorted((a, b) => b.bytes - a.bytes)
    let bytes = rest.reduce((sum, one) => sum + one.bytes, 0)
    const more: Path[] = []
    for (const one of rest) {
      if (bytes <= LIMITS.contextBytesMax || one.bytes < LIMITS.offloadedValueBytesMin) break
      more.push(['stateHistory', one.key])
      if (job.result === job.stateHistory) more.push(['result', one.key])
      bytes -= one.bytes
    }
    return [...large, ...more]
  }

  /** The job without its large values, which are in the store by then. */
  async #taken(values: JobValues, job: Job): Promise<StoredJob> {
    const large = this.#largePaths(job)
    const offloaded: Offloaded[] = []
    let rest: StoredJob = job
    for (const path of large) {
      const ref = await this.#keep(values, job.id, valueAt(job, path))
      if (ref === undefined) continue
      offloaded.push({ path, ...ref })
      rest = withValue(rest, path, null)
    }
    return offloaded.length === 0 ? job : { ...rest, offloaded }
  }

  async #keep(values: JobValues, jobId: string, value: unknown): Promise<ValueRef | undefined> {
    const { metrics, log } = this.#options
    const isObject = typeof value === 'object' && value !== null
    const known = isObject ? this.#kept.get(value) : undefined
    if (known?.jobId === jobId) return known.ref
    try {
      const ref = await values.put(jobId, JSON.stringify(value))
      if (isObject) this.#kept.set(value, { jobId, ref })
      metrics.count('impresario_values_offloaded_total', { status: 'ok' })
      return ref
    } catch (error) {
      metrics.count('impresario_values_offloaded_total', { status: 'error' })
      log.warn('a large value stays in the record of its job', { job_id: jobId, ...errorFields(error) })
      return undefined
    }
  }

  async #whole(stored: StoredJob): Promise<Job> {
    const { offloaded = [], ...job } = stored
    const values = this.#options.values()
    if (offloaded.length === 0) return job
    if (values === undefined) throw new Error('The store of files with parts of jobs is not open.')
    const found = await Promise.all(
      offloaded.map(async ({ path, sha256, bytes }) => {
        const ref = { sha256, bytes }
        const value = asJson(JSON.parse(await values.get(job.id, ref)))
        if (typeof value === 'object' && value !== null) this.#kept.set(value, { jobId: job.id, ref })
        return { path, value }
      }),
    )
    let whole: Job = job
    for (const { path, value } of found) whole = withValue(whole, path, value)
    return whole
  }
}

/**
 * Whether one of the values that may be large fits, with its place in the job. Every commit looks through them, so no list of
 * them is made.
 */
function someValue(job: Job, fits: (value: unknown, ...path: Path) => boolean): boolean {
  const { initialData, stateHistory, branches, aggregationResults = {}, results = [], result } = job
  if (fits(initialData, 'initialData')) return true
  const isShared = result === stateHistory
  if (result !== undefined && !isShared && fits(result, 'result')) return true
  for (const key of Object.keys(stateHistory)) {
    if (fits(stateHistory[key], 'stateHistory', key)) return true
    if (isShared && fits(stateHistory[key], 'result', key)) return true
  }
  for (const name of Object.keys(branches)) {
    const { call, outcome } = branches[name] as Branch
    const given = call.kind === 'task' ? call.params : call.initialData
    if (fits(given, 'branches', name, 'call', call.kind === 'task' ? 'params' : 'initialData')) return true
    if (outcome?.data !== undefined && fits(outcome.data, 'branches', name, 'outcome', 'data')) return true
  }
  for (const [id, { data }] of Object.entries(aggregationResults)) {
    if (data !== undefined && fits(data, 'aggregationResults', id, 'data')) return true
  }
  return results.some(({ data }, index) => data !== undefined && fits(data, 'results', `${index}`, 'data'))
}

function valueAt(root: unknown, path: Path): unknown {
  let value = root
  for (const key of path) value = (value as Readonly<Record<string, unknown>>)[key]
  return value
}

/** The same with another value at this place; everything beside it is shared. */
function withValue<T>(root: T, [key = '', ...rest]: Path, value: Json): T {
  const inner: unknown = rest.length === 0 ? value : withValue((root as Record<string, unknown>)[key], rest, value)
  if (Array.isArray(root)) return root.map((one: unknown, index) => (`${index}` === key ? inner : one)) as T
  // `__proto__` is a key like any other in data.
  return Object.defineProperty({ ...root }, key, { value: inner, enumerable: true, writable: true, configurable: true })
}

/** Boundary: only records of this kind come here. */
function asJob(value: unknown): StoredJob {
  return value as StoredJob
}

function asRecord<K extends Kind>(job: Job): Records[K] {
  return job as Records[K]
}

/** Boundary: what was written as JSON. */
function asJson(value: unknown): Json {
  return value as Json
}
