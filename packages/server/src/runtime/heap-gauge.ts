import { constants, PerformanceObserver } from 'node:perf_hooks'
import type { PerformanceEntry } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

/** Of the heap, in use right after it was cleared: beyond the first nothing more comes in, below the second it does again. */
const FULL = 0.85
const ROOMY = 0.75
/** To ask V8 takes some microseconds: not for every request. */
const LOOK_MS = 100

interface HeapFigures {
  readonly usedBytes: number
  readonly limitBytes: number
}

/**
 * Whether the heap is nearly full of what is really in use. What V8 has not cleared yet does not count, so it is looked at when
 * V8 has just cleared. The last line of defence: everything that holds users' data has a bound of its own, but no bound knows
 * what the others hold. Without it V8 ends the process.
 */
export class HeapGauge {
  readonly #figures: () => HeapFigures
  readonly #now: () => number
  #isFull = false
  #lookedAt = 0
  #observer: PerformanceObserver | undefined

  constructor(figures: () => HeapFigures = heapFigures, now: () => number = () => performance.now()) {
    this.#figures = figures
    this.#now = now
  }

  get isFull(): boolean {
    if (this.#isFull && this.#now() - this.#lookedAt >= LOOK_MS) {
      this.#lookedAt = this.#now()
      if (this.#share() < ROOMY) this.#isFull = false
    }
    return this.#isFull
  }

  start(): void {
    if (this.#observer !== undefined) return
    this.#observer = new PerformanceObserver((list) => {
      if (list.getEntries().some(isMajor)) this.cleared()
    })
    this.#observer.observe({ entryTypes: ['gc'] })
  }

  stop(): void {
    this.#observer?.disconnect()
    this.#observer = undefined
    this.#isFull = false
  }

  /** The heap has just been cleared: what it holds now is in use. */
  cleared(): void {
    this.#lookedAt = this.#now()
    this.#isFull = this.#share() > FULL
  }

  #share(): number {
    const { usedBytes, limitBytes } = this.#figures()
    return usedBytes / limitBytes
  }
}

function heapFigures(): HeapFigures {
  const { used_heap_size: usedBytes, heap_size_limit: limitBytes } = getHeapStatistics()
  return { usedBytes, limitBytes }
}

function isMajor(entry: PerformanceEntry): boolean {
  const detail: unknown = 'detail' in entry ? entry.detail : undefined
  const kind = typeof detail === 'object' && detail !== null && 'kind' in detail ? detail.kind : undefined
  return kind === constants.NODE_PERFORMANCE_GC_MAJOR
}
