import type { JsonObject } from '@impresario/protocol'
import { pathTo } from './api.ts'
import { BOUNDS } from './bounds.ts'
import { JobLines } from './log-lines.ts'
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

/** Waits until the job is at rest or the time is up. Says how it stands when that changes, and every few seconds. */
export async function waitForJob(context: ToolContext, id: string, waitMs: number): Promise<JsonObject> {
  const { signal, progress } = context
  const until = performance.now() + waitMs
  let spokenAt = performance.now()
  const lines = new JobLines(context, id)
  let job = await jobOf(context, id, signal)
  let said = standing(job)
  for (let round = 1; !isAtRest(job) && !signal.aborted; round++) {
    const leftMs = until - performance.now()
    if (leftMs <= 0) break
    const wait = Math.min(BOUNDS.progressSeconds, leftMs / 1_000)
    job = await jobOf(context, id, signal, { wait, since: job })
    if (!isAtRest(job)) await lines.tell()
    const silentMs = performance.now() - spokenAt
    const isNews = standing(job) !== said && silentMs >= BOUNDS.newsMs
    if (!isNews && silentMs < BOUNDS.progressSeconds * 1_000) continue
    spokenAt = performance.now()
    said = standing(job)
    progress({ done: round, message: said })
  }
  await lines.tell()
  return job
}

/** A job as it is now; or, with `wait`, as soon as it is no longer `since`, at the latest after these seconds. */
export async function jobOf(
  { api }: Pick<ToolContext, 'api'>,
  id: string,
  signal: AbortSignal,
  news?: { readonly wait: number; readonly since: JsonObject },
): Promise<JsonObject> {
  const query = news === undefined ? {} : { query: { wait: news.wait, version: versionOf(news.since) } }
  return objectOf((await api.call({ method: 'GET', path: pathTo('jobs', id), ...query, signal })).body)
}

function versionOf({ version }: JsonObject): number {
  return typeof version === 'number' ? version : 0
}

/** How a job stands, in a few words. */
export function standing(job: JsonObject): string {
  const said = textOf(job['progress_message'])
  return said === '' ? `${textOf(job['status'])}, in the state ${textOf(job['current_state'])}` : said
}
