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
 * Knows when records expire: all that do so up to its horizon, and none beyond. Records that expire later are read from
 * the journal when their time is near, so that a million finished jobs that are kept for a month take no memory.
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

  /** From now on all records that expire up to this time are known. The caller adds them immediately. */
  widen(horizon: number): void {
    this.#horizon = horizon
  }

  /** Replaces the known expiry of this record; `Infinity` means never. */
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

  /** The next record that has expired by then. Each is returned once. */
  next(now: number): Mortal | undefined {
    const alarm = this.#heap.first()
    const mortal = alarm?.entry
    if (alarm === undefined || mortal === undefined || alarm.at > now) return undefined
    this.#heap.dropFirst()
    this.#alarms.get(mortal.kind)?.delete(mortal.id)
    return mortal
  }
}
