import { WOKEN } from '@impresario/core'
import type { Clock, Log } from '@impresario/core'
import type { HistoryStore, Retention } from './history.ts'

export interface TrimmerOptions {
  readonly store: HistoryStore
  readonly clock: Clock
  readonly log: Log
  readonly retention: Retention
}

const EVERY_MS = 60_000
/** On a busy server it runs sooner: 10 MB are not far beyond any bound. */
const EVERY_EVENTS = 25_000
/** The pause between two portions, so that writes can run in between. */
const PAUSE_MS = 20

/**
 * Removes events beyond the bounds, portion by portion, whether new events arrive or not.
 *
 * `new` → `start` → (trims, sleeps for a minute or until many events have arrived) → `stop` → stopped, which is final.
 */
export class Trimmer {
  readonly #options: TrimmerOptions
  readonly #ended = new AbortController()
  #nap = new AbortController()
  #running: Promise<void> | undefined
  #events = 0

  constructor(options: TrimmerOptions) {
    this.#options = options
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** This many more were written. */
  count(events: number): void {
    this.#events += events
    if (this.#events >= EVERY_EVENTS) this.#nap.abort(WOKEN)
  }

  async stop(): Promise<void> {
    this.#ended.abort(WOKEN)
    this.#nap.abort(WOKEN)
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      this.#events = 0
      await this.#trim()
      if (this.#ended.signal.aborted) return
      this.#nap = new AbortController()
      await this.#options.clock.sleep(EVERY_MS, this.#nap.signal)
    }
  }

  async #trim(): Promise<void> {
    const { store, clock, retention, log } = this.#options
    try {
      while ((await store.trim(retention, clock.now())) > 0 && !this.#ended.signal.aborted) {
        await clock.sleep(PAUSE_MS, this.#ended.signal)
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      log.error('old history could not be removed; it is tried again in a minute', { reason })
    }
  }
}
