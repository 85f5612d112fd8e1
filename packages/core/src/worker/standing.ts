/** What became of a worker's tasks in one stretch of time. */
export interface Tally {
  /** The beginning of the stretch. */
  readonly at: number
  readonly succeeded: number
  readonly failed: number
  readonly timedOut: number
}

/** What is remembered of a worker's work, newest stretch last. */
export interface Standing {
  readonly score: number
  readonly tallies: readonly Tally[]
}
