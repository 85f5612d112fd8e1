import type { Clock, Log } from '@impresario/core'
import type {
  History,
  HistoryEvent,
  HistoryStore,
  JobHistoryQuery,
  Retention,
  StoredEvent,
  WorkerHistoryQuery,
} from './history.ts'

export interface BufferedHistoryOptions {
  readonly store: HistoryStore
  readonly clock: Clock
  readonly log: Log
  readonly retention: Retention
  /** Events that may wait to be written. */
  readonly bufferMax?: number
}

/** About 20 MB of events, or some seconds of a busy server while its disk is away. */
const BUFFER_MAX = 50_000
const BATCH = 1_000
/** Events of the same moments are written together. */
const GATHER_MS = 50
const TRIM_EVERY_MS = 60_000
/** On a busy server sooner: 10 MB are not far beyond any bound. */
const TRIM_EVERY_EVENTS = 25_000
const WRITE_TRIES = 3
const RETRY_MS = 500
/** The log tells of losses once in a while, not for each. */
const COMPLAIN_EVERY_MS = 10_000

/** Somebody who waits until so many events, counted from the beginning, are written or given up. */
interface Waiter {
  readonly count: number
  readonly resolve: () => void
}

/**
 * `idle` → (append) → `writing`, batch after batch, → `idle`; `closed` for good once everything is written.
 *
 * A batch that the store refuses is tried again a few times and then given up, so that a broken database cannot hold the
 * newest events back. Whoever reads waits for what came before, not for what goes on coming.
 */
export class BufferedHistory implements History {
  readonly #options: BufferedHistoryOptions
  readonly #waiting: HistoryEvent[] = []
  readonly #ended = new AbortController()
  #waiters: Waiter[] = []
  #writing: Promise<void> | undefined
  /** Events that were taken, and those of them that are written or given up. */
  #taken = 0
  #settled = 0
  #dropped = 0
  #complainedAt = Number.NEGATIVE_INFINITY
  #trimmedAt = Number.NEGATIVE_INFINITY
  /** `#settled` of that time. */
  #trimmedTo = 0
  #isClosed = false

  constructor(options: BufferedHistoryOptions) {
    this.#options = options
  }

  get dropped(): number {
    return this.#dropped
  }

  append(events: readonly HistoryEvent[]): void {
    if (this.#isClosed) {
      this.#lose(events.length, 'it is closed')
      return
    }
    const room = Math.max(0, (this.#options.bufferMax ?? BUFFER_MAX) - this.#waiting.length)
    for (const event of events.slice(0, room)) this.#waiting.push(event)
    this.#taken += Math.min(room, events.length)
    if (events.length > room) this.#lose(events.length - room, 'the buffer is full')
    if (this.#waiting.length > 0) this.#writing ??= this.#write()
  }

  async ofJob(jobId: string, query: JobHistoryQuery): Promise<readonly StoredEvent[]> {
    await this.flush()
    return this.#options.store.ofJob(jobId, query)
  }

  async ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<readonly StoredEvent[]> {
    await this.flush()
    return this.#options.store.ofWorker(workerId, query)
  }

  async flush(): Promise<void> {
    const count = this.#taken
    if (this.#settled >= count) return
    await new Promise<void>((resolve) => {
      this.#waiters.push({ count, resolve })
    })
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#ended.abort('closed')
    await this.#writing
    await this.#options.store.close()
  }

  async #write(): Promise<void> {
    await this.#options.clock.sleep(GATHER_MS, this.#ended.signal)
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH)
      await this.#writeBatch(batch)
      await this.#trim()
      this.#settle(batch.length)
    }
    this.#writing = undefined
  }

  #settle(count: number): void {
    this.#settled += count
    const done = this.#waiters.filter((waiter) => waiter.count <= this.#settled)
    this.#waiters = this.#waiters.filter((waiter) => waiter.count > this.#settled)
    for (const { resolve } of done) resolve()
  }

  /** A piece of what is beyond the bounds, so that a long clearance does not hold the newest events back. */
  async #trim(): Promise<void> {
    const { clock, store, retention, log } = this.#options
    const now = clock.now()
    if (now - this.#trimmedAt < TRIM_EVERY_MS && this.#settled - this.#trimmedTo < TRIM_EVERY_EVENTS) return
    try {
      const removed = await store.trim(retention, now)
      // There may be more than this piece: the next batch takes the next one.
      if (removed > 0) return
    } catch (error) {
      log.error('old history could not be removed', { error: messageOf(error) })
    }
    this.#trimmedAt = now
    this.#trimmedTo = this.#settled
  }

  async #writeBatch(batch: readonly HistoryEvent[]): Promise<void> {
    const { clock, store } = this.#options
    for (let tries = 1; ; tries += 1) {
      try {
        await store.write(batch)
        return
      } catch (error) {
        if (tries >= WRITE_TRIES) {
          this.#lose(batch.length, messageOf(error))
          return
        }
        await clock.sleep(RETRY_MS * tries, this.#ended.signal)
      }
    }
  }

  #lose(count: number, reason: string): void {
    const { clock, log } = this.#options
    this.#dropped += count
    const now = clock.now()
    if (now - this.#complainedAt < COMPLAIN_EVERY_MS) return
    this.#complainedAt = now
    log.error('history was lost', { events: this.#dropped, reason })
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
