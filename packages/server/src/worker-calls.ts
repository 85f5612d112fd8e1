import { createWorker } from '@impresario/core'
import type { Clock } from '@impresario/core'
import type { Desk, Report } from '@impresario/engine'
import { LIMITS, WIRE_VERSION } from '@impresario/protocol'
import type {
  EventReply,
  EventRequest,
  HeartbeatReply,
  HeartbeatRequest,
  ItemError,
  RegisterReply,
  RegisterRequest,
  ResultReply,
} from '@impresario/protocol'
import { isEmptyBody, readHeartbeat, readProgress, readRegistration, readReport, receiptBody } from './wire-worker.ts'

/*
 * What a worker can ask, from its message to the answer. HTTP and the transport inside the process share it, so that
 * workers cannot tell the difference.
 */

export async function registerWorker(desk: Desk, clock: Clock, request: RegisterRequest): Promise<RegisterReply> {
  await desk.register(createWorker(readRegistration(request), clock.now()))
  return { status: 'registered', version: WIRE_VERSION, batch: { tasks_max: LIMITS.batchItemsMax } }
}

export async function takeHeartbeat(
  desk: Desk,
  workerId: string,
  request: HeartbeatRequest | null | undefined,
): Promise<HeartbeatReply> {
  const said = request === null || request === undefined || isEmptyBody(request) ? undefined : request
  const patch = said === undefined ? undefined : readHeartbeat(said)
  const { cancelled } = await desk.heartbeat(workerId, patch, said?.current_tasks ?? undefined)
  const tasks = cancelled.length === 0 ? {} : { cancel_task_ids: cancelled }
  return { status: said === undefined ? 'ttl_refreshed' : 'ok', ...tasks }
}

/** One answer for each item, in its place; a malformed one spoils only its own. */
export async function takeResults(
  desk: Desk,
  workerId: string,
  items: readonly unknown[],
): Promise<readonly (ResultReply | ItemError)[]> {
  const read = items.map(readReport)
  const reports = read.filter((item): item is Report => 'taskId' in item)
  const receipts = await desk.results(workerId, reports)
  let next = 0
  return read.map((item) => {
    if (!('taskId' in item)) return item
    const receipt = receipts[next]
    next += 1
    return receipt === undefined ? { status: 'ignored', reason: 'stale_task' } : receiptBody(receipt, item.status)
  })
}

/** Progress moves the job's own; other events have nobody to listen yet and are accepted all the same. */
export async function takeEvent(desk: Desk, workerId: string | undefined, event: EventRequest): Promise<EventReply> {
  if (event.event_type !== 'progress') return { status: 'event_accepted' }
  const taskId = event.target_task_id ?? event.origin_task_id
  const progress = readProgress(event.payload)
  if (progress === undefined || typeof taskId !== 'string' || workerId === undefined) {
    const message = 'Progress needs a worker id, a task id, and a number from 0 to 1.'
    return { status: 'error', code: 'INVALID_REQUEST', message }
  }
  await desk.progress(workerId, taskId, progress.fraction, progress.message)
  return { status: 'event_accepted' }
}
