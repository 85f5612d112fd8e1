import type { FastifyInstance } from 'fastify'
import type { Clock, Storage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import type { PageBounds, StoredEvent } from '@impresario/history'
import { ImpresarioError, LIMITS, writeJson } from '@impresario/protocol'
import type { EventCountBody } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf, isAdmin } from '../http/access.ts'
import type { Caller } from '../http/access.ts'
import { countQueryOf, listQueryOf } from './history-query.ts'
import { eventBody, historyBody, placeOf, placeText, workerHistoryBody } from '../orchestrator/history.ts'
import type { HistoryReader } from '../orchestrator/history.ts'
import { JOB_ID_CHARS_MAX, isVisible, jobNotFound, storedJobId } from './job-access.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import type { JobParams } from './job-routes.ts'
import { JsonPage, linkNextPage } from '../http/page.ts'
import { route, readQuery } from '../http/route.ts'

export interface HistoryRoutesOptions {
  readonly engine: Engine
  readonly storage: Storage
  readonly history: HistoryReader
  readonly clock: Clock
  readonly timeZone: string
}

const OF_JOB = route({
  access: 'viewer',
  tag: 'jobs',
  id: 'getJobHistory',
  isList: true,
  summary: 'What has happened to a job, oldest first',
  description:
    'Everything, where there is a database for it (`HISTORY_DATABASE_URI`): then also of jobs whose record is gone. Without one, the newest moments that the job keeps itself, and the results that came too late.',
  params: schemas.jobParams,
  query: schemas.historyQuery,
  replies: { 200: { description: 'The events.', body: schemas.historyList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'JOB_NOT_FOUND'],
})

const OF_WORKER = route({
  access: 'client',
  tag: 'workers',
  id: 'getWorkerHistory',
  isList: true,
  summary: 'What has happened to a worker, newest first',
  description:
    'When it registered, what it said when something was new, how its reputation changed, when it was forgotten. Its tasks are in the history of their jobs.',
  params: schemas.workerParams,
  query: schemas.workerHistoryQuery,
  replies: { 200: { description: 'The events.', body: schemas.workerHistoryList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'WORKER_NOT_FOUND', 'STORAGE_UNAVAILABLE'],
})

const LIST = route({
  access: 'viewer',
  tag: 'jobs',
  id: 'listEvents',
  isList: true,
  summary: 'What has happened, newest first',
  description:
    'Events of the own jobs; for an admin, of everybody’s jobs and of the workers. There is as much as the history keeps: everything with a database for it (`HISTORY_DATABASE_URI`), without one only results that came too late and the events of workers.',
  query: schemas.eventListQuery,
  replies: { 200: { description: 'The events.', body: schemas.eventList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN', 'STORAGE_UNAVAILABLE'],
})

const COUNTS = route({
  access: 'viewer',
  tag: 'jobs',
  id: 'countEvents',
  summary: 'How many events there were, by name and by hour or day',
  description:
    'Of the same events as the list. Without `since`: of the last 24 hours, and per day of the last 30 days. Hours and days without events are left out.',
  query: schemas.eventCountQuery,
  replies: { 200: { description: 'The counts, oldest first.', body: schemas.eventCountList } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN', 'STORAGE_UNAVAILABLE'],
})

/** What has happened. The routes are there whatever the configuration says of the history. */
export function registerHistoryRoutes(app: FastifyInstance, options: HistoryRoutesOptions): void {
  const { storage, history } = options
  app.get<{ Params: JobParams }>('/jobs/:job_id/history', OF_JOB, async (request, reply) => {
    const { limit = LIMITS.historyPageMax, after } = readQuery(schemas.historyQuery, request.query)
    const jobId = await visibleJobId(options, callerOf(request), request.params.job_id)
    const found = await history.ofJob(jobId, { ...boundsOf(limit), ...(after === undefined ? {} : { after }) })
    const write = (entry: (typeof found)[number]): object => historyBody(jobId, entry, history.timeText(entry.at))
    const { page, last } = written(found, limit, write)
    if (last !== undefined) linkNextPage(request, reply, 'after', String(last.id))
    return page.send(reply)
  })

  app.get<{ Params: { worker_id: string } }>('/workers/:worker_id/history', OF_WORKER, async (request, reply) => {
    const { limit = LIMITS.historyPageMax, before } = readQuery(schemas.workerHistoryQuery, request.query)
    const { worker_id: id } = request.params
    const from = before === undefined ? {} : { before: placeOf(before) }
    const found = await history.ofWorker(id, { ...boundsOf(limit), ...from })
    if (found.length === 0 && before === undefined && (await storage.read('worker', id)) === undefined) {
      throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found')
    }
    const write = (event: StoredEvent): object => workerHistoryBody(id, event, history.timeText(event.at))
    const { page, last } = written(found, limit, write)
    if (last !== undefined) linkNextPage(request, reply, 'before', placeText(last))
    return page.send(reply)
  })
  registerEventRoutes(app, options)
}

function registerEventRoutes(app: FastifyInstance, options: HistoryRoutesOptions): void {
  const { engine, history, clock, timeZone } = options
  const stored = async <T extends { readonly job?: string | undefined }>(caller: Caller, given: T): Promise<T> =>
    given.job === undefined ? given : { ...given, job: await storedJobId(engine, caller, given.job) }

  app.get('/history', LIST, async (request, reply) => {
    const given = readQuery(schemas.eventListQuery, request.query)
    const { limit = LIMITS.eventPageDefault } = given
    const caller = callerOf(request)
    const query = listQueryOf(caller, await stored(caller, given))
    const found = await history.list({ ...query, ...boundsOf(limit) })
    const { page, last } = written(found, limit, (event) => eventBody(event, history.timeText(event.at)))
    if (last !== undefined) linkNextPage(request, reply, 'before', placeText(last))
    return page.send(reply)
  })

  app.get('/history/counts', COUNTS, async (request): Promise<readonly EventCountBody[]> => {
    const given = readQuery(schemas.eventCountQuery, request.query)
    const caller = callerOf(request)
    const query = countQueryOf(caller, await stored(caller, given), { now: clock.now(), timeZone })
    const counts = await history.counts(query)
    return counts.map(({ from, event, count }) => ({
      timestamp: from / 1_000,
      time: history.timeText(from),
      event_type: event,
      count,
    }))
  })
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
async function visibleJobId({ engine, history }: HistoryRoutesOptions, caller: Caller, named: string): Promise<string> {
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
