import { shownJobId, storedCopy } from '@impresario/core'
import type { ClientInfo, Log } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import type { ClientTransport, Waiting, wire, WirePage, WireQuery } from '@impresario/client'
import {
  ImpresarioError,
  isImpresarioError,
  isJsonObject,
  LIMITS,
  parseExact,
  plainCopy,
  readJson,
  stringifyExact,
} from '@impresario/protocol'
import type {
  ApprovalRequest,
  BulkRequest,
  CancelJobRequest,
  CreateJobRequest,
  JobEventRequest,
  JobListQuery,
  JobQuery,
  JsonObject,
  RetryJobRequest,
  SentEventRequest,
} from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { endpointId, mustBeWebhookUrl } from '@impresario/webhooks'
import type { OutboundPolicy, Webhooks } from '@impresario/webhooks'
import type { z } from 'zod'
import { isAdmin, isAllowed } from '../http/access.ts'
import type { Caller, ClientRole } from '../http/access.ts'
import { decodeCursor, encodeCursor } from '../http/page.ts'
import { readQuery } from '../http/route.ts'
import { accountBody } from './account-routes.ts'
import type { AccountRoutesOptions } from './account-routes.ts'
import { logLevelRequest, setLogLevel } from './admin-routes.ts'
import type { ReloadScope } from './admin-routes.ts'
import * as approvals from './approval-operations.ts'
import type { ApprovalParts } from './approval-operations.ts'
import * as catalogue from './catalogue-operations.ts'
import type { CatalogueParts } from './catalogue-operations.ts'
import type { ChangeStreams } from './change-streams.ts'
import * as history from './history-operations.ts'
import { durations } from './duration-operations.ts'
import type { HistoryParts, JobLogParts } from './history-operations.ts'
import { LocalFiles } from './local-files.ts'
import type { LocalFileParts } from './local-files.ts'
import { LocalRequests } from './local-requests.ts'
import type { LocalRequestParts } from './local-requests.ts'
import { ownerFilter, storedJobId, visibleJob } from './job-access.ts'
import * as jobs from './job-operations.ts'
import type { WrittenPage } from './job-operations.ts'
import * as quarantine from './quarantine-operations.ts'
import type { QuarantineParts } from './quarantine-operations.ts'
import * as schedules from './schedule-operations.ts'
import { blueprintBody, readCreate } from './wire-job.ts'
import * as webhooks from './wire-webhook.ts'

/** In whose name a client of this process asks. */
export interface LocalClientOptions extends Partial<ClientInfo> {
  /** `client` without it: it sees and commands the jobs of its own client. An admin sees everybody's. */
  readonly role?: ClientRole
}

/** What a client of this process needs. */
export interface LocalParts
  extends
    ApprovalParts,
    QuarantineParts,
    CatalogueParts,
    Omit<HistoryParts, 'history'>,
    AccountRoutesOptions,
    LocalFileParts,
    LocalRequestParts {
  readonly history: HistoryParts['history']
  readonly jobLines: JobLogParts['jobLines']
  readonly changeStreams: ChangeStreams
  readonly log: Log
  readonly webhooks: Webhooks
  readonly webhookPolicy: OutboundPolicy
  readonly reload: () => Promise<Omit<wire.ReloadedBody, 'status' | 'scope'> & { readonly scope: ReloadScope }>
}

/** For a client of this process. Permissions and refusals are as over HTTP; there is no quota. */
export function localClientTransport(
  parts: LocalParts,
  { role = 'client', id = 'default', ...info }: LocalClientOptions = {},
): ClientTransport {
  return new LocalTransport(parts, { client: { ...info, id }, role })
}

const NEVER = new AbortController().signal

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

type Reply<K extends Exclude<keyof ClientTransport, 'files' | 'requests'>> = ReturnType<ClientTransport[K]>

class LocalTransport implements ClientTransport {
  readonly files: LocalFiles
  readonly requests: LocalRequests
  readonly #parts: LocalParts
  readonly #caller: Caller

