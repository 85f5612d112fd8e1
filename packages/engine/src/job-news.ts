import { WOKEN } from '@impresario/core'
import type { Clock, Job } from '@impresario/core'

export interface NewsOptions {
  readonly waitMs: number
  readonly signal: AbortSignal
}

type Listener = (job: Job, version: number) => void

/** Tells whoever waits for a job that it has changed. A hint from this instance only: callers read the job themselves. */
export class JobNews {
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  publish(job: Job, version: number): void {
    const listeners = this.#listeners.get(job.id)
    if (listeners === undefined) return
    for (const listener of listeners) listener(job, version)
  }

  /** Opens an ear before the job is read, so that no change falls in between. */
  listen(
    jobId: string,
    matters: (job: Job, version: number) => boolean,
  ): { wait(options: NewsOptions): Promise<void>; close(): void } {
    const nap = new AbortController()
    const listener: Listener = (job, version) => {
      if (matters(job, version)) nap.abort(WOKEN)
    }
    const listeners = this.#listeners.get(jobId) ?? new Set()
    listeners.add(listener)
    this.#listeners.set(jobId, listeners)
    const close = (): void => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(jobId) === listeners) this.#listeners.delete(jobId)
    }
    const wait = async ({ waitMs, signal }: NewsOptions): Promise<void> => {
      const stop = (): void => nap.abort(WOKEN)
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      if (!nap.signal.aborted) await this.#clock.sleep(waitMs, nap.signal)
      signal.removeEventListener('abort', stop)
    }
    return { wait, close }
  }
}
