import type { FastifyInstance } from 'fastify'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf } from '../http/access.ts'
import { linkNextPage } from '../http/page.ts'
import { route, readQuery } from '../http/route.ts'
import { durations } from './duration-operations.ts'
import { countEvents, jobHistory, jobLog, listEvents, workerHistory } from './history-operations.ts'
import type { HistoryParts, JobLogParts } from './history-operations.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import type { JobParams } from './job-routes.ts'

const OF_JOB = route({
  access: 'viewer',
  scope: 'jobs:read',
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

const LOG = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'jobs',
  id: 'getJobLog',
  summary: 'What handlers and workers wrote about a job, oldest first',
  description:
    'The newest lines of `context.log` and `task.log`: see the [limits](limits.md). A worker’s lines come with its result.',
  params: schemas.jobParams,
  replies: { 200: { description: 'The lines.', body: schemas.jobLogList } },
  refusals: ['JOB_NOT_FOUND'],
})

const OF_WORKER = route({
  access: 'client',
  scope: 'jobs:read',
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
  scope: 'jobs:read',
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
  scope: 'jobs:read',
  tag: 'jobs',
  id: 'countEvents',
  summary: 'How many events there were, by name and by hour or day',
  description:
    'Of the same events as the list. Without `since`: of the last 24 hours, and per day of the last 30 days. Hours and days without events are left out.',
  query: schemas.eventCountQuery,
  replies: { 200: { description: 'The counts, oldest first.', body: schemas.eventCountList } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN', 'STORAGE_UNAVAILABLE'],
})

const DURATIONS = route({
  access: 'viewer',
  scope: 'jobs:read',
  tag: 'jobs',
  id: 'getDurations',
  summary: 'How long jobs and their stays in states took',
  description:
    'Of the own jobs; for an admin, of everybody’s. Without `since`: of the last hour. Computed from the history, so that there is nothing without a database for it (`HISTORY_DATABASE_URI`).',
  query: schemas.durationQuery,
  replies: { 200: { description: 'The durations.', body: schemas.durations } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN', 'STORAGE_UNAVAILABLE'],
})

/** What has happened. The routes are there whatever the configuration says of the history. */
export function registerHistoryRoutes(app: FastifyInstance, options: HistoryParts & JobLogParts): void {
  app.get<{ Params: JobParams }>('/jobs/:job_id/log', LOG, async (request) =>
    jobLog(options, callerOf(request), request.params.job_id),
  )

  app.get<{ Params: JobParams }>('/jobs/:job_id/history', OF_JOB, async (request, reply) => {
    const query = readQuery(schemas.historyQuery, request.query)
    const { page, next } = await jobHistory(options, callerOf(request), request.params.job_id, query)
    if (next !== undefined) linkNextPage(request, reply, 'after', next)
    return page.send(reply)
  })

  app.get<{ Params: { worker_id: string } }>('/workers/:worker_id/history', OF_WORKER, async (request, reply) => {
    const query = readQuery(schemas.workerHistoryQuery, request.query)
    const { page, next } = await workerHistory(options, request.params.worker_id, query)
    if (next !== undefined) linkNextPage(request, reply, 'before', next)
    return page.send(reply)
  })

  app.get('/history', LIST, async (request, reply) => {
    const query = readQuery(schemas.eventListQuery, request.query)
    const { page, next } = await listEvents(options, callerOf(request), query)
    if (next !== undefined) linkNextPage(request, reply, 'before', next)
    return page.send(reply)
  })

  app.get('/history/counts', COUNTS, (request) =>
    countEvents(options, callerOf(request), readQuery(schemas.eventCountQuery, request.query)),
  )

  app.get('/history/durations', DURATIONS, (request) =>
    durations(options, callerOf(request), readQuery(schemas.durationQuery, request.query)),
  )
}
