import { WOKEN } from '@impresario/core'
import type { Clock, Log, Service } from '@impresario/core'

export interface PumpOptions {
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  /** One round. `nextInMs`: when there may be more to do without being woken; zero: at once. */
  readonly round: () => Promise<{ readonly worked: number; readonly nextInMs: number | undefined }>
  /** Longest sleep between two rounds: hints may be lost, so nobody sleeps for ever. */
  readonly idleMs: number
}

/** A pause after a round that failed, so that a broken storage is not asked in a tight loop. */
const FAILURE_PAUSE_MS = 500

/**
 * Runs rounds for as long as it is started.
 *
 * States: stopped → running (start) → stopping (stop; the round under way ends) → stopped. `wake`
 * ends a sleep early; a wake during a round makes the next one follow at once, so no hint is lost.
 */
export class Pump implements Service {
  readonly name: string
  readonly #options: PumpOptions
  #running: Promise<void> | undefined
  #stopping = false
  #woken = false
  #nap: AbortController | undefined

  constructor(options: PumpOptions) {
    this.name = options.name
    this.#options = options
  }

  start(): Promise<void> {
    this.#stopping = false
    this.#running ??= this.#run()
    return Promise.resolve()
  }

  async stop(): Promise<void> {
    this.#stopping = true
    this.wake()
    await this.#running
    this.#running = undefined
  }

  async tick(): Promise<{ readonly worked: number }> {
    const { worked } = await this.#options.round()
    return { worked }
  }

  wake(): void {
    this.#woken = true
    this.#nap?.abort(WOKEN)
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      this.#woken = false
      const sleepMs = await this.#round()
      if (sleepMs > 0) await this.#sleep(sleepMs)
    }
  }

  async #round(): Promise<number> {
    const { round, idleMs, log } = this.#options
    try {
      const { nextInMs } = await round()
      return Math.min(nextInMs ?? idleMs, idleMs)
    } catch (error) {
      log.error(`${this.name}: a round failed`, { error: String(error) })
      return FAILURE_PAUSE_MS
    }
  }

  async #sleep(ms: number): Promise<void> {
    if (this.#woken || this.#stopping) return
    const nap = new AbortController()
    this.#nap = nap
    await this.#options.clock.sleep(ms, nap.signal)
    this.#nap = undefined
  }
}
