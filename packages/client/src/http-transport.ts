import {
  CLIENT_API_PREFIX,
  CLIENT_PATHS,
  HEADERS,
  isJsonObject,
  stringifyExact,
  type ApprovalRequest,
  type BulkRequest,
  type CancelJobRequest,
  type CreateJobRequest,
  type JobEventRequest,
  type JobListQuery,
  type JobQuery,
  type RetryJobRequest,
  type SentEventRequest,
} from '@impresario/protocol'
import type { Connection } from './connection.ts'
import { JobCreator } from './creator.ts'
import type { WireQuery } from './file-transport.ts'
import { HttpFiles } from './http-files.ts'
import { HttpRequests } from './http-requests.ts'
import type { ClientTransport, Waiting, WirePage } from './transport.ts'

const ACCOUNT = `${CLIENT_API_PREFIX}/account`
const CHANGES = `${CLIENT_API_PREFIX}/changes`
const RELOAD = `${CLIENT_API_PREFIX}/admin/reload`
const LOG_LEVEL = `${CLIENT_API_PREFIX}/admin/log-level`
const DELIVERIES = `${CLIENT_API_PREFIX}/webhooks/deliveries`
const ENDPOINTS = `${CLIENT_API_PREFIX}/webhooks/endpoints`

type Reply<K extends Exclude<keyof ClientTransport, 'files' | 'requests'>> = ReturnType<ClientTransport[K]>

/** Asks a server over HTTP. What may be sent twice without harm is sent again when no answer comes. */
export class HttpTransport implements ClientTransport {
  readonly files: HttpFiles
  readonly requests: HttpRequests
  readonly #connection: Connection
  readonly #creator: JobCreator

  constructor(connection: Connection) {
    this.#connection = connection
    this.#creator = new JobCreator(connection)
    this.files = new HttpFiles(connection)
    this.requests = new HttpRequests(connection)
  }

  createJob(request: CreateJobRequest): Promise<string> {
    return this.#creator.create(request)
  }

