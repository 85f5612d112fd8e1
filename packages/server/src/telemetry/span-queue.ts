import type { Clock } from '@impresario/core'
import { WOKEN } from '@impresario/core'
import { bytesOf } from './span.ts'
import type { Span } from './span.ts'

export interface SpanQueueOptions {
  readonly clock: Clock
  readonly spansMax: number
  readonly bytesMax: number
  /** Longest time that a span waits when the collector answers. */
  readonly delayMs: number
  /** Sends a batch. Never takes for ever; a rejection means that the batch is lost. */
  readonly send: (spans: readonly Span[]) => Promise<void>
  readonly onSent: (spans: number) => void
  readonly onDropped: (spans: number, reason: 'queue_full' | 'export_failed' | 'stopped') => void
}

/** Spans in one request: the batch size that OpenTelemetry suggests. */
const BATCH_MAX = 512
/** A request of this size is large enough, whatever the number of spans. */
const BATCH_BYTES = 1_048_576

/**
 * Spans on their way to the collector. `add` is an addition to a list: nothing waits for the collector. When it is slow or
 * gone, the queue fills up to its bounds, and further spans are dropped and counted.
 *
 * `new` → `start` → sending, one batch at a time → `stop`, which sends what is left within its time.
 */
export class SpanQueue {
  readonly #options: SpanQueueOptions
  #waiting: { readonly span: Span; readonly bytes: number }[] = []
  #bytes = 0
  #isStopped = false
  #nap: AbortController | undefined
  #running: Promise<void> | undefined

  constructor(options: SpanQueueOptions) {
    this.#options = options
  }

  add(span: Span): void {
    const { spansMax, bytesMax, onDropped } = this.#options
    const bytes = bytesOf(span)
    if (this.#isStopped || this.#waiting.length >= spansMax || this.#bytes + bytes > bytesMax) {
      onDropped(1, this.#isStopped ? 'stopped' : 'queue_full')
      return
    }
    this.#waiting.push({ span, bytes })
    this.#bytes += bytes
    if (this.#waiting.length === BATCH_MAX) this.#nap?.abort(WOKEN)
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Sends what is left. The caller bounds the time that it waits. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#nap?.abort(WOKEN)
    await this.#running
    this.#options.onDropped(this.#waiting.length, 'stopped')
    this.#waiting = []
  }

  async #run(): Promise<void> {
    const { clock, delayMs } = this.#options
    while (!this.#isStopped) {
      this.#nap = new AbortController()
      if (this.#waiting.length < BATCH_MAX) await clock.sleep(delayMs, this.#nap.signal)
      if (this.#waiting.length > 0) await this.#sendBatch()
    }
    while (this.#waiting.length > 0 && (await this.#sendBatch())) continue
  }

  async #sendBatch(): Promise<boolean> {
    const { send, onSent, onDropped } = this.#options
    const batch = this.#take()
    try {
      await send(batch)
      onSent(batch.length)
      return true
    } catch {
      onDropped(batch.length, 'export_failed')
      return false
    }
  }

  #take(): readonly Span[] {
    let [count, bytes] = [0, 0]
    while (count < Math.min(this.#waiting.length, BATCH_MAX) && (count === 0 || bytes < BATCH_BYTES)) {
      bytes += this.#waiting[count]?.bytes ?? 0
      count += 1
    }
    this.#bytes -= bytes
    return this.#waiting.splice(0, count).map(({ span }) => span)
  }
}
