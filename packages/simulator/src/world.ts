import { Chance } from './chance.ts'
import { DueHeap } from './due-heap.ts'
import type { Due } from './due-heap.ts'

/** Simulated time starts here: late enough that no duration leads to a time before zero. */
const BEGIN = 1_000_000_000
/** Steps per tick of the event loop. Between two of them Node empties the microtask queue. */
const STEPS_PER_TICK = 64

/**
 * A seeded world: one clock, named random streams, one heap of scheduled events.
 *
 * Nothing here takes real time, and only a step advances the clock. All work that a step triggers is complete before
 * the next one begins, so the same seed gives the same world.
 */
export class World {
  readonly seed: number
  now = BEGIN
  steps = 0
  readonly #heap = new DueHeap()
  readonly #streams = new Map<string, Chance>()

  constructor(seed: number) {
    this.seed = seed
  }

  /** Milliseconds since the world began. */
  get age(): number {
    return this.now - BEGIN
  }

  chance(stream: string): Chance {
    let chance = this.#streams.get(stream)
    if (chance === undefined) {
      chance = new Chance(this.seed, stream)
      this.#streams.set(stream, chance)
    }
    return chance
  }

  after(ms: number, run: () => void): Due {
    return this.#heap.push(this.now + Math.max(0, ms), run)
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve))
  }

  /** Runs the next event. False when none is left. */
  step(): boolean {
    const due = this.#heap.pop()
    if (due === undefined) return false
    this.now = due.at
    this.steps += 1
    due.run()
    return true
  }

  /** Steps until `isDone` returns true or no event is left. */
  run(isDone: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let isOver = false
      const once = (): void => {
        if (isOver) return
        try {
          if (!isDone() && this.step()) return
          isOver = true
          resolve()
        } catch (error) {
          isOver = true
          reject(asError(error))
        }
      }
      const tick = (): void => {
        if (isOver) return
        for (let index = 0; index < STEPS_PER_TICK; index += 1) setImmediate(once)
        setImmediate(tick)
      }
      tick()
    })
  }
}

/** Any value can be thrown; a rejection needs an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
