/** What is known of a handler that is about to run. */
export interface HandlerRun {
  readonly jobId: string
  readonly visit: number
  readonly blueprint: string
  readonly state: string
  /** An earlier run of it ended with its process. It may hold this one up for ever. */
  readonly isSuspect: boolean
}

/**
 * Watches over user code. What escapes from a handler (a rejection without a handler, an error in a timer that it left
 * behind) reaches only the process, which the engine does not name.
 */
export interface TurnGuard {
  /** Runs `code` and all that follows from it. What escapes is told to `onStray`, also after the run has ended. */
  run<T>(run: HandlerRun, code: () => T, onStray: (error: unknown) => void): T
}
