import type { Clock, TrailEntry } from '@impresario/core'
import type { Signals } from './signals.ts'

/** How many tasks of a type came and went in the last minute, at all instances. */
export interface TaskRate {
  readonly type: string
  /** Tries that were queued, those of retries too. */
  readonly placed: number
  /** Tries that went into the hands of a worker. */
  readonly taken: number
}

export interface TaskFlowOptions {
  readonly clock: Clock
  readonly signals: Signals
  /** Names this instance for the others; without it they hear nothing. */
  readonly name: string | undefined
}

const SLOT_MS = 5_000
/** A minute. */
const SLOTS = 12
/** Blueprints may name any number of types. Beyond this, new ones are not counted. */
const TYPES_MAX = 1_000
/** What another instance said counts for so long. */
const HEARD_MS = 15_000
/** So many types are told to the other instances, those with the most first. */
const TOLD_MAX = 50
const TOLD_EVERY_MS = 4_000

interface Tally {
  readonly placed: number[]
  readonly taken: number[]
  /** The number of the newest slot. */
  slot: number
}

interface Heard extends TaskRate {
  readonly at: number
}

/**
 * Counts what comes into the queues of tasks and what leaves them, by type, over the last minute. Counts are kept in memory
 * and told to the other instances with each `hello`, so that every instance knows the sum, a few seconds late.
 */
export class TaskFlow {
  readonly #options: TaskFlowOptions
  readonly #tallies = new Map<string, Tally>()
  /** By instance and type. */
  readonly #heard = new Map<string, Heard>()
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(options: TaskFlowOptions) {
    this.#options = options
    const { signals, clock } = options
    signals.on('hello', () => this.#tell())
    signals.on('flow', (name = '', type = '', placed = '', taken = '') => {
      const heard = { type, placed: countIn(placed), taken: countIn(taken), at: clock.now() }
      this.#heard.set(JSON.stringify([name, type]), heard)
      this.#forget()
    })
  }

  /** Sees what commits say of tasks. */
  onEntries(entries: readonly TrailEntry[]): void {
    // The note of this entry is the type of the task.
    for (const { event, note } of entries) if (event === 'task_dispatched' && note) this.#count(note, 'placed')
  }

  readonly onTaken = (type: string): void => this.#count(type, 'taken')

  /** Types with something in the last minute, by name. */
  rates(): readonly TaskRate[] {
    this.#forget()
    const rates = new Map<string, TaskRate>()
    for (const { type, placed, taken } of [...this.#own(), ...this.#heard.values()]) {
      const known = rates.get(type)
      rates.set(type, { type, placed: placed + (known?.placed ?? 0), taken: taken + (known?.taken ?? 0) })
    }
    return [...rates.values()].toSorted((a, b) => (a.type < b.type ? -1 : 1))
  }

  #count(type: string, what: 'placed' | 'taken'): void {
    let tally = this.#tallies.get(type)
    if (tally === undefined) {
      if (this.#tallies.size >= TYPES_MAX) this.#own()
      if (this.#tallies.size >= TYPES_MAX) return
      const empty = (): number[] => Array.from({ length: SLOTS }, () => 0)
      tally = { placed: empty(), taken: empty(), slot: this.#slot() }
      this.#tallies.set(type, tally)
    }
    this.#advance(tally)
    const index = tally.slot % SLOTS
    tally[what][index] = (tally[what][index] ?? 0) + 1
  }

  /** What this instance has counted. Types without anything are dropped. */
  #own(): readonly TaskRate[] {
    const rates: TaskRate[] = []
    for (const [type, tally] of this.#tallies) {
      this.#advance(tally)
      const [placed, taken] = [sumOf(tally.placed), sumOf(tally.taken)]
      if (placed + taken === 0) this.#tallies.delete(type)
      else rates.push({ type, placed, taken })
    }
    return rates
  }

  #slot(): number {
    return Math.floor(this.#options.clock.now() / SLOT_MS)
  }

  /** Empties the slots that have begun since. */
  #advance(tally: Tally): void {
    const slot = this.#slot()
    // A clock that was set back goes on in the newest slot.
    const passed = Math.min(SLOTS, Math.max(0, slot - tally.slot))
    for (let step = 1; step <= passed; step += 1) {
      const index = (slot - passed + step) % SLOTS
      tally.placed[index] = 0
      tally.taken[index] = 0
    }
    if (passed > 0) tally.slot = slot
  }

  #tell(): void {
    const { signals, clock, name } = this.#options
    if (name === undefined || !signals.hasPeers) return
    // The hellos of many instances ask for no more than one.
    const now = clock.now()
    if (now - this.#toldAt < TOLD_EVERY_MS) return
    this.#toldAt = now
    const busiest = this.#own().toSorted((a, b) => b.placed + b.taken - a.placed - a.taken)
    for (const { type, placed, taken } of busiest.slice(0, TOLD_MAX)) {
      signals.send(['flow', name, type, String(placed), String(taken)])
    }
  }

  #forget(): void {
    const oldest = this.#options.clock.now() - HEARD_MS
    for (const [key, { at }] of this.#heard) if (at < oldest) this.#heard.delete(key)
  }
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0)
}

function countIn(word: string): number {
  const count = Number(word)
  return Number.isSafeInteger(count) && count >= 0 ? count : 0
}
