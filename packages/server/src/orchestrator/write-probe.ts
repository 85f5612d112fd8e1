import type { Item, Log, Storage } from '@impresario/core'
import { isImpresarioError, promised } from '@impresario/protocol'
import { REFUSES_WRITES } from './health.ts'
import { errorFields } from '../runtime/log.ts'
import { within } from '../runtime/within.ts'

const EVERY_MS = 5_000
/** A storage that was not ready may be so again in a moment. */
const AGAIN_MS = 1_000
const PATIENCE_MS = 4_000
/** Longer than any storage lives: it never becomes due, and there is no hint for it. One for all instances. */
const SPAN_MS = 100 * 365 * 86_400_000
const ITEM: Item = { queue: 'signals', id: 'probe', lane: 'probe', priority: 0, delayMs: SPAN_MS, payload: null }

/**
 * Finds out whether a storage elsewhere takes writes: one that is full, read-only or a replica answers every question and
 * refuses every job. Writes one small item repeatedly, in the background; callers get the latest finding.
 *
 * `new` → `start` → probing → `stop`.
 */
export class WriteProbe {
  readonly #storage: Storage
  readonly #log: Log
  #problem: string | undefined
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(storage: Storage, log: Log) {
    this.#storage = storage
    this.#log = log
  }

  /** What is wrong with writes, as the reason of a component; nothing when they are taken. */
  get problem(): string | undefined {
    return this.#problem
  }

  start(): void {
    if (this.#timer === undefined && !this.#isStopped) this.#plan(EVERY_MS)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** One probe. */
  async tick(): Promise<void> {
    const [problem, error] = await this.#look()
    if (problem === this.#problem || this.#isStopped) return
    if (problem === undefined) this.#log.info('the storage takes writes again')
    else this.#log.error(`the storage takes no writes: ${problem}`, error === undefined ? {} : errorFields(error))
    this.#problem = problem
  }

  #plan(afterMs: number): void {
    this.#timer = setTimeout(() => {
      void this.tick().then(() => {
        if (!this.#isStopped) this.#plan(this.#problem === undefined ? EVERY_MS : AGAIN_MS)
      })
    }, afterMs).unref()
  }

  /** Never rejects. */
  async #look(): Promise<readonly [problem: string | undefined, error?: unknown]> {
    try {
      const inTime = await within(
        PATIENCE_MS,
        promised(() => this.#storage.commit({ enqueue: [ITEM] })),
      )
      return inTime ? [undefined] : ['it does not answer']
    } catch (error) {
      return [isImpresarioError(error, 'STORAGE_REFUSED') ? REFUSES_WRITES : 'it does not answer', error]
    }
  }
}
