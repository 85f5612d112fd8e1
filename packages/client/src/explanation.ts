import type { JobStatusName, WireWait } from '@impresario/protocol'

/** Why the tasks of a job are where they are. */
export interface Explanation {
  readonly job_id: string
  readonly status: JobStatusName
  readonly current_state: string
  /** The job that waits for this one. */
  readonly parent_job_id: string | null
  /** The jobs that it waits for. */
  readonly children: readonly ExplainedChild[]
  /** What it stands still for, in a sentence; null for a job that does not. */
  readonly summary: string | null
  /** While it waits for a moment. */
  readonly waits_for: WireWait | null
  readonly tasks: readonly ExplainedTask[]
}

export interface ExplainedChild {
  readonly job_id: string
  readonly blueprint_name: string
  /** Null while it is being created, and beyond the first twenty. */
  readonly status: string | null
}

export interface ExplainedTask {
  readonly task_id: string
  readonly type: string
  readonly where: 'waiting' | 'assigned' | 'running' | 'delayed' | 'ended'
  readonly worker: string | null
  /** Which try it is. */
  readonly attempt: number
  /** When the result must be there, in Unix seconds; null without a result timeout. */
  readonly deadline: number | null
  /** Why the try before failed. */
  readonly last_error: { readonly code: string; readonly message: string } | null
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
