import type { Clock, Storage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import type { PageBounds, StoredEvent } from '@impresario/history'
import { ImpresarioError, LIMITS, writeJson } from '@impresario/protocol'
import type { EventCountBody, LogLineBody } from '@impresario/protocol'
import type * as schemas from '@impresario/protocol/schemas'
import { isAdmin } from '../http/access.ts'
import type { Caller } from '../http/access.ts'
import { JsonPage } from '../http/page.ts'
import { eventBody, historyBody, placeOf, placeText, workerHistoryBody } from '../orchestrator/history.ts'
import type { HistoryReader } from '../orchestrator/history.ts'
import type { JobLines } from '../orchestrator/job-lines.ts'
import { countQueryOf, listQueryOf } from './history-query.ts'
import { JOB_ID_CHARS_MAX, isVisible, jobNotFound, storedJobId, visibleJob } from './job-access.ts'
import type { WrittenPage } from './job-operations.ts'

/* What clients may see of what has happened. */

export interface HistoryParts {
  readonly engine: Engine
  readonly storage: Storage
  readonly history: HistoryReader
  readonly clock: Clock
  readonly timeZone: string
}

export interface JobLogParts {
  readonly engine: Engine
  readonly jobLines: JobLines
}

export async function jobHistory(
  parts: HistoryParts,
  caller: Caller,
  named: string,
  { limit = LIMITS.historyPageMax, after }: ReturnType<typeof schemas.historyQuery.parse>,
): Promise<WrittenPage> {
  const { history } = parts
  const jobId = await visibleJobId(parts, caller, named)
  const found = await history.ofJob(jobId, { ...boundsOf(limit), ...(after === undefined ? {} : { after }) })
  const write = (entry: (typeof found)[number]): object => historyBody(jobId, entry, history.timeText(entry.at))
  const { page, last } = written(found, limit, write)
  return { page, next: last === undefined ? undefined : String(last.id) }
}

/** What handlers and workers wrote about a job, oldest first. */
export async function jobLog(parts: JobLogParts, caller: Caller, named: string): Promise<readonly LogLineBody[]> {
  const { value: job } = await visibleJob(parts.engine, caller, named)
  return parts.jobLines.read(job.id)
}

export async function workerHistory(
  { storage, history }: HistoryParts,
  id: string,
  { limit = LIMITS.historyPageMax, before }: ReturnType<typeof schemas.workerHistoryQuery.parse>,
): Promise<WrittenPage> {
  const from = before === undefined ? {} : { before: placeOf(before) }
  const found = await history.ofWorker(id, { ...boundsOf(limit), ...from })
  if (found.length === 0 && before === undefined && (await storage.read('worker', id)) === undefined) {
    throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found')
  }
  const write = (event: StoredEvent): object => workerHistoryBody(id, event, history.timeText(event.at))
  const { page, last } = written(found, limit, write)
  return { page, next: last === undefined ? undefined : placeText(last) }
}

export async function listEvents(
  parts: HistoryParts,
  caller: Caller,
  given: ReturnType<typeof schemas.eventListQuery.parse>,
): Promise<WrittenPage> {
  const { history } = parts
  const { limit = LIMITS.eventPageDefault } = given
  const query = listQueryOf(caller, await withStoredJob(parts, caller, given))
  const found = await history.list({ ...query, ...boundsOf(limit) })
  const { page, last } = written(found, limit, (event) => eventBody(event, history.timeText(event.at)))
  return { page, next: last === undefined ? undefined : placeText(last) }
}

export async function countEvents(
  parts: HistoryParts,
  caller: Caller,
  given: ReturnType<typeof schemas.eventCountQuery.parse>,
): Promise<readonly EventCountBody[]> {
  const { history, clock, timeZone } = parts
  const query = countQueryOf(caller, await withStoredJob(parts, caller, given), { now: clock.now(), timeZone })
  const counts = await history.counts(query)
  return counts.map(({ from, event, count }) => ({
    timestamp: from / 1_000,
    time: history.timeText(from),
    event_type: event,
    count,
  }))
}

async function withStoredJob<T extends { readonly job?: string | undefined }>(
  { engine }: HistoryParts,
  caller: Caller,
  given: T,
): Promise<T> {
  return given.job === undefined ? given : { ...given, job: await storedJobId(engine, caller, given.job) }
}

/** One more than is shown, to know whether there is a next page. */
function boundsOf(limit: number): PageBounds {
  return { limit: limit + 1, bytesMax: LIMITS.pageBytesMax }
}

/** The page, and its last event if there are more behind it. */
function written<E>(
  found: readonly E[] & { readonly isCut?: true },
  limit: number,
  write: (event: E) => object,
): { readonly page: JsonPage; readonly last: E | undefined } {
  const page = new JsonPage()
  for (const event of found.slice(0, limit)) if (!page.add(writeJson(write(event)))) break
  const isLast = page.length === found.length && found.isCut !== true
  return { page, last: isLast ? undefined : found[page.length - 1] }
}

/** Of the caller's own jobs, those whose record is gone included. Others do not exist for it. */
async function visibleJobId({ engine, history }: HistoryParts, caller: Caller, named: string): Promise<string> {
  if (named.length > JOB_ID_CHARS_MAX) throw jobNotFound()
  const jobId = await storedJobId(engine, caller, named)
  const stored = await engine.readJob(jobId)
  if (stored !== undefined) {
    if (!isVisible(caller, stored.value)) throw jobNotFound()
    return jobId
  }
  const owner = await history.ownerOf(jobId)
  if (owner === undefined || (owner !== caller.client.id && !isAdmin(caller))) throw jobNotFound()
  return jobId
}
