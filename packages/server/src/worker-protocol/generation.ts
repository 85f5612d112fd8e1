import type { IncomingHttpHeaders } from 'node:http'
import { HEADERS, ImpresarioError, isJsonObject, WIRE_VERSION } from '@impresario/protocol'
import type { HeartbeatReply, ResultReply, ResultTransition } from '@impresario/protocol'

/*
 * Who asks decides how the answer is written. All generations but the oldest understand the same answers: they send the
 * header X-RXON-Version. The oldest (G0) sends none, and is known by what its messages look like:
 *
 *   heartbeat   `supported_tasks` and neither `worker_id` nor `current_tasks`   → its whole record
 *   result      the body nested in `result`                                     → `result_accepted_…`, 404 and 403
 *
 * Where the old form leaves room, the new keys stand beside it, so that a reader of either is content.
 */

/** Versions whose messages are understood: ours, and every one of the line 1, with which the workers in Python began. */
const SPOKEN = /^[01]\.[\w.+-]{1,30}$/

/**
 * The version that an answer is in: the worker's own where it is understood, because workers warn about every other one,
 * with each answer.
 */
export function versionFor(headers: IncomingHttpHeaders): string {
  const said = headers[HEADERS.wireVersion]
  return typeof said === 'string' && SPOKEN.test(said) ? said : WIRE_VERSION
}

/** What a worker is told that speaks a version which is not understood here. */
export function versionWarning(headers: IncomingHttpHeaders): string | undefined {
  const said = headers[HEADERS.wireVersion]
  if (typeof said !== 'string' || SPOKEN.test(said)) return undefined
  return `The worker speaks version ${said.slice(0, 32)} of the protocol, this server ${WIRE_VERSION}.`
}

export function isOldestHeartbeat(headers: IncomingHttpHeaders, body: unknown): boolean {
  return (
    headers[HEADERS.wireVersion] === undefined &&
    isJsonObject(body) &&
    Array.isArray(body['supported_tasks']) &&
    !('worker_id' in body) &&
    !('current_tasks' in body)
  )
}

export function isOldestResult(headers: IncomingHttpHeaders, body: unknown): boolean {
  return headers[HEADERS.wireVersion] === undefined && isJsonObject(body) && isJsonObject(body['result'])
}

/** The record, with what every heartbeat may answer. Its `status` is the worker's, as the oldest expect it. */
export function oldestHeartbeatReply(record: object, reply: HeartbeatReply): object {
  const { status: _, ...more } = reply
  return { ...more, ...record }
}

const OLD_STATUS: Readonly<Record<ResultTransition, string>> = {
  success_transition: 'result_accepted_success',
  unhandled_status_failure: 'result_accepted_success',
  failure_handled: 'result_accepted_failure',
  cancelled_handled: 'result_accepted_cancelled',
  parallel_branch_accepted: 'parallel_branch_result_accepted',
}

export function oldestResultReply(reply: ResultReply): object {
  if (reply.status === 'accepted') return { status: OLD_STATUS[reply.transition], transition: reply.transition }
  if (reply.reason === 'job_not_found') throw new ImpresarioError('JOB_NOT_FOUND', 'Job not found')
  if (reply.reason === 'worker_mismatch') {
    throw new ImpresarioError('FORBIDDEN', 'The task is held by another worker.')
  }
  return reply
}
