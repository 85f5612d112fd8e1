import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ClientInfo, Job, ListQuery, Stored } from '@impresario/core'
import type { Applied, Engine } from '@impresario/engine'
import { HEADERS, ImpresarioError, isImpresarioError, isJsonObject, LIMITS } from '@impresario/protocol'
import type {
  CancelJobReply,
  CancelJobRequest,
  CreateJobBatchReply,
  CreateJobReply,
  CreateJobRequest,
  ItemError,
  JobBody,
  JsonObject,
} from '@impresario/protocol'
import { cancelJobRequest, createJobBatchRequest, createJobRequest } from '@impresario/protocol/schemas'
import type { ClientAuth } from './auth.ts'
import type { BlueprintLibrary } from './blueprint-library.ts'
import type { OpenWaits } from './connection.ts'
import { jsonSchema } from './json-schema.ts'
import { problemBody } from './problem.ts'
import { explanationBody, jobBody, readCreate, readEndpointBody } from './wire-job.ts'
import type { Caller } from './wire-job.ts'

export interface ClientRoutesOptions {
  readonly engine: Engine
  readonly auth: ClientAuth
  readonly blueprints: BlueprintLibrary
  readonly waits: OpenWaits
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the hook of every route that clients may call. */
    client: ClientInfo | undefined
  }
}

interface Params {
  readonly jobId: string
}

const CREATE_SCHEMA = jsonSchema(createJobRequest)
const BATCH_SCHEMA = jsonSchema(createJobBatchRequest)
const OPTIONAL_CANCEL = { anyOf: [{ type: 'null' }, jsonSchema(cancelJobRequest)] }

const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/

export function clientOf(request: FastifyRequest): ClientInfo {
  const { client } = request
  if (client === undefined) throw new ImpresarioError('UNAUTHENTICATED', 'Missing X-Client-Token header')
  return client
}

export function authenticateClients(app: FastifyInstance, auth: ClientAuth): void {
  app.decorateRequest('client', undefined)
  app.addHook('onRequest', async (request) => {
    request.client = auth.authenticate(request.headers).client
  })
}

/** The job, if it is the client's own. Others do not exist for it. */
export async function ownJob(engine: Engine, client: ClientInfo, jobId: string): Promise<Stored<Job>> {
  const stored = jobId.length <= LIMITS.identifierCharsMax * 4 ? await engine.readJob(jobId) : undefined
  if (stored?.value.client.id !== client.id) throw new ImpresarioError('JOB_NOT_FOUND', 'Job not found')
  return stored
}

function callerOf(request: FastifyRequest): Caller {
  const { [HEADERS.traceparent]: traceparent, [HEADERS.idempotencyKey]: key } = request.headers
  if (typeof key === 'string' && (key === '' || key.length > LIMITS.idempotencyKeyCharsMax)) {
    throw new ImpresarioError(
      'INVALID_REQUEST',
      `The idempotency key must have from 1 to ${LIMITS.idempotencyKeyCharsMax} characters.`,
    )
  }
  return {
    client: clientOf(request),
    ...(typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? { traceparent } : {}),
    ...(typeof key === 'string' ? { idempotencyKey: key } : {}),
  }
}

export function registerJobRoutes(app: FastifyInstance, options: ClientRoutesOptions): void {
  registerCreateRoutes(app, options)
  registerReadRoutes(app, options)
  registerCommandRoutes(app, options)
}

function registerCreateRoutes(app: FastifyInstance, { engine, blueprints }: ClientRoutesOptions): void {
  const create = async (
    request: FastifyRequest,
    reply: FastifyReply,
    body: CreateJobRequest,
  ): Promise<CreateJobReply> => {
    const wanted = readCreate(body, callerOf(request))
    const { jobId } = await engine.createJob(wanted, wanted)
    void reply.code(202)
    return { status: 'accepted', job_id: jobId }
  }

  app.post<{ Body: CreateJobRequest }>('/jobs', { schema: { body: CREATE_SCHEMA } }, (request, reply) =>
    create(request, reply, request.body),
  )

  app.post<{ Body: { jobs: readonly unknown[] } }>(
    '/jobs/batch',
    { schema: { body: BATCH_SCHEMA } },
    async (request, reply): Promise<CreateJobBatchReply> => {
      const caller = { ...callerOf(request), idempotencyKey: undefined }
      const isValid = request.compileValidationSchema(CREATE_SCHEMA)
      const read = request.body.jobs.map((job) =>
        isValid(job) ? readCreate(job as CreateJobRequest, caller) : problemIn(isValid.errors),
      )
      const created = await engine.createJobs(read.filter((one) => 'blueprint' in one))
      void reply.code(202)
      let next = 0
      const results = read.map((one): CreateJobReply | ItemError => {
        if (!('blueprint' in one)) return one
        const outcome = created[next]
        next += 1
        if (outcome !== undefined && 'jobId' in outcome) return { status: 'accepted', job_id: outcome.jobId }
        return itemError(outcome?.error)
      })
      return { results }
    },
  )

  // Blueprints come and go while the program runs, so their endpoints are looked up and not declared.
  app.post<{ Params: { '*': string } }>('/*', async (request, reply) => {
    const name = blueprints.byEndpoint(request.params['*'])
    if (name === undefined) throw new ImpresarioError('NOT_FOUND', 'There is nothing here.')
    const body = readEndpointBody(name, request.body)
    const isValid = request.compileValidationSchema(CREATE_SCHEMA)
    if (!isValid(body)) throw new ImpresarioError('INVALID_REQUEST', problemIn(isValid.errors).error)
    return create(request, reply, body)
  })
}

