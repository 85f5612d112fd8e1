import { isEnded, WOKEN } from '@impresario/core'
import type { Clock, Job } from '@impresario/core'
import { Recent } from '../service/recent.ts'
import type { Signals } from '../service/signals.ts'

export interface NewsOptions {
  readonly waitMs: number
  readonly signal: AbortSignal
}

/** What a caller waits for: a version beyond this one; without it, that the job has ended or is in quarantine. */
export interface Awaited {
  readonly afterVersion?: number | undefined
}

/** The part of a job that decides whether a wait is over. */
interface Moment {
  readonly version: number
  readonly isEnded: boolean
  readonly isResting: boolean
}

interface Ear {
  readonly awaited: Awaited
  readonly wake: () => void
}

/** Jobs that others wait for, and those that changed here lately: some 2 MB each at most. */
const REMEMBERED_MAX = 20_000

/** Whether the job has reached what is waited for. */
export function isAwaited(job: Job, version: number, awaited: Awaited): boolean {
  return answers(momentOf(job, version), awaited)
}

/**
 * Tells callers that wait for a job that it has changed. A hint: they read the job themselves.
 *
 * Where several instances share the storage, one that begins to wait says so to the others (`wait`), and the one that
 * changes the job accordingly says it once (`news`). Both may cross: so each instance also remembers what has changed there
 * lately, and answers a wait that comes too late. Nothing is published about jobs without waiting callers.
 */
export class JobNews {
  readonly #ears = new Map<string, Set<Ear>>()
  readonly #clock: Clock
  readonly #signals: Signals
  readonly #awaitedElsewhere = new Recent<Awaited>(REMEMBERED_MAX)
  readonly #changed = new Recent<Moment>(REMEMBERED_MAX)

  constructor(clock: Clock, signals: Signals) {
    this.#clock = clock
    this.#signals = signals
    signals.on('wait', (jobId = '', after = '') =>
      this.#onWait(jobId, after === '' ? {} : { afterVersion: Number(after) }),
    )
    signals.on('news', (jobId = '') => {
      for (const { wake } of this.#ears.get(jobId) ?? []) wake()
    })
  }

  publish(job: Job, version: number): void {
    for (const { awaited, wake } of this.#ears.get(job.id) ?? []) if (isAwaited(job, version, awaited)) wake()
    if (!this.#signals.hasPeers) return
    const moment = momentOf(job, version)
    this.#changed.set(job.id, moment)
    const awaited = this.#awaitedElsewhere.get(job.id)
    if (awaited === undefined || !answers(moment, awaited)) return
    this.#awaitedElsewhere.delete(job.id)
    this.#signals.send(['news', job.id])
  }

  /** Opens an ear before the job is read, so that no change falls in between. */
  listen(jobId: string, awaited: Awaited): { wait(options: NewsOptions): Promise<void>; close(): void } {
    const nap = new AbortController()
    const ear: Ear = { awaited, wake: () => nap.abort(WOKEN) }
    const ears = this.#ears.get(jobId) ?? new Set()
    ears.add(ear)
    this.#ears.set(jobId, ears)
    const close = (): void => {
      ears.delete(ear)
      if (ears.size === 0 && this.#ears.get(jobId) === ears) this.#ears.delete(jobId)
    }
    const wait = async ({ waitMs, signal }: NewsOptions): Promise<void> => {
      const { afterVersion } = awaited
      this.#signals.send(['wait', jobId, ...(afterVersion === undefined ? [] : [String(afterVersion)])])
      const stop = (): void => nap.abort(WOKEN)
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      if (!nap.signal.aborted) await this.#clock.sleep(waitMs, nap.signal)
      signal.removeEventListener('abort', stop)
    }
    return { wait, close }
  }

  /** If several wait for different things, they are told of the first of them, and ask again. */
  #onWait(jobId: string, awaited: Awaited): void {
    const changed = this.#changed.get(jobId)
    if (changed !== undefined && answers(changed, awaited)) {
      // Another instance may have set it going again: then it is not said a second time, or the two would never end.
      if (awaited.afterVersion === undefined && !changed.isEnded) this.#changed.delete(jobId)
      this.#signals.send(['news', jobId])
      return
    }
    const before = this.#awaitedElsewhere.get(jobId)
    this.#awaitedElsewhere.set(jobId, before === undefined ? awaited : broader(before, awaited))
  }
}

function momentOf(job: Job, version: number): Moment {
  const hasEnded = isEnded(job)
  return { version, isEnded: hasEnded, isResting: hasEnded || job.status === 'quarantined' }
}

function answers({ version, isEnded: hasEnded, isResting }: Moment, { afterVersion }: Awaited): boolean {
  return hasEnded || (afterVersion === undefined ? isResting : version > afterVersion)
}

/** What both are answered by: a wait for any change ends with the job too. */
function broader(a: Awaited, b: Awaited): Awaited {
  if (a.afterVersion === undefined) return b
  return b.afterVersion === undefined ? a : { afterVersion: Math.min(a.afterVersion, b.afterVersion) }
}
