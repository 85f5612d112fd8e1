import { WOKEN } from '@impresario/core'
import type { Clock, Log, Service } from '@impresario/core'

export interface PumpOptions {
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  /** One round. `nextInMs`: when there may be more to do without being woken; zero: at once. */
  readonly round: () => Promise<{ readonly worked: number; readonly nextInMs: number | undefined }>
  /** Longest sleep between two rounds, because hints may be lost. */
  readonly idleMs: number
}

/** For sleeps that cannot be ended early. */
const NEVER = new AbortController().signal

/** A pause after a round that failed, so that a broken storage is not asked in a tight loop. */
const FAILURE_PAUSE_MS = 500

/** From one start to the stop that ends it. */
interface Run {
  isEnding: boolean
  /** Whether the pause after a failure is under way: hints do not end it. */
  isPausing: boolean
  done: Promise<void>
}

/**
 * Runs rounds for as long as it is started.
 *
 * States: stopped → running (start) → stopping (stop; the round under way ends) → stopped. A start
 * while it is stopping begins a run of its own, which waits for the one before it: there are never
 * two rounds at a time, and the last call counts. `wake` ends a sleep early; a wake during a round
 * makes the next one follow at once, so no hint is lost.
 */
export class Pump implements Service {
  readonly name: string
  readonly #options: PumpOptions
  #run: Run | undefined
  #woken = false
  #nap: AbortController | undefined

  constructor(options: PumpOptions) {
    this.name = options.name
    this.#options = options
  }

  start(): Promise<void> {
    if (this.#run === undefined || this.#run.isEnding) {
      const before = this.#run?.done
      const run: Run = { isEnding: false, isPausing: false, done: Promise.resolve() }
      run.done = this.#loop(run, before)
      this.#run = run
    }
    return Promise.resolve()
  }

  async stop(): Promise<void> {
    const run = this.#run
    if (run === undefined) return
    run.isEnding = true
    this.#nap?.abort(WOKEN)
    await run.done
    if (this.#run === run) this.#run = undefined
  }

  async tick(): Promise<{ readonly worked: number }> {
    const { worked } = await this.#options.round()
    return { worked }
  }

  wake(): void {
    this.#woken = true
    if (this.#run?.isPausing !== true) this.#nap?.abort(WOKEN)
  }

  async #loop(run: Run, before: Promise<void> | undefined): Promise<void> {
    await before
    while (!run.isEnding) {
      this.#woken = false
      const sleepMs = await this.#round(run)
      if (run.isEnding) return
      if (sleepMs > 0 && (!this.#woken || run.isPausing)) await this.#sleep(sleepMs)
      // Woken by work: whatever else waits, requests or a flush that could start, gets its turn first.
      if (this.#woken || sleepMs === 0) await this.#options.clock.sleep(0, NEVER)
    }
  }

  async #round(run: Run): Promise<number> {
    const { round, idleMs, log } = this.#options
    try {
      const { nextInMs } = await round()
      run.isPausing = false
      return Math.min(nextInMs ?? idleMs, idleMs)
    } catch (error) {
      log.error(`${this.name}: a round failed`, { error: String(error) })
      run.isPausing = true
      return FAILURE_PAUSE_MS
    }
  }

  async #sleep(ms: number): Promise<void> {
    const nap = new AbortController()
    this.#nap = nap
    await this.#options.clock.sleep(ms, nap.signal)
    this.#nap = undefined
  }
}

/** The shorter of two waits, of which either may be unknown. */
export function earlier(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b
  return b === undefined ? a : Math.min(a, b)
}
