import type { Clock, Random } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import type { Chance } from './chance.ts'
import type { World } from './world.ts'

/** The reply of a dead process: none, ever. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined)
}

/**
 * One process that runs an engine.
 *
 * `alive` → `dead` by a crash or an orderly stop, which is final: a new process starts in its place. While alive it may
 * be paused, like a stopped virtual machine: everything in it then waits, and the world continues.
 */
export class Node {
  readonly name: string
  readonly world: World
  /** Its clock differs from the storage's by this much. */
  readonly skewMs: number
  isAlive = true
  isStarted = false
  pausedUntil = 0
  #engine: Engine | undefined
  readonly #mourners = new Set<() => void>()

  constructor(name: string, world: World, skewMs = 0) {
    this.name = name
    this.world = world
    this.skewMs = skewMs
  }

  get engine(): Engine {
    if (this.#engine === undefined) throw new Error(`${this.name} has no engine yet.`)
    return this.#engine
  }

  set engine(engine: Engine) {
    this.#engine = engine
  }

  die(): void {
    if (!this.isAlive) return
    this.isAlive = false
    for (const mourn of this.#mourners) mourn()
    this.#mourners.clear()
  }

  /** Calls back when the process dies. Returns how to stop listening. */
  onDeath(mourn: () => void): () => void {
    this.#mourners.add(mourn)
    return () => this.#mourners.delete(mourn)
  }

  pause(ms: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.world.now + ms)
  }

  /** Calls `run` once the process is running; never if it is dead by then. */
  whenRunning(run: () => void): void {
    if (!this.isAlive) return
    const leftMs = this.pausedUntil - this.world.now
    if (leftMs > 0) this.world.after(leftMs, () => this.whenRunning(run))
    else run()
  }

  /** Waits in the time of this process. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.world.after(ms, () => this.whenRunning(resolve)))
  }
}

export function clockOf(node: Node): Clock {
  const { world } = node
  return {
    now: () => world.now + node.skewMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) {
          resolve()
          return
        }
        const due = world.after(ms, () => {
          signal.removeEventListener('abort', stop)
          node.whenRunning(resolve)
        })
        const stop = (): void => {
          due.isCancelled = true
          resolve()
        }
        signal.addEventListener('abort', stop, { once: true })
      }),
  }
}

/** Ids are unique over all processes of a world and sort by time. */
export function randomOf(world: World, chance: Chance, counter: { value: number }): Random {
  return {
    next: () => chance.next(),
    id: () => {
      counter.value += 1
      return `${world.now.toString(36).padStart(8, '0')}${counter.value.toString(36).padStart(4, '0')}`
    },
  }
}
