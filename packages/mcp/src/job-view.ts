import type { JsonObject } from '@impresario/protocol'
import { pathTo } from './api.ts'
import { BOUNDS } from './bounds.ts'
import { objectOf, pick, textOf, withTimes } from './tool.ts'
import type { ToolContext } from './tool.ts'

/** What lists show of a job. */
export const JOB_FIELDS = [
  'job_id',
  'blueprint_name',
  'status',
  'current_state',
  'progress',
  'progress_message',
  'result',
  'error_code',
  'error_message',
  'approval',
  'waits_for',
  'created_at',
  'updated_at',
  'ended_at',
]

const ENDED: ReadonlySet<string> = new Set(['finished', 'failed', 'cancelled', 'error'])

export function isEnded(job: JsonObject): boolean {
  return ENDED.has(textOf(job['status']))
}

/** It does not go on by itself: it has ended, or a person has to do something. */
export function isAtRest(job: JsonObject): boolean {
  const status = textOf(job['status'])
  return ENDED.has(status) || status === 'quarantined' || status === 'waiting_for_human'
}

/** A job as assistants see it, with what to do next. */
export function jobView(job: JsonObject): JsonObject {
  const next = nextStep(job)
  return {
    ...withTimes(pick(job, [...JOB_FIELDS, 'parent_job_id', 'metadata', 'compensation'])),
    is_ended: isEnded(job),
    ...(next === undefined ? {} : { next }),
  }
}

function nextStep(job: JsonObject): string | undefined {
  const status = textOf(job['status'])
  if (ENDED.has(status)) return undefined
  if (status === 'waiting_for_human') {
    return 'A person has to decide. Ask them, then call decide_approval; without a decision it gives a link to a page.'
  }
  if (status === 'quarantined') {
    return 'It failed unexpectedly and waits for a person. Call manage_job with retry or discard after the cause is fixed.'
  }
  return 'Call wait_job until is_ended is true.'
}

/** Waits until the job is at rest or the time is up, and says every few seconds how it stands. */
export async function waitForJob(
  { api, signal, progress }: ToolContext,
  id: string,
  waitMs: number,
): Promise<JsonObject> {
  const until = performance.now() + waitMs
  let spokenAt = performance.now()
  let job = objectOf((await api.call({ method: 'GET', path: pathTo('jobs', id), signal })).body)
  for (let round = 1; !isAtRest(job) && !signal.aborted; round++) {
    const leftMs = until - performance.now()
    if (leftMs <= 0) break
    const query = { wait: Math.min(BOUNDS.progressSeconds, leftMs / 1_000), version: versionOf(job) }
    job = objectOf((await api.call({ method: 'GET', path: pathTo('jobs', id), query, signal })).body)
    if (performance.now() - spokenAt < BOUNDS.progressSeconds * 1_000) continue
    spokenAt = performance.now()
    progress({ done: round, message: standing(job) })
  }
  return job
}

function versionOf({ version }: JsonObject): number {
  return typeof version === 'number' ? version : 0
}

/** How a job stands, in a few words. */
export function standing(job: JsonObject): string {
  const said = textOf(job['progress_message'])
  return said === '' ? `${textOf(job['status'])}, in the state ${textOf(job['current_state'])}` : said
}
