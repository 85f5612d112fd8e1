import { WOKEN } from '@impresario/core'
import type { Clock } from '@impresario/core'
import type { PollSignal } from './desk-messages.ts'

/** A poll's place at the desk, taken before it looks for tasks, so that no wake-up falls in between. */
export interface Ticket {
  /** Resolves when the worker is woken, the time is up or the signal aborts. */
  wait(ms: number, signal: PollSignal): Promise<void>
  leave(): void
}

/** Waits of at least so long may end a little later, together with others. */
const LONG_MS = 1_000
/** Those that end in the same such span end at its end. */
const TOGETHER_MS = 100

/** Polls that wait for a task, by worker. Waiting costs one small object and one promise each; the timers are shared. */
export class Parking {
  readonly #naps: SharedNaps
  readonly #places = new Map<string, Set<ParkedPoll>>()

  constructor(clock: Clock) {
    this.#naps = new SharedNaps(clock)
  }

  get size(): number {
    let size = 0
    for (const places of this.#places.values()) size += places.size
    return size
  }

  has(workerId: string): boolean {
    return this.#places.has(workerId)
  }

  enter(workerId: string): Ticket {
    const place = new ParkedPoll(workerId, this.#naps, this.#places)
    const places = this.#places.get(workerId)
    if (places === undefined) this.#places.set(workerId, new Set([place]))
    else places.add(place)
    return place
  }

  /** Wakes the worker's polls. False when none is parked here. */
  wake(workerId: string): boolean {
    const places = this.#places.get(workerId)
    if (places === undefined) return false
    for (const place of places) place.wake()
    return true
  }

  wakeAll(): void {
    for (const workerId of this.#places.keys()) this.wake(workerId)
  }
}

class ParkedPoll implements Ticket {
  readonly #workerId: string
  readonly #naps: SharedNaps
  readonly #all: Map<string, Set<ParkedPoll>>
  #isWoken = false
  /** While it waits. */
  #end: (() => void) | undefined

  constructor(workerId: string, naps: SharedNaps, all: Map<string, Set<ParkedPoll>>) {
    this.#workerId = workerId
    this.#naps = naps
    this.#all = all
  }

  async wait(ms: number, signal: PollSignal): Promise<void> {
    if (!this.#isWoken && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#end = resolve
        this.#naps.begin(ms, resolve)
        signal.addEventListener('abort', resolve)
      })
      const end = this.#end
      this.#end = undefined
      if (end !== undefined) {
        this.#naps.end(end)
        signal.removeEventListener('abort', end)
      }
    }
    this.leave()
  }

  wake(): void {
    this.#isWoken = true
    this.#end?.()
  }

  leave(): void {
    const places = this.#all.get(this.#workerId)
    if (places?.delete(this) === true && places.size === 0) this.#all.delete(this.#workerId)
  }
}

/** A sleep of the clock, and those that it ends for. */
interface Nap {
  readonly at: number
  readonly waiting: Set<() => void>
  readonly over: AbortController
}

/** Thousands of polls that wait for half a minute each end in a few hundred moments. A moment for which nobody waits any more is given up. */
class SharedNaps {
  readonly #clock: Clock
  readonly #byTime = new Map<number, Nap>()
  readonly #byEnd = new Map<() => void, Nap>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Calls `done` after so long, unless it is ended before. */
  begin(ms: number, done: () => void): void {
    const now = this.#clock.now()
    const at = ms < LONG_MS ? now + ms : Math.ceil((now + ms) / TOGETHER_MS) * TOGETHER_MS
    let nap = this.#byTime.get(at)
    if (nap === undefined) {
      nap = { at, waiting: new Set(), over: new AbortController() }
      this.#byTime.set(at, nap)
      void this.#sleep(nap, at - now)
    }
    nap.waiting.add(done)
    this.#byEnd.set(done, nap)
  }

  end(done: () => void): void {
    const nap = this.#byEnd.get(done)
    if (nap === undefined) return
    this.#byEnd.delete(done)
    nap.waiting.delete(done)
    if (nap.waiting.size > 0) return
    this.#forget(nap)
    nap.over.abort(WOKEN)
  }

  async #sleep(nap: Nap, ms: number): Promise<void> {
    await this.#clock.sleep(ms, nap.over.signal)
    // Whoever begins to wait now must not find it.
    this.#forget(nap)
    for (const done of nap.waiting) done()
  }

  #forget(nap: Nap): void {
    if (this.#byTime.get(nap.at) === nap) this.#byTime.delete(nap.at)
  }
}
