import type { FastifyInstance } from 'fastify'
import type { Clock, Storage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { EventCountBody } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf, isAdmin } from './access.ts'
import type { Caller } from './access.ts'
import { countQueryOf, listQueryOf } from './history-query.ts'
import { eventBody, historyBody, placeOf, placeText, workerHistoryBody } from './history.ts'
import type { HistoryReader } from './history.ts'
import { JOB_ID_CHARS_MAX, isVisible, jobNotFound } from './job-access.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import type { JobParams } from './job-routes.ts'
import { linkNextPage } from './page.ts'
import { contract, readQuery } from './route-contract.ts'

export interface HistoryRoutesOptions {
  readonly engine: Engine
  readonly storage: Storage
  readonly history: HistoryReader
  readonly clock: Clock
  readonly timeZone: string
}

const OF_JOB = contract({
  access: 'viewer',
  tag: 'jobs',
  id: 'getJobHistory',
  summary: 'What has happened to a job, oldest first',
  description:
    'Everything, where there is a database for it (`HISTORY_DATABASE_URI`): then also of jobs whose record is gone. Without one, the newest moments that the job keeps itself, and the results that came too late.',
  params: schemas.jobParams,
  query: schemas.historyQuery,
  replies: { 200: { description: 'The events.', body: schemas.historyList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'JOB_NOT_FOUND'],
})

const OF_WORKER = contract({
  access: 'client',
  tag: 'workers',
  id: 'getWorkerHistory',
  summary: 'What has happened to a worker, newest first',
  description:
    'When it registered, what it said when something was new, how its reputation changed, when it was forgotten. Its tasks are in the history of their jobs.',
  params: schemas.workerParams,
  query: schemas.workerHistoryQuery,
  replies: { 200: { description: 'The events.', body: schemas.workerHistoryList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'WORKER_NOT_FOUND', 'STORAGE_UNAVAILABLE'],
})

const LIST = contract({
  access: 'viewer',
  tag: 'jobs',
  id: 'listEvents',
  summary: 'What has happened, newest first',
  description:
    'Events of the own jobs; for an admin, of everybody’s jobs and of the workers. There is as much as the history keeps: everything with a database for it (`HISTORY_DATABASE_URI`), without one only results that came too late and the events of workers.',
  query: schemas.eventListQuery,
  replies: { 200: { description: 'The events.', body: schemas.eventList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN', 'STORAGE_UNAVAILABLE'],
})

const COUNTS = contract({
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
    const { job_id: jobId } = request.params
    await mustBeVisible(options, callerOf(request), jobId)
    const found = await history.ofJob(jobId, { limit: limit + 1, ...(after === undefined ? {} : { after }) })
    const page = found.slice(0, limit)
    const last = page.at(-1)
    if (found.length > limit && last !== undefined) linkNextPage(request, reply, 'after', String(last.id))
    return page.map((entry) => historyBody(jobId, entry, history.timeText(entry.at)))
  })

  app.get<{ Params: { worker_id: string } }>('/workers/:worker_id/history', OF_WORKER, async (request, reply) => {
    const { limit = LIMITS.historyPageMax, before } = readQuery(schemas.workerHistoryQuery, request.query)
    const { worker_id: id } = request.params
    const from = before === undefined ? {} : { before: placeOf(before) }
    const found = await history.ofWorker(id, { limit: limit + 1, ...from })
    if (found.length === 0 && before === undefined && (await storage.read('worker', id)) === undefined) {
      throw new ImpresarioError('WORKER_NOT_FOUND', 'Worker not found')
    }
    const page = found.slice(0, limit)
    const last = page.at(-1)
    if (found.length > limit && last !== undefined) linkNextPage(request, reply, 'before', placeText(last))
    return page.map((event) => workerHistoryBody(id, event, history.timeText(event.at)))
  })
  registerEventRoutes(app, options)
}

function registerEventRoutes(app: FastifyInstance, { history, clock, timeZone }: HistoryRoutesOptions): void {
  app.get('/history', LIST, async (request, reply) => {
    const given = readQuery(schemas.eventListQuery, request.query)
    const { limit = LIMITS.eventPageDefault } = given
    const found = await history.list({ ...listQueryOf(callerOf(request), given), limit: limit + 1 })
    const page = found.slice(0, limit)
    const last = page.at(-1)
    if (found.length > limit && last !== undefined) linkNextPage(request, reply, 'before', placeText(last))
    return page.map((event) => eventBody(event, history.timeText(event.at)))
  })

  app.get('/history/counts', COUNTS, async (request): Promise<readonly EventCountBody[]> => {
    const given = readQuery(schemas.eventCountQuery, request.query)
    const query = countQueryOf(callerOf(request), given, { now: clock.now(), timeZone })
    const counts = await history.counts(query)
    return counts.map(({ from, event, count }) => ({
      timestamp: from / 1_000,
      time: history.timeText(from),
      event_type: event,
      count,
    }))
  })
}

/** Of the caller's own jobs, those whose record is gone included. Others do not exist for it. */
async function mustBeVisible({ engine, history }: HistoryRoutesOptions, caller: Caller, jobId: string): Promise<void> {
  if (jobId.length > JOB_ID_CHARS_MAX) throw jobNotFound()
  const stored = await engine.readJob(jobId)
  if (stored !== undefined) {
    if (!isVisible(caller, stored.value)) throw jobNotFound()
    return
  }
  const owner = await history.ownerOf(jobId)
  if (owner === undefined || (owner !== caller.client.id && !isAdmin(caller))) throw jobNotFound()
}
