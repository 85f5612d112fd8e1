import type { Job, RunnableBlueprint } from '@impresario/core'
import type { World } from '../world.ts'

/**
 * What the user code of a world may use: its time, and a memory that survives crashes, for handlers that fail at first.
 */
export interface Stage {
  readonly sleep: (ms: number) => Promise<void>
  /** How often this was called, including this call. */
  readonly times: (what: string) => number
  /** Runs user code in this process. */
  readonly within: <T>(host: Host, code: () => T) => T
  /** Crashes the process that runs the calling code. Works up to the first await of that code. */
  readonly strike: () => void
}

/** A process that user code can crash. */
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

/** A blueprint of the repertoire, with the known properties of the jobs that run it. */
export interface Piece {
  readonly blueprint: RunnableBlueprint
  /** Without intervention and faults, its jobs end as finished. */
  readonly finishes: boolean
  /** What is wrong with a job that has ended, if anything. Valid under all faults. */
  readonly flaw?: (job: Job) => string | undefined
}

/** How a simulated worker handles a task; sent in its parameters. */
export interface Part {
  readonly [key: string]: number | boolean | string | undefined
  /** How long it takes. */
  readonly ms?: number
  /** Tries that fail before one succeeds. */
  readonly failTimes?: number
  readonly permanent?: boolean
  /** Deliveries that kill the worker that takes them. */
  readonly kills?: number
  readonly value?: number
  /** Names of events that the worker sends before its result, separated by spaces. */
  readonly says?: string
}
