import type { Job, RunnableBlueprint } from '@impresario/core'
import type { World } from '../world.ts'

/** What the user code of a world may use: its time, and a memory that no crash wipes, for handlers that fail at first. */
export interface Stage {
  readonly sleep: (ms: number) => Promise<void>
  /** How often this was asked for, this time included. */
  readonly times: (what: string) => number
  /** Runs user code in this process. */
  readonly within: <T>(host: Host, code: () => T) => T
  /** Ends the process that runs the code which calls it, up to its first wait. */
  readonly strike: () => void
}

/** A process that user code can end. */
interface Host {
  readonly die: () => void
}

export function createStage(world: World): Stage {
  const counts = new Map<string, number>()
  let host: Host | undefined
  return {
    within: (inside, code) => {
      host = inside
      try {
        return code()
      } finally {
        host = undefined
      }
    },
    strike: () => host?.die(),
    sleep: (ms) => world.sleep(ms),
    times: (what) => {
      const count = (counts.get(what) ?? 0) + 1
      counts.set(what, count)
      return count
    },
  }
}

/** A blueprint of the repertoire, with what is known of the jobs that run it. */
export interface Piece {
  readonly blueprint: RunnableBlueprint
  /** Left alone and without faults, its jobs end as finished. */
  readonly finishes: boolean
  /** What is wrong with a job that has ended, if anything. Holds under all faults. */
  readonly flaw?: (job: Job) => string | undefined
}

/** What a simulated worker does with a task; travels in its parameters. */
export interface Part {
  readonly [key: string]: number | boolean | string | undefined
  /** How long it takes. */
  readonly ms?: number
  /** Tries that fail before one succeeds. */
  readonly failTimes?: number
  readonly permanent?: boolean
  /** Deliveries that kill the worker which takes them. */
  readonly kills?: number
  readonly value?: number
  /** Names of events that the worker sends before its result, with spaces between them. */
  readonly says?: string
}