  constructor(parts: LocalParts, caller: Caller) {
    this.#parts = parts
    this.#caller = caller
    this.files = new LocalFiles(parts, (needs) => this.#as(needs))
    this.requests = new LocalRequests(parts, (needs) => this.#as(needs))
  }

  async changes(lastId: string | undefined, signal: AbortSignal): Promise<AsyncIterable<string>> {
    const caller = this.#as('viewer')
    const { owner } = ownerFilter(caller, undefined)
    const isAdmitted = (): Promise<boolean> => Promise.resolve(true)
    const stream = this.#parts.changeStreams.open({ clientId: caller.client.id, owner, lastId, isAdmitted })
    signal.addEventListener('abort', () => stream.finish(), { once: true })
    return stream.body
  }

  async createJob({ initial_data: data, metadata, ...rest }: CreateJobRequest): Promise<string> {
    const { engine, webhookPolicy } = this.#parts
    const caller = this.#as('client')
    // Most starts name a blueprint and nothing else.
    const checked = Object.keys(rest).length > 1 ? readRequest(schemas.createJobRequest, rest) : rest
    const request: Mutable<CreateJobRequest> = {
      ...believed<CreateJobRequest>(checked),
      initial_data: asData('The initial data', data ?? {}),
    }
    if (metadata !== undefined) request.metadata = asData('The metadata', metadata)
    const wanted = readCreate(request, { client: caller.client })
    if (wanted.webhookUrl !== undefined) mustBeWebhookUrl(wanted.webhookUrl, webhookPolicy)
    return shownJobId((await engine.createJob(wanted)).jobId)
  }

  async readJob(id: string, query: JobQuery, { signal = NEVER }: Waiting): Reply<'readJob'> {
    signal.throwIfAborted()
    const hold = { signal, end: (): void => undefined }
    const body = await jobs.readJob(this.#parts.engine, this.#as('viewer'), { ...query, id }, () => hold)
    signal.throwIfAborted()
    return seen(body)
  }

  async listJobs(query: JobListQuery): Reply<'listJobs'> {
    const wanted = readQuery(schemas.jobListQuery, query)
    return pageOf(await jobs.listJobs(this.#parts.engine, this.#as('viewer'), wanted))
  }

  async cancelJob(id: string, request: CancelJobRequest): Promise<void> {
    await jobs.cancelJob(this.#parts, this.#as('client'), id, request)
  }

  async explainJob(id: string): Reply<'explainJob'> {
    return seen(await jobs.explainJob(this.#parts.engine, this.#as('viewer'), id))
  }

  async jobLog(id: string): Reply<'jobLog'> {
    return history.jobLog(this.#parts, this.#as('viewer'), id)
  }

  async jobHistory(id: string, query: WireQuery): Reply<'jobHistory'> {
    const wanted = readQuery(schemas.historyQuery, given(query))
    return pageOf(await history.jobHistory(this.#parts, this.#as('viewer'), id, wanted))
  }

  async sendEvent(id: string, request: JobEventRequest): Promise<void> {
    const { engine } = this.#parts
    const { value: job } = await visibleJob(engine, this.#as('client'), id)
    await engine.sendEvent(job.id, eventOf(request))
  }

  async publishEvent(request: SentEventRequest): Promise<void> {
    const caller = this.#as('client')
    const { topic, payload, eventId } = eventOf(request)
    const said = { topic, payload: storedCopy(payload), key: request.key, idempotencyKey: eventId }
    await this.#parts.automations.events.publish(said, { id: caller.client.id, isAdmin: isAdmin(caller) })
  }

  async readApproval(id: string): Reply<'readApproval'> {
    return seen(await approvals.readApproval(this.#parts, this.#as('client'), id, this.#parts.base()))
  }

  async decide(id: string, request: ApprovalRequest): Promise<void> {
    const wanted = believed<ApprovalRequest>(readRequest(schemas.approvalRequest, request))
    await approvals.decideApproval(this.#parts.engine, this.#as('client'), id, wanted)
  }

  async listQuarantine(query: WireQuery): Reply<'listQuarantine'> {
    const wanted = readQuery(schemas.quarantineQuery, given(query))
    return pageOf(await quarantine.listQuarantine(this.#parts, this.#as('viewer'), wanted))
  }

  async readQuarantined(id: string): Reply<'readQuarantined'> {
    return seen(await quarantine.readQuarantined(this.#parts, this.#as('viewer'), id))
  }

  async retryJob(id: string, { initial_data: data, state_history: kept }: RetryJobRequest): Promise<void> {
    const edit = {
      ...(data === undefined ? {} : { initial_data: asData('The initial data', data) }),
      ...(kept === undefined ? {} : { state_history: asData('The state history', kept) }),
    }
    await quarantine.retryJob(this.#parts, this.#as('client'), id, edit)
  }

  async discardJob(id: string): Promise<void> {
    await quarantine.discardJob(this.#parts, this.#as('client'), id)
  }

  async retryMany(request: BulkRequest): Reply<'retryMany'> {
    const wanted = believed<BulkRequest>(readRequest(schemas.bulkRequest, request))
    return quarantine.retryMany(this.#parts, this.#as('client'), wanted)
  }

  async discardMany(request: BulkRequest): Reply<'discardMany'> {
    const wanted = believed<BulkRequest>(readRequest(schemas.bulkRequest, request))
    return quarantine.discardMany(this.#parts, this.#as('client'), wanted)
  }

  async listEvents(query: WireQuery): Reply<'listEvents'> {
    const wanted = readQuery(schemas.eventListQuery, given(query))
    return pageOf(await history.listEvents(this.#parts, this.#as('viewer'), wanted))
  }

  async durations(query: WireQuery): Reply<'durations'> {
    return durations(this.#parts, this.#as('viewer'), readQuery(schemas.durationQuery, given(query)))
  }

  async countEvents(query: WireQuery): Reply<'countEvents'> {
    return history.countEvents(this.#parts, this.#as('viewer'), readQuery(schemas.eventCountQuery, given(query)))
  }

  async listWorkers(query: WireQuery): Reply<'listWorkers'> {
    return pageOf(catalogue.listWorkers(this.#parts.engine, readQuery(schemas.workerListQuery, given(query))))
  }

  async readWorker(id: string): Reply<'readWorker'> {
    return seen(catalogue.readWorker(this.#parts.engine, id))
  }

  async workerHistory(id: string, query: WireQuery): Reply<'workerHistory'> {
    this.#as('client')
    return pageOf(await history.workerHistory(this.#parts, id, readQuery(schemas.workerHistoryQuery, given(query))))
  }

  async listSkills(query: WireQuery): Reply<'listSkills'> {
    const { page, next } = await catalogue.listSkills(
      this.#parts.engine,
      readQuery(schemas.catalogueQuery, given(query)),
    )
    const items = believed<Awaited<Reply<'listSkills'>>['items']>(Object.entries(parsed(page.text('object'))))
    return next === undefined ? { items } : { items, next }
  }

  async listBlueprints(): Reply<'listBlueprints'> {
    return believed(catalogue.listBlueprints(this.#parts.blueprints))
  }

  async readBlueprint(name: string, version: number | undefined): Reply<'readBlueprint'> {
    return believed(blueprintBody(catalogue.findBlueprint(this.#parts.blueprints, name, version)))
  }

  async drawBlueprint(name: string, format: 'dot' | 'svg', version: number | undefined): Promise<string> {
    return catalogue.drawBlueprint(this.#parts.blueprints, name, format, version)
  }

  async listSchedules(): Reply<'listSchedules'> {
    return believed(await schedules.listSchedules(this.#parts.engine, this.#as('viewer')))
  }

  async readSchedule(name: string): Reply<'readSchedule'> {
    return believed(await schedules.readSchedule(this.#parts.engine, this.#as('viewer'), name))
  }

  async runSchedule(name: string, key: string): Promise<string> {
    const { client } = this.#as('admin')
    return schedules.runSchedule(this.#parts.engine, name, { clientId: client.id, key })
  }

  async pauseSchedule(name: string): Reply<'pauseSchedule'> {
    return believed(await schedules.pauseSchedule(this.#parts.engine, this.#as('admin'), name))
  }

  async resumeSchedule(name: string): Reply<'resumeSchedule'> {
    return believed(await schedules.resumeSchedule(this.#parts.engine, this.#as('admin'), name))
  }

  async listDeliveries(query: WireQuery): Reply<'listDeliveries'> {
    const caller = this.#as('viewer')
    const { limit, cursor, owner, job_id: jobId, ...rest } = readQuery(webhooks.deliveryQuery, given(query))
    const { items, next } = await this.#parts.webhooks.listDeliveries({
      ...rest,
      owner: ownerFilter(caller, owner).owner,
      jobId: jobId === undefined ? undefined : await storedJobId(this.#parts.engine, caller, jobId),
      before: cursor === undefined ? undefined : decodeCursor(cursor),
      limit: limit ?? LIMITS.pageSizeDefault,
    })
    const found = items.map(webhooks.wireDelivery)
    return next === undefined ? { items: found } : { items: found, next: encodeCursor(next) }
  }

  async readDelivery(id: string): Reply<'readDelivery'> {
    return seen(webhooks.wholeDelivery(await this.#parts.webhooks.delivery(this.#owner('viewer'), id)))
  }

  async redeliver(id: string): Reply<'redeliver'> {
    return seen(webhooks.wholeDelivery(await this.#parts.webhooks.redeliver(this.#owner('client'), id)))
  }

  async listEndpoints(query: WireQuery): Reply<'listEndpoints'> {
    const caller = this.#as('viewer')
    const { limit, cursor, owner } = readQuery(webhooks.endpointListQuery, given(query))
    const { items, next } = await this.#parts.webhooks.listEndpoints(
      ownerFilter(caller, owner).owner,
      cursor === undefined ? undefined : decodeCursor(cursor),
      limit ?? LIMITS.pageSizeDefault,
    )
    const now = this.#parts.clock.now()
    const found = items.map((one) => webhooks.wireEndpoint(endpointId(one.clientId, one.address), one, now))
    return next === undefined ? { items: found } : { items: found, next: encodeCursor(next) }
  }

  async readEndpoint(id: string): Reply<'readEndpoint'> {
    const { webhooks: service, clock } = this.#parts
    return webhooks.wireEndpoint(id, await service.endpoint(this.#owner('viewer'), id), clock.now())
  }

  async declareEndpoint(url: string): Reply<'declareEndpoint'> {
    const { webhooks: service, clock } = this.#parts
    const endpoint = await service.declareEndpoint(this.#as('client').client.id, url)
    return webhooks.wireEndpoint(endpointId(endpoint.clientId, endpoint.address), endpoint, clock.now())
  }

  async enableEndpoint(id: string): Reply<'enableEndpoint'> {
    const { webhooks: service, clock } = this.#parts
    const { endpoint, released } = await service.enable(this.#owner('client'), id)
    return { ...webhooks.wireEndpoint(id, endpoint, clock.now()), released }
  }

  async readSecret(id: string): Reply<'readSecret'> {
    return webhooks.wireSecret(id, await this.#parts.webhooks.secret(this.#owner('client'), id))
  }

  async rotateSecret(id: string, overlap: number | undefined, key: string): Reply<'rotateSecret'> {
    const request = readRequest(webhooks.rotateSecretRequest, { overlap })
    const overlapMs = typeof request.overlap === 'number' ? request.overlap * 1_000 : undefined
    const once = { clientId: this.#caller.client.id, key }
    return webhooks.wireSecret(id, await this.#parts.webhooks.rotateSecret(this.#owner('client'), id, overlapMs, once))
  }

  async dashboard(): Reply<'dashboard'> {
    return catalogue.dashboard(this.#parts, this.#as('viewer'))
  }

  async account(): Reply<'account'> {
    return accountBody(this.#parts, this.#as('viewer'))
  }

  async reload(): Reply<'reload'> {
    this.#as('admin')
    return { status: 'configs_reloaded', ...(await this.#parts.reload()) }
  }

  async setLogLevel(level: string): Reply<'setLogLevel'> {
    this.#as('admin')
    return setLogLevel(this.#parts.log, readRequest(logLevelRequest, { level }).level)
  }

  /** The caller, if its role is high enough. */
  #as(needs: ClientRole): Caller {
    const caller = this.#caller
    if (isAllowed(caller.role, needs)) return caller
    throw new ImpresarioError('FORBIDDEN', `This needs the role ${needs}; the client has the role ${caller.role}.`)
  }

  /** Whose records it may see by their id: an admin everybody's. */
  #owner(needs: ClientRole): string | undefined {
    const caller = this.#as(needs)
    return isAdmin(caller) ? undefined : caller.client.id
  }
}

/** What was asked for, checked as a request over HTTP is. */
function readRequest<S extends z.ZodType>(schema: S, request: unknown): z.output<S> {
  const read = schema.safeParse(request)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const place = issue?.path.join('.') ?? ''
  throw new ImpresarioError('INVALID_REQUEST', `"${place}" in the request: ${issue?.message ?? 'is not valid'}.`)
}

/** The engine checks it against the blueprint's schema; here it only has to be an object that JSON can hold. */
function asData(what: string, input: unknown): JsonObject {
  let kept: unknown
  try {
    kept = plainCopy(input) ?? readJson(stringifyExact(input))
  } catch (cause) {
    if (isImpresarioError(cause)) throw cause
    throw new ImpresarioError('INPUT_REFUSED', `${what} cannot be written as JSON: ${String(cause)}`, { cause })
  }
  if (isJsonObject(kept)) return kept
  throw new ImpresarioError('INPUT_REFUSED', `${what} must be an object.`)
}

function eventOf({ topic, payload, event_id: eventId }: JobEventRequest): Parameters<Engine['sendEvent']>[1] {
  return { topic, payload: asData('The payload', payload ?? {}), eventId: eventId ?? undefined }
}

function given(query: WireQuery): WireQuery {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined))
}

/** A page as a client elsewhere would read it. */
function pageOf<T>({ page, next }: WrittenPage): WirePage<T> {
  const items = believed<readonly T[]>(parseExact(page.text()))
  return next === undefined ? { items } : { items, next }
}

function parsed(text: string): object {
  return believed(parseExact(text))
}

/** The body with its data as users see them: records keep numbers of many digits as texts. Nothing is shared with them. */
function seen<T>(body: unknown): T {
  return believed(storedCopy(believed<JsonObject>(body)))
}

/** The boundary at which a body that was made here has the type of its counterpart on the wire. */
function believed<T>(body: unknown): T {
  return body as T
}
