import { randomUUID } from 'node:crypto'
import { WOKEN } from '@impresario/core'
import type { Clock, Log } from '@impresario/core'
import { jsonWeight } from '@impresario/protocol'
import { WriteRefusedError } from './history.ts'
import type {
  EventCount,
  EventCountQuery,
  EventListQuery,
  History,
  HistoryEvent,
  HistoryStatus,
  HistoryStore,
  JobHistoryQuery,
  Retention,
  EventPage,
  WorkerHistoryQuery,
} from './history.ts'
import { Trimmer } from './trimmer.ts'

export interface BufferedHistoryOptions {
  readonly store: HistoryStore
  readonly clock: Clock
  readonly log: Log
  readonly retention: Retention
  /** Events that may wait to be written. */
  readonly bufferMax?: number
  /** Their maximum size in memory. */
  readonly bufferBytesMax?: number
  /** How long a close continues to retry while the database is unreachable. */
  readonly drainMs?: number
}

/** Some seconds of a busy server while its disk is unavailable; 20 MB of usual events. */
const BUFFER_MAX = 50_000
/** For unusual events: one may contain several kilobytes of its job's data. */
const BUFFER_BYTES_MAX = 67_108_864
const BATCH = 1_000
/** Events of about the same time are written together. */
const GATHER_MS = 50
const RETRY_MS = 250
const RETRY_MS_MAX = 10_000
/** Shorter than the time that the orchestrator gives the history to close. */
const DRAIN_MS = 5_000
/** Losses and an unreachable database are logged at intervals, not for each event. */
const COMPLAIN_EVERY_MS = 10_000

interface Waiting {
  readonly event: HistoryEvent
  readonly bytes: number
}

/** A caller that waits until this many events, counted from the start, are written or given up. */
interface Waiter {
  readonly count: number
  readonly resolve: () => void
}

/**
 * `idle` → (append) → `writing`, batch after batch, → `idle`; `closed`, which is final, once everything is written.
 *
 * While the database is unreachable, the failed batch is retried with growing pauses, and new events wait behind it.
 * When the buffer is full, new events are lost. A batch that a working database refuses is split until the refused
 * events are alone, and these are lost. A read waits for the events before it, not for later ones, and not for an
 * unreachable database.
 */
export class BufferedHistory implements History {
  readonly #options: BufferedHistoryOptions
  readonly #writer = randomUUID()
  readonly #waiting: Waiting[] = []
  /** The size of the buffered events, including those that are being written. */
  #bytes = 0
  readonly #trimmer: Trimmer
  readonly #ended = new AbortController()
  readonly #never = new AbortController()
  /** Ends the time in which events are collected. */
  #gathering = new AbortController()
  #waiters: Waiter[] = []
  #writing: Promise<void> | undefined
  #batches = 0
  /** The number of accepted events, and of those that are written or given up. */
  #taken = 0
  #settled = 0
  #dropped = 0
  /** How many of the lost events have been logged. */
  #told = 0
  #toldAt = Number.NEGATIVE_INFINITY
  #complainedAt = Number.NEGATIVE_INFINITY
  #isAway = false
  #isClosed = false
  #drainUntil = Number.POSITIVE_INFINITY

  constructor(options: BufferedHistoryOptions) {
    this.#options = options
    this.#trimmer = new Trimmer(options)
  }

