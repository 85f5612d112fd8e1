import type { JsonObject } from './json.ts'

export const LOG_LINE_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLineLevel = (typeof LOG_LINE_LEVELS)[number]

/** One line of a job's log, as clients see it and as it is stored. */
export interface LogLineBody {
  /** Unix seconds. */
  readonly timestamp: number
  readonly level: LogLineLevel
  readonly message: string
  readonly source: 'handler' | 'worker'
  /** The state whose handler wrote it. */
  readonly state?: string
  readonly task_id?: string
  readonly worker_id?: string
  readonly fields?: JsonObject
}

/** One line that a worker sends with a result. */
export interface WireLogLine {
  /** Unix seconds. */
  readonly timestamp: number
  readonly level: LogLineLevel
  readonly message: string
  readonly fields?: JsonObject
}
