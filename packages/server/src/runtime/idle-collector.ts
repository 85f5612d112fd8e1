import { performance } from 'node:perf_hooks'
import type { EventLoopUtilization } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { boundHeapGrowth } from './heap-growth.ts'

/** How often it looks. */
const EVERY_MS = 1_000
/** Of the time, on the event loop: below this it is idle. */
const BUSY_MAX = 0.2
/** So many looks in a row must find it idle: a pause between two requests is none. */
const LOOKS_MIN = 3
const MB = 1_048_576
/** What the heap must have grown since the last collection for one to be worth its pause. */
const GROWTH_MIN = 32 * MB
/** So soon after the last one it takes more: idle workers that poll leave garbage too, and no pause every few seconds is worth that. */
const SOON_LOOKS = 60
const GROWTH_SOON_MIN = 128 * MB
/** What the heap may take beside what is in use. */
const SLACK_MAX = 24 * MB
/** With more than this in use, garbage included, a collection may take too long, also for an idle server: up to a millisecond for each megabyte. */
const USED_MAX = 256 * MB
/**
 * V8 gives its memory back in several steps, one for each collection: first pages that are empty, then those that it empties by moving
 * what is left on them, and the room for new objects once little has been allocated for five seconds.
 */
const STEPS_MAX = 6

interface HeapSizes {
  /** What the heap takes of the memory of the machine. */
  readonly totalBytes: number
  readonly usedBytes: number
}

export interface IdleCollectorParts {
  /** The share of the time since the last call that the event loop was busy. */
  readonly busyShare: () => number
  readonly heap: () => HeapSizes
  /** Collects everything, at once. */
  readonly collect: () => void
  /** Bounds what the heap grows by under load. */
  readonly bound?: () => void
}

/**
 * Gives memory back when a load is over. V8 collects when it needs room, so that an idle process keeps what the last load
 * took: 340 MB, of which 50 were in use. Under load it does nothing, but the heap grows less than V8 would let it.
 *
 * `quiet` → `loaded` when the heap has grown → after some idle looks `collecting`, one step with each look → `quiet` when the
 * heap takes little more than what is in use. A look that finds it busy leads back to `loaded`.
 */
export class IdleCollector {
  readonly #parts: IdleCollectorParts
  #timer: NodeJS.Timeout | undefined
  /** What the heap took after the last collection. */
  #floorBytes = 0
  #idleLooks = 0
  #steps = 0
  #looksSince = SOON_LOOKS

  constructor(parts: IdleCollectorParts = OF_THIS_PROCESS) {
    this.#parts = parts
  }

  start(): void {
    this.#parts.bound?.()
    this.#timer ??= setInterval(() => this.look(), EVERY_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** One look, and at most one step. */
  look(): void {
    const { busyShare, heap, collect } = this.#parts
    this.#looksSince += 1
    this.#idleLooks = busyShare() < BUSY_MAX ? this.#idleLooks + 1 : 0
    if (this.#idleLooks < LOOKS_MIN) {
      this.#steps = 0
      return
    }
    const { totalBytes, usedBytes } = heap()
    const growthMin = this.#looksSince < SOON_LOOKS ? GROWTH_SOON_MIN : GROWTH_MIN
    const isWorthwhile = this.#steps > 0 || totalBytes - this.#floorBytes > growthMin
    if (!isWorthwhile || usedBytes > USED_MAX) return
    collect()
    this.#looksSince = 0
    const left = heap()
    this.#floorBytes = left.totalBytes
    const isDone = left.totalBytes - left.usedBytes < SLACK_MAX || this.#steps + 1 === STEPS_MAX
    this.#steps = isDone ? 0 : this.#steps + 1
  }
}

let elu: EventLoopUtilization | undefined
let exposed: (() => void) | undefined

export const OF_THIS_PROCESS: IdleCollectorParts = {
  busyShare: () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = elu === undefined ? now : performance.eventLoopUtilization(now, elu)
    elu = now
    return utilization
  },
  heap: () => {
    const { total_heap_size: totalBytes, used_heap_size: usedBytes } = getHeapStatistics()
    return { totalBytes, usedBytes }
  },
  collect: () => {
    exposed ??= exposedCollector()
    exposed()
  },
  bound: () => boundHeapGrowth(),
}

/** A function of V8 that only contexts made after the flag have. Without arguments it collects everything. */
function exposedCollector(): () => void {
  setFlagsFromString('--expose-gc')
  const gc: unknown = runInNewContext('gc')
  if (!isCollector(gc)) throw new Error('This version of Node has no way to collect garbage on request.')
  return gc
}

/** Type boundary of what V8 gives. */
function isCollector(value: unknown): value is () => void {
  return typeof value === 'function'
}
