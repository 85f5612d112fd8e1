import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { shownJobId } from '@impresario/core'
import type { Engine, NewJob } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type {
  CreateJobBatchReply,
  CreateJobReply,
  CreateJobRequest,
  ItemError,
  RerunJobRequest,
} from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { mustBeWebhookUrl } from '@impresario/webhooks'
import type { OutboundPolicy } from '@impresario/webhooks'
import { callerOf } from '../http/access.ts'
import type { ReloadableRegistry } from '../orchestrator/reloadable-registry.ts'
import { inSlices } from '../runtime/in-slices.ts'
import { jsonSchema } from '../http/json-schema.ts'
import { itemError } from './item-error.ts'
import { keyOf } from './request-key.ts'
import { rerunJob } from './rerun-operations.ts'
import type { QuotaCalendar } from '../limits/quota-calendar.ts'
import { route } from '../http/route.ts'
import { settleNumbers } from '../worker-protocol/settle-numbers.ts'
import { tracingOf } from '../telemetry/request-spans.ts'
import { readCreate, readEndpointBody } from './wire-job.ts'
import type { Origin } from './wire-job.ts'

export interface JobCreationOptions {
  readonly engine: Engine
  readonly blueprints: ReloadableRegistry
  readonly quotas: QuotaCalendar
  /** The version in the path of these routes, such as `v1`; none under the bare prefix. */
  readonly apiVersion?: string | undefined
  /** Where webhooks may go: a job that names another address is refused. */
  readonly webhookPolicy: OutboundPolicy
}

const ACCEPTED = { 202: { description: 'The job is stored and will run.', body: schemas.createJobReply } }

const CREATE = route({
  access: 'client',
  scope: 'jobs:write',
  isNewWork: true,
  tag: 'jobs',
  id: 'createJob',
  summary: 'Start a job',
  description:
    'Runs the latest version of a blueprint. What is accepted is durable. With an idempotency key (in the body, or in the header `Idempotency-Key`) a repeated request gives the same job.',
  body: schemas.createJobRequest,
  replies: ACCEPTED,
  refusals: ['BLUEPRINT_NOT_FOUND', 'INPUT_REFUSED', 'IDEMPOTENCY_KEY_REUSED', 'QUOTA_EXCEEDED'],
})

const CREATE_BATCH = route({
  access: 'client',
  scope: 'jobs:write',
  isNewWork: true,
  tag: 'jobs',
  id: 'createJobs',
  summary: `Start up to ${LIMITS.batchItemsMax} jobs at once`,
  description: 'Each job is accepted or refused for itself, in its place of the answer.',
  body: schemas.createJobBatchRequest,
  replies: { 202: { description: 'One answer for each job.', body: schemas.createJobBatchReply } },
})

const CREATE_BY_ENDPOINT = route({
  access: 'client',
  scope: 'jobs:write',
  isNewWork: true,
  tag: 'jobs',
  id: 'createJobByEndpoint',
  summary: 'Start a job by the endpoint of its blueprint',
  description:
    'A blueprint may have a path of its own, and a version of the API that it belongs to: `/api/v2/orders`. A body that has none of `initial_data`, `webhook_url`, `dispatch_timeout` and `result_timeout` is the initial data itself, as the oldest clients send it.',
  params: schemas.endpointParams,
  body: schemas.endpointRequest,
  isBodyOptional: true,
  isBodyReadByHandler: true,
  replies: ACCEPTED,
  refusals: ['NOT_FOUND', 'INPUT_REFUSED', 'IDEMPOTENCY_KEY_REUSED'],
})

const RERUN = route({
  access: 'client',
  scope: 'jobs:write',
  isNewWork: true,
  tag: 'jobs',
  id: 'rerunJob',
  summary: 'Run a job again, from any of its states',
  description:
    'Starts a new job of the caller with the input of this one, in the latest version of its blueprint; the old one stays as it is. With `from_state` it begins there and takes over what the states had written (`state_history`). Results that `resultOf` reads are taken over while the old job is open or in quarantine; a job that has ended no longer has them. The state must be one with a handler: neither an aggregator nor an end. Webhooks are not taken over.',
  params: schemas.jobParams,
  body: schemas.rerunJobRequest,
  isBodyOptional: true,
  replies: ACCEPTED,
  refusals: ['JOB_NOT_FOUND', 'BLUEPRINT_NOT_FOUND', 'INPUT_REFUSED', 'IDEMPOTENCY_KEY_REUSED', 'QUOTA_EXCEEDED'],
})

const CREATE_SCHEMA = jsonSchema(schemas.createJobRequest)

