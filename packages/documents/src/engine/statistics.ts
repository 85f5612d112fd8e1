import type { TaskStatus, TaskType } from './task.ts'

/** Upper bounds of the groups in which durations are counted, in seconds. */
export const DURATION_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const

interface Durations {
  readonly count: number
  readonly sum: number
  /** How many took no longer than the bound of the same place. */
  readonly buckets: readonly number[]
}

export interface TaskFigures {
  readonly processed: Readonly<Record<string, number>>
  readonly durations: Readonly<Record<string, Durations>>
}

type EndStatus = Extract<TaskStatus, 'completed' | 'failed' | 'retry'>

const RATE_MS = 60_000

/** Counts what tasks have done. */
export class Statistics {
  readonly #processed = new Map<string, number>()
  readonly #durations = new Map<TaskType, { count: number; sum: number; buckets: number[] }>()
  #recent: number[] = []
  #busy = 0
  #lastActivity: number | undefined

  get busy(): number {
    return this.#busy
  }

  get lastActivity(): number | undefined {
    return this.#lastActivity
  }

  /** Of the last minute. */
  get tasksPerSecond(): number {
    this.#forgetOld()
    return this.#recent.length / (RATE_MS / 1_000)
  }

  /** Gives what to call at the end. */
  begin(type: TaskType): (status: EndStatus) => void {
    this.#busy += 1
    const began = performance.now()
    return (status) => {
      this.#busy -= 1
      this.#lastActivity = Date.now()
      const key = `${type} ${status}`
      this.#processed.set(key, (this.#processed.get(key) ?? 0) + 1)
      this.#measured(type, (performance.now() - began) / 1_000)
      this.#recent.push(performance.now())
      if (this.#recent.length > 10_000) this.#forgetOld()
    }
  }

  figures(): TaskFigures {
    return { processed: Object.fromEntries(this.#processed), durations: Object.fromEntries(this.#durations) }
  }

  #measured(type: TaskType, seconds: number): void {
    let durations = this.#durations.get(type)
    if (durations === undefined) {
      durations = { count: 0, sum: 0, buckets: DURATION_BOUNDS.map(() => 0) }
      this.#durations.set(type, durations)
    }
    durations.count += 1
    durations.sum += seconds
    for (const [index, bound] of DURATION_BOUNDS.entries()) {
      if (seconds <= bound) durations.buckets[index] = (durations.buckets[index] ?? 0) + 1
    }
  }

  #forgetOld(): void {
    const from = performance.now() - RATE_MS
    this.#recent = this.#recent.filter((at) => at >= from)
  }
}
