import type { Call, Job, Letter, TimerName } from '@impresario/core'
import { isJsonObject } from '@impresario/protocol'
import type { Json } from '@impresario/protocol'
import type { TaskPayload } from './batch.ts'

/*
 * Items come back from the storage as plain JSON. These functions are the one place where it gets
 * its types again. The shapes are ours: only `batch.ts` writes them.
 */

export function readTurn(payload: Json): number {
  return isJsonObject(payload) ? Number(payload['visit']) : Number.NaN
}

export function readTask(payload: Json): TaskPayload {
  return payload as TaskPayload
}

/** What the job asks for in this branch, if it is still in that visit. */
export function callOf(job: Job, visit: number, branch: string): Call | undefined {
  return job.visit === visit ? job.branches[branch]?.call : undefined
}

export interface TimerPayload {
  readonly jobId: string
  readonly timer: TimerName
  readonly visit: number
}

export function readTimer(payload: Json): TimerPayload {
  return payload as unknown as TimerPayload
}

export interface Mail {
  readonly to: string
  readonly letter: Letter
}

export function readMail(payload: Json): Mail {
  return payload as unknown as Mail
}
