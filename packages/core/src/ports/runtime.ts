import type { TaskFiles } from '@impresario/protocol'
import type { Job } from '../job/job.ts'

/** Time for the engine. Real in production, virtual in the simulator. */
export interface Clock {
  /** Milliseconds since 1970. Never goes back within one process; it follows the wall clock as far as that allows. */
  now(): number
  /** The same, but nothing that happens to the wall clock changes its pace: for spans. Without it: `now`. */
  steady?(): number
  /** The time of day that people go by. May jump when the machine's clock is set. Without it: `now`. */
  wall?(): number
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

export interface Random {
  /** From 0 up to, but not including, 1. */
  next(): number
  /**
   * A new unique id; later ids sort after earlier ones. `near`: the id of something that will be written together with what
   * gets the new one; a storage that spreads its data keeps both in one place (see `shardSuffix`).
   */
  id(near?: string): string
}

export type LogFields = Readonly<Record<string, unknown>>
export interface Log {
  /** Whether `debug` lines are written, so that callers can skip building them. Without it they may not be. */
  readonly isDebug?: boolean
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

/** The files of one job, for one run of a handler. */
export interface TurnFiles {
  readonly files: TaskFiles
  /** Deletes the local copies. Never rejects. */
  release(): Promise<void>
}

/** Where handlers find the files of their jobs. */
export interface FilesOfJobs {
  open(job: { readonly id: string; readonly clientId: string }): TurnFiles
}

/** Where handlers write what people shall know of their jobs. */
export interface LogsOfJobs {
  open(job: Job): Log
}

/** A part of the engine that runs on its own. */
export interface Service {
  readonly name: string
  /** Safe to call twice. Resolves once the service is doing its work. */
  start(): Promise<void>
  /** Safe to call twice, and before `start`. Resolves once nothing of it is still running. */
  stop(): Promise<void>
  /** One round of work, without timers. The loop, the tests and the simulator all call this. */
  tick(): Promise<{ readonly worked: number }>
}