  async readJob(id: string, query: JobQuery, { holdMs, signal }: Waiting): Reply<'readJob'> {
    const call = { query: { ...query }, signal, repeatable: true, ...(holdMs === undefined ? {} : { holdMs }) }
    return believed((await this.#connection.call(CLIENT_PATHS.job(id), call)).body)
  }

  listJobs(query: JobListQuery): Reply<'listJobs'> {
    return this.#page(CLIENT_PATHS.jobs, { ...query })
  }

  async cancelJob(id: string, request: CancelJobRequest): Promise<void> {
    await this.#post(CLIENT_PATHS.cancel(id), request, true)
  }

  explainJob(id: string): Reply<'explainJob'> {
    return this.#get(CLIENT_PATHS.explain(id))
  }

  jobLog(id: string): Reply<'jobLog'> {
    return this.#get(CLIENT_PATHS.log(id))
  }

  jobHistory(id: string, query: WireQuery): Reply<'jobHistory'> {
    return this.#page(CLIENT_PATHS.history(id), query)
  }

  async sendEvent(id: string, event: JobEventRequest): Promise<void> {
    await this.#post(CLIENT_PATHS.jobEvents(id), event, true)
  }

  async publishEvent(event: SentEventRequest): Promise<void> {
    await this.#post(CLIENT_PATHS.sentEvents, event, true)
  }

  readApproval(id: string): Reply<'readApproval'> {
    return this.#get(CLIENT_PATHS.question(id))
  }

  /** One that names the question is answered as the first one was, and decides nothing else. */
  async decide(id: string, request: ApprovalRequest): Promise<void> {
    await this.#post(CLIENT_PATHS.approval(id), request, request.visit !== undefined)
  }

  listQuarantine(query: WireQuery): Reply<'listQuarantine'> {
    return this.#page(CLIENT_PATHS.quarantine, query)
  }

  readQuarantined(id: string): Reply<'readQuarantined'> {
    return this.#get(CLIENT_PATHS.quarantined(id))
  }

  async retryJob(id: string, request: RetryJobRequest): Promise<void> {
    await this.#post(CLIENT_PATHS.retry(id), request, false)
  }

  async discardJob(id: string): Promise<void> {
    await this.#post(CLIENT_PATHS.discard(id), {}, true)
  }

  retryMany(request: BulkRequest): Reply<'retryMany'> {
    return this.#post(CLIENT_PATHS.quarantineRetry, request, false)
  }

  discardMany(request: BulkRequest): Reply<'discardMany'> {
    return this.#post(CLIENT_PATHS.quarantineDiscard, request, false)
  }

  listEvents(query: WireQuery): Reply<'listEvents'> {
    return this.#page(CLIENT_PATHS.events, query)
  }

  durations(query: WireQuery): Reply<'durations'> {
    return this.#get(CLIENT_PATHS.durations, query)
  }

  countEvents(query: WireQuery): Reply<'countEvents'> {
    return this.#get(CLIENT_PATHS.eventCounts, query)
  }

  listWorkers(query: WireQuery): Reply<'listWorkers'> {
    return this.#page(CLIENT_PATHS.workers, query)
  }

  readWorker(id: string): Reply<'readWorker'> {
    return this.#get(CLIENT_PATHS.worker(id))
  }

  workerHistory(id: string, query: WireQuery): Reply<'workerHistory'> {
    return this.#page(CLIENT_PATHS.workerHistory(id), query)
  }

  listSkills(query: WireQuery): Reply<'listSkills'> {
    return this.#page(CLIENT_PATHS.catalogue, query)
  }

  listBlueprints(): Reply<'listBlueprints'> {
    return this.#get(CLIENT_PATHS.blueprints)
  }

  readBlueprint(name: string, version: number | undefined): Reply<'readBlueprint'> {
    return this.#get(CLIENT_PATHS.blueprint(name), { version })
  }

  async drawBlueprint(name: string, format: 'dot' | 'svg', version: number | undefined): Promise<string> {
    const call = { query: { format, version }, repeatable: true }
    return (await this.#connection.call(CLIENT_PATHS.graph(name), call)).text
  }

  async changes(lastId: string | undefined, signal: AbortSignal): Promise<AsyncIterable<string>> {
    const resumed = lastId === undefined ? {} : { 'last-event-id': lastId }
    const headers = { accept: 'text/event-stream', ...resumed }
    const { body } = await this.#connection.stream(CHANGES, { method: 'GET', headers, signal })
    return textOf(body)
  }

  listSchedules(): Reply<'listSchedules'> {
    return this.#get(CLIENT_PATHS.schedules)
  }

  readSchedule(name: string): Reply<'readSchedule'> {
    return this.#get(CLIENT_PATHS.schedule(name))
  }

  async runSchedule(name: string, key: string): Promise<string> {
    const path = CLIENT_PATHS.scheduleRun(name)
    return (await this.#postOnce<{ readonly job_id: string }>(path, undefined, key)).job_id
  }

  pauseSchedule(name: string): Reply<'pauseSchedule'> {
    return this.#post(CLIENT_PATHS.schedulePause(name), undefined, true)
  }

  resumeSchedule(name: string): Reply<'resumeSchedule'> {
    return this.#post(CLIENT_PATHS.scheduleResume(name), undefined, true)
  }

  listDeliveries(query: WireQuery): Reply<'listDeliveries'> {
    return this.#page(DELIVERIES, query)
  }

  readDelivery(id: string): Reply<'readDelivery'> {
    return this.#get(`${DELIVERIES}/${encodeURIComponent(id)}`)
  }

  redeliver(id: string): Reply<'redeliver'> {
    return this.#post(`${DELIVERIES}/${encodeURIComponent(id)}/redeliver`, undefined, false)
  }

  listEndpoints(query: WireQuery): Reply<'listEndpoints'> {
    return this.#page(ENDPOINTS, query)
  }

  readEndpoint(id: string): Reply<'readEndpoint'> {
    return this.#get(`${ENDPOINTS}/${encodeURIComponent(id)}`)
  }

  declareEndpoint(url: string): Reply<'declareEndpoint'> {
    return this.#post(ENDPOINTS, { url }, true)
  }

  enableEndpoint(id: string): Reply<'enableEndpoint'> {
    return this.#post(`${ENDPOINTS}/${encodeURIComponent(id)}/enable`, undefined, true)
  }

  readSecret(id: string): Reply<'readSecret'> {
    return this.#get(`${ENDPOINTS}/${encodeURIComponent(id)}/secret`)
  }

  rotateSecret(id: string, overlap: number | undefined, key: string): Reply<'rotateSecret'> {
    const request = overlap === undefined ? {} : { overlap }
    return this.#postOnce(`${ENDPOINTS}/${encodeURIComponent(id)}/rotate-secret`, request, key)
  }

  dashboard(): Reply<'dashboard'> {
    return this.#get(CLIENT_PATHS.dashboard)
  }

  account(): Reply<'account'> {
    return this.#get(ACCOUNT)
  }

  reload(): Reply<'reload'> {
    return this.#post(RELOAD, undefined, true)
  }

  async setLogLevel(level: string): Reply<'setLogLevel'> {
    const call = { method: 'PUT', repeatable: true, body: stringifyExact({ level }) } as const
    return believed((await this.#connection.call(LOG_LEVEL, call)).body)
  }

  async #get<T>(path: string, query: WireQuery = {}): Promise<T> {
    return believed((await this.#connection.call(path, { query, repeatable: true })).body)
  }

  async #post<T>(path: string, request: object | undefined, repeatable: boolean, headers = {}): Promise<T> {
    const body = request === undefined ? {} : { body: stringifyExact(request) }
    return believed((await this.#connection.call(path, { method: 'POST', repeatable, headers, ...body })).body)
  }

  /** Under a key by which the server knows a repetition. */
  #postOnce<T>(path: string, request: object | undefined, key: string): Promise<T> {
    return this.#post(path, request, true, { [HEADERS.idempotencyKey]: key })
  }

  /** Lists are arrays, but for the skills, which come by their names. */
  async #page<T>(path: string, query: WireQuery): Promise<WirePage<T>> {
    const { body, headers } = await this.#connection.call(path, { query, repeatable: true })
    const items: readonly T[] = believed(isJsonObject(body) ? Object.entries(body) : (body ?? []))
    const next = headers.get(HEADERS.nextCursor)
    return next === null || next === '' ? { items } : { items, next }
  }
}

/** The boundary at which a server's answer is believed to be what its route describes. */
function believed<T>(body: unknown): T {
  return body as T
}

/** Browsers cannot walk over a stream themselves. */
async function* textOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string, void, undefined> {
  const reader = body?.getReader()
  const decoder = new TextDecoder()
  try {
    for (;;) {
      const { value, done } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    await reader?.cancel().catch(() => undefined)
  }
}
