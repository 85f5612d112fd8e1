import type { Clock, Job, Log, Service, Storage } from '@impresario/core'
import type { Signals } from '../service/signals.ts'

/** A job that has changed, with what a reader needs to know whether the change concerns it. */
export interface JobChange {
  readonly jobId: string
  readonly version: number
  readonly status: string
  readonly owner: string
  readonly blueprint: string
}

/** What has changed since the listener was last called. Hints: the reader reads what it shows again. */
export interface Changes {
  readonly jobs: readonly JobChange[]
  /** Owners of further jobs that changed; `all` where even these are too many. */
  readonly more: readonly string[] | 'all'
  /** Whether a worker came, went or changed. */
  readonly workers: boolean
}

export interface ChangeFeedOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: Log
  readonly signals: Signals
}

/** Changes of this time are told together; the first one after a pause is told at once. */
const WINDOW_MS = 200
/** So many jobs are named in one window. A reader with more of them reads its lists again in any case. */
const NAMED_MAX = 100
const OWNERS_MAX = 50
/** Over a storage less: a signal about a job takes about 120 bytes of a lane. */
const SIGNALLED_MAX = 40
/** How often an instance with listeners says so to the others, and how long they believe it. */
const WATCH_MS = 5_000
const WATCHED_MS = 3 * WATCH_MS

const NONE: Changes = { jobs: [], more: [], workers: false }

/** What has changed and is not told yet: the newest of each job, up to a number of them. */
class Window {
  readonly #jobs = new Map<string, JobChange>()
  readonly #owners = new Set<string>()
  workers = false

  get isEmpty(): boolean {
    return this.#jobs.size === 0 && this.#owners.size === 0 && !this.workers
  }

  get taken(): Changes {
    const more = this.#owners.size > OWNERS_MAX ? 'all' : [...this.#owners]
    return { jobs: [...this.#jobs.values()], more, workers: this.workers }
  }

  add(change: JobChange): void {
    if (this.#jobs.has(change.jobId) || this.#jobs.size < NAMED_MAX) this.#jobs.set(change.jobId, change)
    else if (this.#owners.size <= OWNERS_MAX) this.#owners.add(change.owner)
  }
}

/**
 * Tells listeners which jobs and workers have changed, at any instance, once the change is durable.
 *
 * *Idle*: nothing listens here or elsewhere; a change costs one comparison. *Listening*: it has listeners, says so to the
 * other instances (`watch`), and they send what changes there (`change`, `changes`). *Watched*: another instance has said
 * so in the last fifteen seconds. What it holds has a bound: beyond it a window names owners instead of jobs, and beyond
 * that nothing but the fact.
 */
export class ChangeFeed implements Service {
  readonly name = 'changes'
  readonly #options: ChangeFeedOptions
  readonly #listeners = new Set<(changes: Changes) => void>()
  #pending = new Window()
  #watchedUntil = Number.NEGATIVE_INFINITY
  #isTelling = false
  #isAnnouncing = false
  #stopping = new AbortController()

  constructor(options: ChangeFeedOptions) {
    this.#options = options
    const { signals } = options
    signals.on('watch', () => {
      this.#watchedUntil = options.clock.now() + WATCHED_MS
    })
    // A new instance would otherwise send nothing before the next announcement.
    signals.on('hello', () => this.#announce())
    signals.on('change', (jobId = '', version = '', status = '', owner = '', blueprint = '') =>
      this.#tell({ ...NONE, jobs: [{ jobId, version: Number(version), status, owner, blueprint }] }),
    )
    signals.on('changes', (...owners) => this.#tell({ ...NONE, more: owners.length === 0 ? 'all' : owners }))
    signals.on('worker', () => this.#tell({ ...NONE, workers: true }))
  }

  async start(): Promise<void> {
    this.#stopping = new AbortController()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
  }

  async tick(): Promise<{ readonly worked: number }> {
    return { worked: 0 }
  }

  /** Calls `listener` with what changes from now on. Gives a way to hear no more of it. */
  subscribe(listener: (changes: Changes) => void): () => void {
    this.#listeners.add(listener)
    if (!this.#isAnnouncing) void this.#keepAnnouncing()
    return () => this.#listeners.delete(listener)
  }

  /** To be called after each commit. */
  jobChanged(job: Job, version: number): void {
    if (!this.#isHeard) return
    const { id: jobId, status, client, blueprint } = job
    this.#pending.add({ jobId, version, status, owner: client.id, blueprint })
    this.#wake()
  }

  workerChanged(): void {
    if (!this.#isHeard) return
    this.#pending.workers = true
    this.#wake()
  }

  get #isHeard(): boolean {
    return this.#listeners.size > 0 || this.#options.clock.now() < this.#watchedUntil
  }

  #wake(): void {
    if (this.#isTelling || this.#stopping.signal.aborted) return
    this.#isTelling = true
    void this.#tellAll()
  }

  async #tellAll(): Promise<void> {
    const { storage, clock, log } = this.#options
    const { signal } = this.#stopping
    while (!this.#pending.isEmpty && !signal.aborted) {
      const changes = this.#pending.taken
      this.#pending = new Window()
      try {
        await storage.sync()
        this.#tell(changes)
        this.#signal(changes)
      } catch (error) {
        log.warn('changes could not be told', { error: String(error) })
      }
      await clock.sleep(WINDOW_MS, signal)
    }
    this.#isTelling = false
  }

  #tell(changes: Changes): void {
    for (const listener of this.#listeners) listener(changes)
  }

  /** Workers are told by the dispatcher's own signal. */
  #signal({ jobs, more }: Changes): void {
    const { signals, clock } = this.#options
    if (clock.now() >= this.#watchedUntil) return
    for (const { jobId, version, status, owner, blueprint } of jobs.slice(0, SIGNALLED_MAX)) {
      signals.send(['change', jobId, String(version), status, owner, blueprint])
    }
    const rest = jobs.slice(SIGNALLED_MAX).map(({ owner }) => owner)
    if (more === 'all') signals.send(['changes'])
    else for (const owner of new Set([...more, ...rest])) signals.send(['changes', owner])
  }

  async #keepAnnouncing(): Promise<void> {
    this.#isAnnouncing = true
    const { signal } = this.#stopping
    while (this.#listeners.size > 0 && !signal.aborted) {
      this.#announce()
      await this.#options.clock.sleep(WATCH_MS, signal)
    }
    this.#isAnnouncing = false
  }

  #announce(): void {
    if (this.#listeners.size > 0) this.#options.signals.send(['watch'])
  }
}
