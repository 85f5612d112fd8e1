import type { Clock } from '@impresario/core'
import { WOKEN } from '@impresario/core'

export const DROP_REASONS = ['queue_full', 'export_failed', 'stopped'] as const
type DropReason = (typeof DROP_REASONS)[number]

export interface ExportQueueOptions {
  readonly clock: Clock
  readonly itemsMax: number
  readonly bytesMax: number
  /** Longest time that an item waits when the collector answers. */
  readonly delayMs: number
  /** Sends a batch: JSON values with commas between them. Never takes for ever; a rejection means that the batch is lost. */
  readonly send: (batch: Buffer) => Promise<void>
  readonly onSent: (items: number) => void
  readonly onDropped: (items: number, reason: DropReason) => void
}

/** Items in one request: the batch size that OpenTelemetry suggests. */
const BATCH_MAX = 512
/** Room for a batch of spans as they usually are: 650 bytes each. */
const BATCH_BYTES = 393_216
/** UTF-8 takes at most so many bytes for one unit of a text. */
const UNIT_BYTES_MAX = 3
const COMMA = 0x2c

interface Batch {
  readonly bytes: Buffer
  used: number
  items: number
}

/**
 * Spans or lines of the log, as JSON, on their way to the collector. `add` writes into a buffer: nothing waits for the
 * collector, and nothing is left to the garbage collector. When the collector is slow or gone, the queue fills up to its
 * bounds, and what comes then is dropped and counted.
 *
 * `new` → `start` → sending, one batch at a time → `stop`, which sends what is left within its time.
 */
export class ExportQueue {
  readonly #options: ExportQueueOptions
  /** The last one takes what is added. */
  #batches: Batch[] = []
  #items = 0
  #bytes = 0
  #isStopped = false
  #nap: AbortController | undefined
  #running: Promise<void> | undefined

  constructor(options: ExportQueueOptions) {
    this.#options = options
  }

  add(json: string): void {
    const { itemsMax, bytesMax, onDropped } = this.#options
    if (this.#isStopped || this.#items >= itemsMax || this.#bytes + json.length > bytesMax) {
      onDropped(1, this.#isStopped ? 'stopped' : 'queue_full')
      return
    }
    const batch = this.#batchFor(json.length * UNIT_BYTES_MAX + 1)
    const before = batch.used
    if (batch.items > 0) {
      batch.bytes[batch.used] = COMMA
      batch.used += 1
    }
    batch.used += batch.bytes.write(json, batch.used)
    batch.items += 1
    this.#items += 1
    this.#bytes += batch.used - before
    if (batch.items === BATCH_MAX) this.#nap?.abort(WOKEN)
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Sends what is left. The caller bounds the time that it waits. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#nap?.abort(WOKEN)
    await this.#running
    this.#options.onDropped(this.#items, 'stopped')
    this.#batches = []
    this.#items = 0
    this.#bytes = 0
  }

  #batchFor(bytes: number): Batch {
    const last = this.#batches.at(-1)
    if (last !== undefined && last.items < BATCH_MAX && last.used + bytes <= last.bytes.length) return last
    const batch = { bytes: Buffer.allocUnsafe(Math.max(BATCH_BYTES, bytes)), used: 0, items: 0 }
    this.#batches.push(batch)
    return batch
  }

  async #run(): Promise<void> {
    const { clock, delayMs } = this.#options
    while (!this.#isStopped) {
      this.#nap = new AbortController()
      const isFull = this.#batches.length > 1 || this.#items >= BATCH_MAX
      if (!isFull) await clock.sleep(delayMs, this.#nap.signal)
      await this.#sendBatch()
    }
    while (this.#batches.length > 0 && (await this.#sendBatch())) continue
  }

  async #sendBatch(): Promise<boolean> {
    const { send, onSent, onDropped } = this.#options
    const batch = this.#batches.shift()
    if (batch === undefined) return true
    const { bytes, used, items } = batch
    this.#items -= items
    this.#bytes -= used
    try {
      await send(bytes.subarray(0, used))
      onSent(items)
      return true
    } catch {
      onDropped(items, 'export_failed')
      return false
    }
  }
}
