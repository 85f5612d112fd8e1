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
  /** What they may take of the memory. */
  readonly bufferBytesMax?: number
  /** How long a close goes on trying to write to a database that is away. */
  readonly drainMs?: number
}

/** Some seconds of a busy server while its disk is away; 20 MB of usual events. */
const BUFFER_MAX = 50_000
/** For those that are not usual: one may bring several kilobytes of what its job had. */
const BUFFER_BYTES_MAX = 67_108_864
const BATCH = 1_000
/** Events of the same moments are written together. */
const GATHER_MS = 50
const RETRY_MS = 250
const RETRY_MS_MAX = 10_000
/** Below the time that the orchestrator gives the history to close. */
const DRAIN_MS = 5_000
/** The log tells of losses and of a database that is away once in a while, not for each event. */
const COMPLAIN_EVERY_MS = 10_000

interface Waiting {
  readonly event: HistoryEvent
  readonly bytes: number
}

/** Somebody who waits until so many events, counted from the beginning, are written or given up. */
interface Waiter {
  readonly count: number
  readonly resolve: () => void
}

/**
 * `idle` → (append) → `writing`, batch after batch, → `idle`; `closed` for good once everything is written.
 *
 * While the database is away, the batch that it did not take is tried again and again, ever more seldom, and what comes
 * waits behind it; when the buffer is full, what comes is lost. A batch that a working database refuses is taken apart
 * until the events that it does not like are alone, and these are lost. Whoever reads waits for what came before, not for
 * what goes on coming, and not for a database that is away.
 */
export class BufferedHistory implements History {
  readonly #options: BufferedHistoryOptions
  readonly #writer = randomUUID()
  readonly #waiting: Waiting[] = []
  /** What they weigh, with those that are being written. */
  #bytes = 0
  readonly #trimmer: Trimmer
  readonly #ended = new AbortController()
  readonly #never = new AbortController()
  /** Ends the time in which events are gathered. */
  #gathering = new AbortController()
  #waiters: Waiter[] = []
  #writing: Promise<void> | undefined
  #batches = 0
  /** Events that were taken, and those of them that are written or given up. */
  #taken = 0
  #settled = 0
  #dropped = 0
  /** How many of the lost the log knows of. */
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
      // Somebody waits: what is there is written now.
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

  /** What is too old is not shown, also where it is removed in large pieces and therefore late. */
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

  /** The time to close is up: what waits behind this batch would meet the same. */
  #giveUp(events: number, error: unknown): void {
    const rest = this.#waiting.splice(0)
    for (const { bytes } of rest) this.#bytes -= bytes
    this.#settled += rest.length
    this.#lose(events + rest.length, messageOf(error))
  }

  /** The halves are batches of their own. */
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

  /** A close cuts the pause short, once; then it is in a hurry. */
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
