import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { shownJobId } from '@impresario/core'
import type { Clock, Job } from '@impresario/core'
import type { Commanded, Engine } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type {
  BulkReply,
  BulkRequest,
  CommandReply,
  JsonObject,
  QuarantinedBody,
  QuarantineFilter,
  RetryJobRequest,
} from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { callerOf } from '../http/access.ts'
import type { Caller } from '../http/access.ts'
import type { ReloadableRegistry } from '../orchestrator/reloadable-registry.ts'
import { jobNotFound, ownerFilter, visibleJob } from './job-access.ts'
import { itemError } from './job-creation-routes.ts'
import { PAGE_HEADERS } from './job-routes.ts'
import type { JobParams } from './job-routes.ts'
import { decodeCursor, encodeCursor, JsonPage, linkNextPage, walkJobs } from '../http/page.ts'
import { route, readQuery } from '../http/route.ts'
import type { RouteDescription } from '../http/route.ts'
import { listedWriter, QUARANTINED_FIELDS, quarantinedBody } from './wire-job.ts'

export interface QuarantineRoutesOptions {
  readonly engine: Engine
  readonly blueprints: ReloadableRegistry
  readonly clock: Clock
}

const LISTED: RouteDescription = {
  access: 'viewer',
  tag: 'quarantine',
  id: 'listQuarantine',
  isList: true,
  summary: 'List the jobs in quarantine, newest first',
  description:
    'A page may have fewer jobs than its limit and still name a next one: filters by error and age look through a bounded number of jobs at a time.',
  query: schemas.quarantineQuery,
  replies: { 200: { description: 'One page of jobs.', body: schemas.quarantineList, headers: PAGE_HEADERS } },
  refusals: ['INVALID_REQUEST', 'FORBIDDEN'],
}
const LIST = route(LISTED)
const LIST_OLD = route({
  ...LISTED,
  id: 'listQuarantineOld',
  isList: true,
  summary: 'The same list, where older clients look for it',
})

const INSPECT = route({
  access: 'viewer',
  tag: 'quarantine',
  id: 'getQuarantined',
  summary: 'A job in quarantine with its whole error',
  params: schemas.jobParams,
  replies: { 200: { description: 'The job, with the stack of its error.', body: schemas.quarantinedBody } },
  refusals: ['JOB_NOT_FOUND', 'NOT_WAITING'],
})

const RETRY = route({
  access: 'client',
  tag: 'quarantine',
  id: 'retryJob',
  summary: 'Send a job back into the state where it failed',
  description: 'Perhaps with other data. Its tries and its time begin anew.',
  params: schemas.jobParams,
  body: schemas.retryJobRequest,
  isBodyOptional: true,
  replies: { 200: { description: 'The job goes on.', body: schemas.commandReply } },
  refusals: ['JOB_NOT_FOUND', 'NOT_WAITING', 'INPUT_REFUSED'],
})

const DISCARD = route({
  access: 'client',
  tag: 'quarantine',
  id: 'discardJob',
  summary: 'Give a job in quarantine up',
  description: 'It ends as failed.',
  params: schemas.jobParams,
  body: schemas.discardJobRequest,
  isBodyOptional: true,
  replies: { 200: { description: 'The job has ended.', body: schemas.commandReply } },
  refusals: ['JOB_NOT_FOUND', 'NOT_WAITING'],
})

const BULK = {
  access: 'client',
  tag: 'quarantine',
  description: `Up to ${LIMITS.batchItemsMax} jobs, by their ids or by a filter. Each is answered for itself.`,
  body: schemas.bulkRequest,
  replies: { 200: { description: 'One answer for each job.', body: schemas.bulkReply } },
} as const
const RETRY_MANY = route({ ...BULK, id: 'retryQuarantined', summary: 'Send many jobs back' })
const DISCARD_MANY = route({ ...BULK, id: 'discardQuarantined', summary: 'Give many jobs up' })

/** Jobs that stand aside until a person has looked at them. */
export function registerQuarantineRoutes(app: FastifyInstance, options: QuarantineRoutesOptions): void {
  const { engine, blueprints } = options
  app.get('/quarantine', LIST, (request, reply) => listQuarantine(options, request, reply))

  app.get<{ Params: JobParams }>('/quarantine/:job_id', INSPECT, async (request): Promise<QuarantinedBody> => {
    const stored = await visibleJob(engine, callerOf(request), request.params.job_id)
    if (stored.value.status !== 'quarantined') throw notQuarantined()
    return quarantinedBody(stored, { withStack: true })
  })

  app.post<{ Params: JobParams; Body: RetryJobRequest | null | undefined }>(
    '/jobs/:job_id/retry',
    RETRY,
    async (request): Promise<CommandReply> => {
      const caller = callerOf(request)
      const { value: job } = await visibleJob(engine, caller, request.params.job_id)
      const data = await checkedEdit(blueprints, job, request.body ?? {})
      return commanded(await engine.retryJob(job.id, caller.client.id, data), 'retry_accepted')
    },
  )

  app.post<{ Params: JobParams }>('/jobs/:job_id/discard', DISCARD, async (request): Promise<CommandReply> => {
    const caller = callerOf(request)
    const { value: job } = await visibleJob(engine, caller, request.params.job_id)
    return commanded(await engine.discardJob(job.id, caller.client.id), 'discard_accepted')
  })

  app.post<{ Body: BulkRequest }>('/quarantine/retry', RETRY_MANY, (request) =>
    inBulk(options, request, async (id, by) => commanded(await engine.retryJob(id, by), 'retry_accepted')),
  )

  app.post<{ Body: BulkRequest }>('/quarantine/discard', DISCARD_MANY, (request) =>
    inBulk(options, request, async (id, by) => commanded(await engine.discardJob(id, by), 'discard_accepted')),
  )
}

