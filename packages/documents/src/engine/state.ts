import type { OcrStatus } from '../parsing/ocr.ts'
import type { QueueStats } from './task.ts'

export type EngineStatus = 'starting' | 'running' | 'stopping' | 'stopped' | 'error'

/** The state of the engine, with the names of the specification. */
export interface EngineState {
  readonly status: EngineStatus
  readonly start_time: string | null
  readonly tasks_total: number
  readonly tasks_done: number
  readonly tasks_failed: number
  readonly workers_busy: number
  readonly queue_size: number
  readonly last_activity: string | null
}

export interface ComponentHealth {
  readonly name: string
  readonly isHealthy: boolean
  readonly problem?: string
}

interface Progress {
  /** Files that are known. */
  readonly total: number
  /** Of these, those with an end: completed or failed. */
  readonly done: number
}

export interface EngineStats {
  readonly state: EngineState
  readonly queue: QueueStats
  readonly progress: Progress
  readonly files: Readonly<Record<string, number>>
  readonly documents: number
  readonly tasks_per_second: number
  readonly components: readonly ComponentHealth[]
  /** Whether pictures and scanned pages are read, or why not. */
  readonly ocr: OcrStatus
}
