import type { Facets, Kind } from '@impresario/core'
import { AlarmHeap } from './alarm-heap.ts'
import type { Alarm } from './alarm-heap.ts'

/** A record that expires, with what it is counted under. */
export interface Mortal {
  readonly kind: Kind
  readonly id: string
  readonly facets: Facets | undefined
}

/**
 * When records expire. Knows all that do so up to its horizon, and none beyond: what expires later is found in the
 * journal when its time comes near, so that a million finished jobs that are kept for a month take no memory.
 */
export class RecordExpiry {
  readonly #heap = new AlarmHeap<Mortal>()
  readonly #alarms = new Map<Kind, Map<string, Alarm<Mortal>>>()
  #horizon: number

  constructor(horizon: number) {
    this.#horizon = horizon
  }

  get horizon(): number {
    return this.#horizon
  }

  get size(): number {
    return this.#heap.size
  }

  /** From now on whatever expires up to then is known; the caller brings it at once. */
  widen(horizon: number): void {
    this.#horizon = horizon
  }

  /** Replaces what was known of this record; `Infinity` is never. */
  set(mortal: Mortal, at: number): void {
    let alarms = this.#alarms.get(mortal.kind)
    const old = alarms?.get(mortal.id)
    if (old !== undefined) {
      alarms?.delete(mortal.id)
      this.#heap.cancel(old)
    }
    if (at === Infinity || at > this.#horizon) return
    if (alarms === undefined) {
      alarms = new Map()
      this.#alarms.set(mortal.kind, alarms)
    }
    alarms.set(mortal.id, this.#heap.push(at, mortal))
  }

  /** The next record that has expired by then; each is given once. */
  next(now: number): Mortal | undefined {
    const alarm = this.#heap.first()
    const mortal = alarm?.entry
    if (alarm === undefined || mortal === undefined || alarm.at > now) return undefined
    this.#heap.dropFirst()
    this.#alarms.get(mortal.kind)?.delete(mortal.id)
    return mortal
  }
}
