import { WOKEN } from '@impresario/core'
import type { Clock } from '@impresario/core'

/** A poll's place at the desk, taken before it looks for tasks, so that no wake-up falls in between. */
export interface Ticket {
  /** Resolves when the worker is woken, the time is up or the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>
  leave(): void
}

interface ParkedPoll {
  woken: boolean
  nap: AbortController | undefined
}

/** Polls that wait for a task, by worker. Waiting costs one timer and one map entry each. */
export class Parking {
  readonly #clock: Clock
  readonly #places = new Map<string, Set<ParkedPoll>>()

  constructor(clock: Clock) {
    this.#clock = clock
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
    const place: ParkedPoll = { woken: false, nap: undefined }
    const places = this.#places.get(workerId) ?? new Set()
    places.add(place)
    this.#places.set(workerId, places)
    const leave = (): void => {
      places.delete(place)
      if (places.size === 0 && this.#places.get(workerId) === places) this.#places.delete(workerId)
    }
    const wait = async (ms: number, signal: AbortSignal): Promise<void> => {
      if (!place.woken && !signal.aborted) {
        const nap = new AbortController()
        const stop = (): void => nap.abort(WOKEN)
        signal.addEventListener('abort', stop, { once: true })
        place.nap = nap
        await this.#clock.sleep(ms, nap.signal)
        signal.removeEventListener('abort', stop)
      }
      leave()
    }
    return { wait, leave }
  }

  /** Wakes the worker's polls. False when none is parked here. */
  wake(workerId: string): boolean {
    const places = this.#places.get(workerId)
    if (places === undefined) return false
    for (const place of places) {
      place.woken = true
      place.nap?.abort(WOKEN)
    }
    return true
  }

  wakeAll(): void {
    for (const workerId of this.#places.keys()) this.wake(workerId)
  }
}