  get status(): HistoryStatus {
    return { isAway: this.#isAway, waiting: this.#taken - this.#settled, dropped: this.#dropped }
  }

  async start(): Promise<void> {
    await this.#options.store.open()
    if (!this.#isClosed) this.#trimmer.start()
  }

  append(events: readonly HistoryEvent[]): void {
    if (this.#isClosed) {
      this.#lose(events.length, 'it is closed')
      return
    }
    const { bufferMax = BUFFER_MAX, bufferBytesMax = BUFFER_BYTES_MAX } = this.#options
    let lost = 0
    for (const event of events) {
      const bytes = jsonWeight(event)
      if (this.#taken - this.#settled >= bufferMax || this.#bytes + bytes > bufferBytesMax) {
        lost += 1
        continue
      }
      this.#waiting.push({ event, bytes })
      this.#bytes += bytes
      this.#taken += 1
    }
    if (lost > 0) this.#lose(lost, 'the buffer is full')
    if (this.#waiting.length > 0) this.#writing ??= this.#write()
  }

  async ofJob(jobId: string, query: JobHistoryQuery): Promise<EventPage> {
    await this.flush()
    return this.#options.store.ofJob(jobId, { ...query, since: this.#since(query.since) })
  }

  async ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<EventPage> {
    await this.flush()
    return this.#options.store.ofWorker(workerId, { ...query, since: this.#since(query.since) })
  }

  async list(query: EventListQuery): Promise<EventPage> {
    await this.flush()
    return this.#options.store.list({ ...query, since: this.#since(query.since) })
  }

  async counts(query: EventCountQuery): Promise<readonly EventCount[]> {
    await this.flush()
    return this.#options.store.counts({ ...query, since: this.#since(query.since) })
  }

  async flush(): Promise<void> {
    const count = this.#taken
    if (this.#settled >= count || this.#isAway) return
    await new Promise<void>((resolve) => {
      this.#waiters.push({ count, resolve })
      // A caller waits: the buffered events are written now.
      this.#gathering.abort(WOKEN)
    })
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    const { clock, store, drainMs = DRAIN_MS } = this.#options
    this.#drainUntil = clock.now() + drainMs
    this.#ended.abort(WOKEN)
    this.#gathering.abort(WOKEN)
    await this.#trimmer.stop()
    await this.#writing
    if (this.#dropped > this.#told) this.#tell('the history is closed')
    await store.close()
  }

  /** Events that are too old are not shown, even where they are removed in large portions and therefore late. */
  #since(wanted = 0): number {
    const { clock, retention } = this.#options
    return Math.max(wanted, clock.now() - retention.ageMs)
  }

  async #write(): Promise<void> {
    this.#gathering = new AbortController()
    await this.#options.clock.sleep(GATHER_MS, this.#gathering.signal)
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH)
      await this.#writeBatch(batch.map(({ event }) => event))
      for (const { bytes } of batch) this.#bytes -= bytes
      this.#settled += batch.length
      this.#release((waiter) => waiter.count <= this.#settled)
      this.#trimmer.count(batch.length)
    }
    this.#writing = undefined
  }

  #release(isDone: (waiter: Waiter) => boolean): void {
    const done = this.#waiters.filter(isDone)
    this.#waiters = this.#waiters.filter((waiter) => !isDone(waiter))
    for (const { resolve } of done) resolve()
  }

  async #writeBatch(events: readonly HistoryEvent[]): Promise<void> {
    this.#batches += 1
    const batch = { writer: this.#writer, number: this.#batches, events }
    for (let tries = 0; ; tries += 1) {
      try {
        await this.#options.store.write(batch)
        this.#cameBack()
        return
      } catch (error) {
        if (error instanceof WriteRefusedError) return this.#takeApart(events, error)
        this.#isAway = true
        this.#release(() => true)
        if (this.#options.clock.now() >= this.#drainUntil) return this.#giveUp(events.length, error)
        this.#complain(error)
        await this.#pause(tries)
      }
    }
  }

  /** The time to close is over: the events behind this batch would fail in the same way. */
  #giveUp(events: number, error: unknown): void {
    const rest = this.#waiting.splice(0)
    for (const { bytes } of rest) this.#bytes -= bytes
    this.#settled += rest.length
    this.#lose(events + rest.length, messageOf(error))
  }

  /** The halves become separate batches. */
  async #takeApart(events: readonly HistoryEvent[], error: WriteRefusedError): Promise<void> {
    this.#isAway = false
    if (events.length === 1 || !error.isPartly) {
      this.#lose(events.length, error.message)
      return
    }
    const middle = Math.ceil(events.length / 2)
    await this.#writeBatch(events.slice(0, middle))
    await this.#writeBatch(events.slice(middle))
  }

  /** A close ends the pause early, once; then little time is left. */
  async #pause(tries: number): Promise<void> {
    const { clock } = this.#options
    if (this.#isClosed) return clock.sleep(RETRY_MS, this.#never.signal)
    const ms = Math.min(RETRY_MS * 2 ** Math.min(tries, 10), RETRY_MS_MAX)
    await clock.sleep(ms * (0.5 + Math.random() / 2), this.#ended.signal)
  }

  #cameBack(): void {
    if (!this.#isAway) return
    this.#isAway = false
    this.#complainedAt = Number.NEGATIVE_INFINITY
    this.#options.log.info('the history is written again', { waiting: this.status.waiting, lost: this.#dropped })
  }

  #lose(count: number, reason: string): void {
    this.#dropped += count
    if (this.#options.clock.now() - this.#toldAt >= COMPLAIN_EVERY_MS) this.#tell(reason)
  }

  #tell(reason: string): void {
    const { clock, log } = this.#options
    this.#toldAt = clock.now()
    this.#told = this.#dropped
    log.error('history was lost', { events: this.#dropped, reason })
  }

  #complain(error: unknown): void {
    const { clock, log } = this.#options
    const now = clock.now()
    if (now - this.#complainedAt < COMPLAIN_EVERY_MS) return
    this.#complainedAt = now
    log.error('the history cannot be written, and waits', { waiting: this.status.waiting, reason: messageOf(error) })
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
