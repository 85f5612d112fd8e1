/** Why the tasks of a job are where they are. */
export interface Explanation {
  readonly job_id: string
  readonly status: string
  readonly current_state: string
  readonly tasks: readonly ExplainedTask[]
}

export interface ExplainedTask {
  readonly task_id: string
  readonly type: string
  readonly where: 'waiting' | 'assigned' | 'running' | 'delayed' | 'ended'
  readonly worker: string | null
  readonly explanation: Choice | null
}

/** How a worker was chosen, or why there is none. */
export interface Choice {
  readonly strategy: string
  /** What the strategy looks at, the weightiest first. */
  readonly criteria: readonly string[]
  readonly chosen: string | null
  /** In a sentence. */
  readonly summary: string
  readonly live: number
  readonly skilled: number
  readonly candidates: number
  /** Workers that are live: what keeps each out, or how it scores. */
  readonly workers: readonly WorkerVerdict[]
  /** Workers that are counted above but not listed. */
  readonly omitted: number
}

export interface WorkerVerdict {
  readonly worker_id: string
  readonly verdict: 'candidate' | 'filtered'
  readonly place?: number
  readonly score?: {
    readonly warm: boolean
    readonly cost: number | null
    readonly reputation: number
    readonly load: number
  }
  readonly reasons?: readonly string[]
}

/** The boundary at which a server's body is believed to be an explanation. */
export function explanationOf(body: unknown): Explanation {
  return body as Explanation
}