function problemIn(errors: readonly { instancePath?: string; message?: string }[] | null | undefined): ItemError {
  const [first] = errors ?? []
  const error = `body${first?.instancePath ?? ''} ${first?.message ?? 'is not valid'}`
  return { error, code: 'INVALID_REQUEST' }
}

function itemError(error: unknown): ItemError {
  const refusal = isImpresarioError(error) ? error : new ImpresarioError('INTERNAL', 'Internal error')
  const { error: text, code } = problemBody(refusal)
  return { error: text, code }
}

interface JobQuery {
  readonly wait?: string
  readonly version?: string
  readonly until?: string
  readonly fields?: string
}

function registerReadRoutes(app: FastifyInstance, { engine, waits }: ClientRoutesOptions): void {
  app.get<{ Params: Params; Querystring: JobQuery }>('/jobs/:jobId', async (request, reply) => {
    const { wait, version, until, fields } = request.query
    const known = await ownJob(engine, clientOf(request), request.params.jobId)
    const waitMs = Math.min((readNumber('wait', wait, 0) ?? 0) * 1_000, LIMITS.longPollMsMax)
    if (waitMs === 0) return picked(jobBody(known), fields)
    const afterVersion = until === 'end' ? undefined : readNumber('version', version, 0)
    const waiting = waits.begin(reply)
    try {
      const found = await engine.waitForJob(known.value.id, { afterVersion, waitMs, signal: waiting.signal })
      return picked(jobBody(found ?? known), fields)
    } finally {
      waiting.end()
    }
  })

  app.get<{ Querystring: Readonly<Record<string, string | undefined>> }>('/jobs', async (request, reply) => {
    const { status, blueprint, cursor, limit: wanted } = request.query
    const limit = Math.floor(readNumber('limit', wanted, 1) ?? LIMITS.pageSizeDefault)
    if (limit > LIMITS.pageSizeMax) {
      throw new ImpresarioError('INVALID_REQUEST', `"limit" must be at most ${LIMITS.pageSizeMax}.`)
    }
    const statuses = status?.split(',').filter((one) => one !== '')
    const query: ListQuery = {
      owner: clientOf(request).id,
      limit: limit + 1,
      ...(statuses === undefined || statuses.length === 0 ? {} : { statuses }),
      ...(blueprint === undefined || blueprint === '' ? {} : { name: blueprint }),
      ...(cursor === undefined || cursor === '' ? {} : { before: cursor }),
    }
    const found = await engine.listJobs(query)
    const page = found.slice(0, limit)
    const last = page.at(-1)
    if (found.length > limit && last !== undefined) void reply.header(HEADERS.nextCursor, last.id)
    return page.map(jobBody)
  })

  app.get<{ Params: Params }>('/jobs/:jobId/explain', async (request) => {
    const { value: job } = await ownJob(engine, clientOf(request), request.params.jobId)
    return explanationBody(job, await engine.explainJob(job))
  })
}

function picked(body: JobBody, fields: string | undefined): Partial<JobBody> {
  if (fields === undefined || fields === '') return body
  const wanted = new Set(fields.split(','))
  return Object.fromEntries(Object.entries(body).filter(([key]) => wanted.has(key)))
}

/** A number of a query, where there is one. */
function readNumber(name: string, text: string | undefined, min: number): number | undefined {
  if (text === undefined || text === '') return undefined
  const number = Number(text)
  if (Number.isFinite(number) && number >= min) return number
  throw new ImpresarioError('INVALID_REQUEST', `"${name}" must be a number of at least ${min}.`)
}

function registerCommandRoutes(app: FastifyInstance, { engine }: ClientRoutesOptions): void {
  app.post<{ Params: Params; Body: CancelJobRequest | null | undefined }>(
    '/jobs/:jobId/cancel',
    { schema: { body: OPTIONAL_CANCEL } },
    async (request): Promise<CancelJobReply> => {
      const client = clientOf(request)
      const { jobId } = request.params
      const stored = await engine.readJob(jobId)
      if (stored?.value.client.id !== client.id) throw notCancellable()
      const applied = await engine.cancelJob(jobId, client.id, request.body?.reason ?? undefined)
      if (applied.type !== 'applied') throw notCancellable()
      return { status: 'cancellation_request_accepted' }
    },
  )

  app.post<{ Params: Params }>('/jobs/:jobId/retry', async (request) => {
    const client = clientOf(request)
    const { value: job } = await ownJob(engine, client, request.params.jobId)
    return commanded(await engine.retryJob(job.id, client.id, retryData(request.body)), 'retry_accepted')
  })

  app.post<{ Params: Params }>('/jobs/:jobId/discard', async (request) => {
    const client = clientOf(request)
    const { value: job } = await ownJob(engine, client, request.params.jobId)
    return commanded(await engine.discardJob(job.id, client.id), 'discard_accepted')
  })
}

function notCancellable(): ImpresarioError {
  return new ImpresarioError('JOB_NOT_FOUND', 'Job not found or already terminal.')
}

function retryData(body: unknown): { initialData?: JsonObject; stateHistory?: JsonObject } {
  if (!isJsonObject(body)) return {}
  const { initial_data: initialData, state_history: stateHistory } = body
  return {
    ...(isJsonObject(initialData) ? { initialData } : {}),
    ...(isJsonObject(stateHistory) ? { stateHistory } : {}),
  }
}

function commanded(applied: Applied, status: string): { readonly status: string; readonly job_id: string } {
  if (applied.type === 'applied') return { status, job_id: applied.job.id }
  if (applied.type === 'ignored' && applied.reason === 'job_not_found') {
    throw new ImpresarioError('JOB_NOT_FOUND', 'Job not found')
  }
  throw new ImpresarioError('NOT_WAITING', 'The job is not in quarantine.')
}