/** The place where older clients look; there, too, only for those who say who they are, and only their own. */
export function registerOldQuarantineRoute(app: FastifyInstance, options: QuarantineRoutesOptions): void {
  app.get('/jobs/quarantined', LIST_OLD, (request, reply) => listQuarantine(options, request, reply))
}

async function listQuarantine(
  { engine, clock }: QuarantineRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const {
    limit = LIMITS.pageSizeDefault,
    cursor,
    owner,
    fields,
    ...filter
  } = readQuery(schemas.quarantineQuery, request.query)
  const query = {
    ...quarantineQuery(callerOf(request), filter, owner),
    limit,
    ...(cursor === undefined ? {} : { before: decodeCursor(cursor) }),
  }
  const write = listedWriter(fields, QUARANTINED_FIELDS)
  const page = new JsonPage()
  const next = await walkJobs(engine, {
    query,
    fits: fitsFilter(filter, clock.now()),
    take: (job) => page.add(write(quarantinedBody(job, { withStack: false }))),
  })
  if (next !== undefined) linkNextPage(request, reply, 'cursor', encodeCursor(next))
  return page.send(reply)
}

type Loose<T> = { readonly [K in keyof T]: T[K] | undefined }

function quarantineQuery(caller: Caller, { blueprint }: Loose<QuarantineFilter>, owner?: string) {
  return {
    ...ownerFilter(caller, owner),
    status: 'quarantined',
    ...(blueprint === undefined ? {} : { name: blueprint }),
  }
}

function fitsFilter(filter: Loose<QuarantineFilter>, now: number): (job: Job) => boolean {
  const { error_code: code, older_than: olderThan } = filter
  return (job) =>
    (code === undefined || job.error?.code === code) &&
    (olderThan === undefined || job.updatedAt <= now - olderThan * 1_000)
}

/** Other data has to pass what the first data passed. */
async function checkedEdit(
  blueprints: ReloadableRegistry,
  job: Job,
  { initial_data: initialData, state_history: stateHistory }: RetryJobRequest,
): Promise<{ initialData?: JsonObject; stateHistory?: JsonObject }> {
  if (stateHistory && Buffer.byteLength(JSON.stringify(stateHistory)) > LIMITS.contextBytesMax) {
    throw new ImpresarioError('LIMIT_EXCEEDED', `"state_history" has more than ${LIMITS.contextBytesMax} bytes.`)
  }
  const edit = stateHistory ? { stateHistory } : {}
  if (!initialData) return edit
  const blueprint = blueprints.get(job.blueprint, job.blueprintVersion) ?? blueprints.latest(job.blueprint)
  const checked = (await blueprint?.validateInput(initialData)) ?? { value: initialData }
  if ('value' in checked) return { ...edit, initialData: checked.value }
  throw new ImpresarioError(
    'INPUT_REFUSED',
    `The initial data does not fit "${job.blueprint}": ${checked.problems.join('; ')}`,
  )
}

function commanded(applied: Commanded, status: string): CommandReply {
  if (applied.type === 'applied' || applied.type === 'repeated') {
    return { status, job_id: shownJobId(applied.job.id), job_status: applied.job.status }
  }
  if (applied.type === 'ignored' && applied.reason === 'job_not_found') throw jobNotFound()
  throw notQuarantined()
}

function notQuarantined(): ImpresarioError {
  return new ImpresarioError('NOT_WAITING', 'The job is not in quarantine.')
}

/** So many at the same time: enough to share a durable write, and not all of them at once. */
const AT_ONCE = 20

async function inBulk(
  options: QuarantineRoutesOptions,
  request: FastifyRequest<{ Body: BulkRequest }>,
  command: (jobId: string, by: string) => Promise<CommandReply>,
): Promise<BulkReply> {
  const { engine } = options
  const caller = callerOf(request)
  const { ids, hasMore } = await chosen(options, caller, request.body)
  const one = async (id: string): Promise<BulkReply['results'][number]> => {
    try {
      const { value: job } = await visibleJob(engine, caller, id)
      return await command(job.id, caller.client.id)
    } catch (error) {
      return { job_id: id, ...itemError(error) }
    }
  }
  const results: BulkReply['results'][number][] = []
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    results.push(...(await Promise.all(ids.slice(at, at + AT_ONCE).map(one))))
  }
  return { results, has_more: hasMore }
}

async function chosen(
  { engine, clock }: QuarantineRoutesOptions,
  caller: Caller,
  { ids, filter, limit = LIMITS.batchItemsMax }: BulkRequest,
): Promise<{ readonly ids: readonly string[]; readonly hasMore: boolean }> {
  if ((ids === undefined) === (filter === undefined)) {
    throw new ImpresarioError('INVALID_REQUEST', 'Give either "ids" or "filter". An empty filter means all jobs.')
  }
  if (ids !== undefined) return { ids: [...new Set(ids)], hasMore: false }
  const query = { ...quarantineQuery(caller, filter ?? {}), limit }
  const found: string[] = []
  const next = await walkJobs(engine, {
    query,
    fits: fitsFilter(filter ?? {}, clock.now()),
    take: ({ id }) => found.push(id) > 0,
  })
  return { ids: found, hasMore: next !== undefined }
}