export function registerJobCreationRoutes(app: FastifyInstance, options: JobCreationOptions): void {
  const { engine, blueprints, quotas, apiVersion, webhookPolicy } = options
  const create = async (
    request: FastifyRequest,
    reply: FastifyReply,
    body: CreateJobRequest,
  ): Promise<CreateJobReply> => {
    const wanted = readCreate(body, originOf(request, quotas))
    checkWebhook(wanted, webhookPolicy)
    const { jobId } = await engine.createJob(wanted)
    void reply.code(202)
    return { status: 'accepted', job_id: shownJobId(jobId) }
  }

  app.post<{ Body: CreateJobRequest }>('/jobs', CREATE, (request, reply) => create(request, reply, request.body))

  app.post<{ Body: { jobs: readonly unknown[] } }>(
    '/jobs/batch',
    CREATE_BATCH,
    async (request, reply): Promise<CreateJobBatchReply> => {
      const origin = { ...originOf(request, quotas), idempotencyKey: undefined }
      const isValid = request.compileValidationSchema(CREATE_SCHEMA)
      const read = (job: unknown): ItemError | NewJob => {
        const problem = request.hasExactNumbers ? settleNumbers(CREATE_SCHEMA, job) : undefined
        if (problem !== undefined) return { error: problem, code: 'INVALID_REQUEST' }
        if (!isValid(job)) return problemIn(isValid.errors)
        const wanted = readCreate(job as CreateJobRequest, origin)
        try {
          checkWebhook(wanted, webhookPolicy)
        } catch (error) {
          return itemError(error)
        }
        return wanted
      }
      const results = await inSlices(request.body.jobs, (jobs) => createAll(engine, jobs.map(read)))
      void reply.code(202)
      return { results }
    },
  )

  app.post<{ Params: { job_id: string }; Body: RerunJobRequest | null | undefined }>(
    '/jobs/:job_id/rerun',
    RERUN,
    async (request, reply) => {
      const { params, body } = request
      void reply.code(202)
      return rerunJob(engine, callerOf(request), params.job_id, body ?? {}, originOf(request, quotas))
    },
  )

  // Blueprints come and go while the program runs, so their endpoints are looked up and not declared.
  app.post<{ Params: { '*': string } }>('/*', CREATE_BY_ENDPOINT, async (request, reply) => {
    const name = blueprints.byEndpoint(request.params['*'], apiVersion)
    if (name === undefined) {
      reply.callNotFound()
      return reply
    }
    const body = readEndpointBody(name, request.body)
    const isValid = request.compileValidationSchema(CREATE_SCHEMA)
    const problem = request.hasExactNumbers ? settleNumbers(CREATE_SCHEMA, body) : undefined
    if (problem !== undefined) throw new ImpresarioError('INVALID_REQUEST', problem)
    if (!isValid(body)) throw new ImpresarioError('INVALID_REQUEST', problemIn(isValid.errors).error)
    return create(request, reply, body)
  })
}

/** One answer for each, in its place. */
async function createAll(
  engine: Engine,
  wanted: readonly (ItemError | NewJob)[],
): Promise<readonly (CreateJobReply | ItemError)[]> {
  const created = await engine.createJobs(wanted.filter((one) => 'blueprint' in one))
  let next = 0
  return wanted.map((one): CreateJobReply | ItemError => {
    if (!('blueprint' in one)) return one
    const outcome = created[next]
    next += 1
    if (outcome !== undefined && 'jobId' in outcome) {
      return { status: 'accepted', job_id: shownJobId(outcome.jobId) }
    }
    return itemError(outcome?.error)
  })
}

function originOf(request: FastifyRequest, quotas: QuotaCalendar): Origin {
  const once = keyOf(request)
  const caller = callerOf(request)
  return {
    client: caller.client,
    quota: quotas.quotaOf(caller),
    tracing: tracingOf(request),
    tracingOfJob: request.callSpan && (() => request.callSpan?.contextForJob()),
    ...(once === undefined ? {} : { idempotencyKey: once.key }),
  }
}

function checkWebhook({ webhookUrl }: { readonly webhookUrl?: string | undefined }, policy: OutboundPolicy): void {
  if (webhookUrl !== undefined) mustBeWebhookUrl(webhookUrl, policy)
}

function problemIn(errors: readonly { instancePath?: string; message?: string }[] | null | undefined): ItemError {
  const [first] = errors ?? []
  const error = `body${first?.instancePath ?? ''} ${first?.message ?? 'is not valid'}`
  return { error, code: 'INVALID_REQUEST' }
}
