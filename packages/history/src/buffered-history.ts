import type { Clock, Log } from '@impresario/core'
import type { History, HistoryEvent, HistoryQuery, HistoryStore, Retention, StoredEvent } from './history.ts'

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
const WRITE_TRIES = 3
const RETRY_MS = 500
/** The log tells of losses once in a while, not for each. */
const COMPLAIN_EVERY_MS = 10_000

/**
 * `idle` → (append) → `writing`, batch after batch, → `idle`; `closed` for good once everything is written.
 *
 * A batch that the store refuses is tried again a few times and then given up, so that a broken database cannot hold the
 * newest events back.
 */
export class BufferedHistory implements History {
  readonly #options: BufferedHistoryOptions
  readonly #waiting: HistoryEvent[] = []
  readonly #ended = new AbortController()
  #writing: Promise<void> | undefined
  #dropped = 0
  #complainedAt = Number.NEGATIVE_INFINITY
  #trimmedAt = Number.NEGATIVE_INFINITY
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
    const room = (this.#options.bufferMax ?? BUFFER_MAX) - this.#waiting.length
    for (const event of events.slice(0, Math.max(0, room))) this.#waiting.push(event)
    if (events.length > room) this.#lose(events.length - Math.max(0, room), 'the buffer is full')
    if (events.length > 0) this.#writing ??= this.#write()
  }

  async ofJob(jobId: string, query: HistoryQuery): Promise<readonly StoredEvent[]> {
    await this.flush()
    return this.#options.store.ofJob(jobId, query)
  }

  async ofWorker(workerId: string, query: HistoryQuery): Promise<readonly StoredEvent[]> {
    await this.flush()
    return this.#options.store.ofWorker(workerId, query)
  }

  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#ended.abort('closed')
    await this.flush()
    await this.#options.store.close()
  }

  async #write(): Promise<void> {
    const { clock, store, retention, log } = this.#options
    try {
      await clock.sleep(GATHER_MS, this.#ended.signal)
      while (this.#waiting.length > 0) await this.#writeBatch(this.#waiting.splice(0, BATCH))
      const now = clock.now()
      if (now - this.#trimmedAt < TRIM_EVERY_MS) return
      this.#trimmedAt = now
      let removed = 1
      while (removed > 0) removed = await store.trim(retention, now)
    } catch (error) {
      log.error('old history could not be removed', { error: messageOf(error) })
    } finally {
      this.#writing = undefined
      if (this.#waiting.length > 0) this.#writing = this.#write()
    }
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
