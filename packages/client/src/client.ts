import {
  HEADERS,
  CLIENT_PATHS,
  type BlueprintBody,
  type CatalogueEntry,
  type CreateJobRequest,
  type DashboardBody,
  type DataObject,
  type EventPayload,
  type EventType,
  type ListedJobBody as ListedJob,
  type WorkerBody,
  type WorkerHistoryBody,
  type TraceContext,
} from '@impresario/protocol'
import { ACCOUNT_PATH, Admin, type Account } from './account.ts'
import { Connection, type Fetch } from './connection.ts'
import { JobCreator } from './creator.ts'
import { Events } from './events.ts'
import type { Explanation } from './explanation.ts'
import { JobHandle, type Job } from './job.ts'
import { listing, type Listing, type PageQuery } from './listing.ts'
import { Quarantine } from './quarantine.ts'
import { Schedules } from './schedules.ts'
import { sentEvent, type KeyedSend } from './sent-event.ts'
import { Webhooks } from './webhooks.ts'

export interface ClientOptions {
  readonly url: string
  readonly token?: string | undefined
  readonly fetch?: Fetch
  /** Longest wait for an answer, without the time that a long poll is meant to last. */
  readonly timeoutMs?: number
  /**
   * Tries after the first when the server is out of reach or overloaded; 2 without it. With retries every job gets an
   * id of the SDK's making, so that a repeated request makes no second job: 0 turns both off.
   */
  readonly retries?: number
  /**
   * A server that is asked too much says how long to wait (`Retry-After`), and a retry waits as long; 60,000 without it.
   * When it asks for more than this, the call is refused at once, and `details.retry_after_s` of the error says for how long.
   */
  readonly retryAfterMsMax?: number
}

/** A blueprint, as far as a client needs it: its name, and types that exist only for the compiler. */
export interface BlueprintRef<Input = unknown, Output = unknown, State extends string = string> {
  readonly name: string
  readonly '~types'?: { readonly input: Input; readonly output: Output; readonly state: State }
}

type TypesOf<B> = B extends { readonly '~types'?: infer Types } ? NonNullable<Types> : never
type InputOf<B> = TypesOf<B> extends { readonly input: infer Input } ? Input : DataObject
type OutputOf<B> = TypesOf<B> extends { readonly output: infer Output } ? Output : unknown
type StateOf<B> = TypesOf<B> extends { readonly state: infer State extends string } ? State : string

export interface StartOptions {
  /** The same key gives the same job, however often it is asked for. */
  readonly idempotencyKey?: string
  readonly priority?: number
  readonly dispatchTimeoutMs?: number
  readonly resultTimeoutMs?: number
  readonly executionTimeoutMs?: number
  readonly metadata?: DataObject
  readonly webhookUrl?: string
  /** The trace that the job belongs to; its workers, children and webhooks get it (W3C Trace Context). */
  readonly tracingContext?: TraceContext
}

export interface ListQuery extends PageQuery {
  readonly status?: string | readonly string[] | undefined
  readonly blueprint?: string | undefined
  /** Only jobs whose id, blueprint, state, error or metadata has this in it, whatever the case of its letters. */
  readonly search?: string | undefined
  /** A date, or ISO 8601 with its offset, or Unix seconds. */
  readonly createdAfter?: Date | string | number | undefined
  readonly createdBefore?: Date | string | number | undefined
  /** Only jobs of this client. Admins may name any, others themselves. */
  readonly owner?: string | undefined
}

export interface WorkerHistoryQuery {
  /** Events per page. */
  readonly limit?: number | undefined
  /** Only events before this one: its `event_id`, or the cursor of the page before. */
  readonly before?: string | undefined
}

const TIMEOUT_MS = 30_000
/** As long as the usual window of a rate limit. */
const RETRY_AFTER_MS_MAX = 60_000

/** Starts, watches, steers and lists jobs, and looks at everything around them. */
export class Client {
  readonly quarantine: Quarantine
  readonly webhooks: Webhooks
  readonly schedules: Schedules
  readonly events: Events
  readonly admin: Admin
  readonly #connection: Connection
  readonly #creator: JobCreator

  constructor(options: ClientOptions) {
    const { url, token, fetch, timeoutMs = TIMEOUT_MS, retries = 2, retryAfterMsMax = RETRY_AFTER_MS_MAX } = options
    const connection = new Connection({ url, token, fetch, timeoutMs, retries, retryAfterMsMax })
    this.#connection = connection
    this.#creator = new JobCreator(connection)
    this.quarantine = new Quarantine(connection)
    this.webhooks = new Webhooks(connection)
    this.schedules = new Schedules(connection, (id) => this.job(id))
    this.events = new Events(connection)
    this.admin = new Admin(connection)
  }

  /** Resolves once the server has the job safe. Calls of the same moment travel together. */
  async start<const B extends BlueprintRef>(
    blueprint: B,
    input: NoInfer<InputOf<B>>,
    options?: StartOptions,
  ): Promise<JobHandle<OutputOf<B>, StateOf<B>>>
  async start(blueprint: string, input?: DataObject, options?: StartOptions): Promise<JobHandle>
  async start(blueprint: BlueprintRef | string, input?: unknown, options: StartOptions = {}): Promise<JobHandle> {
    const name = typeof blueprint === 'string' ? blueprint : blueprint.name
    return this.job(await this.#creator.create(requestOf(name, input, options)))
  }

  /** A job that exists already. Asks the server nothing. */
  job<B extends BlueprintRef = BlueprintRef>(id: string, _blueprint?: B): JobHandle<OutputOf<B>, StateOf<B>> {
    return new JobHandle(this.#connection, id)
  }

  /**
   * Newest first. What is too long for a list is left out of each job and named in its `omitted_fields`. With `fields` each
   * job has only these, however long they are.
   */
  list(query?: ListQuery): Listing<ListedJob>
  list<const Field extends keyof Job>(
    query: ListQuery & { readonly fields: readonly Field[] },
  ): Listing<Pick<Job, Field>>
  list(query: ListQuery & { readonly fields?: readonly string[] } = {}): Listing<ListedJob> {
    const { status, blueprint, search, createdAfter, createdBefore, owner, fields, limit, cursor } = query
    return listing(this.#connection, {
      path: CLIENT_PATHS.jobs,
      query: {
        status: typeof status === 'string' ? status : status?.join(','),
        blueprint,
        q: search,
        created_after: timeOf(createdAfter),
        created_before: timeOf(createdBefore),
        owner,
        fields: fields?.join(','),
        limit,
      },
      cursor,
      read: listedOf,
    })
  }

  /**
   * Sends an event to every job that waits for it with this key as its `match`, now or within a day. It reaches each job
   * once, also when it is sent again under the same `eventId`.
   */
  async send<E extends EventType>(event: E, payload: NoInfer<EventPayload<E>>, options: KeyedSend): Promise<void>
  async send(topic: string, payload: DataObject, options: KeyedSend): Promise<void>
  async send(event: EventType | string, payload: object, { key, eventId }: KeyedSend): Promise<void> {
    const body = sentEvent(event, payload, eventId, key)
    await this.#connection.call(CLIENT_PATHS.sentEvents, { method: 'POST', body, repeatable: true })
  }

  async cancel(id: string, reason?: string): Promise<void> {
    await this.job(id).cancel(reason)
  }

  /** Answers whatever the job asks at this moment. `job(id).approve` answers only the question that was seen. */
  async approve(id: string, decision: string, comment?: string): Promise<void> {
    const body = JSON.stringify(comment === undefined ? { decision } : { decision, comment })
    await this.#connection.call(CLIENT_PATHS.approval(id), { method: 'POST', body, repeatable: false })
  }

  /** Those that are live. */
  async workers(): Promise<readonly WorkerBody[]> {
    const read = (body: unknown): WorkerBody => body as WorkerBody
    return listing(this.#connection, { path: CLIENT_PATHS.workers, query: {}, cursor: undefined, read }).all()
  }

  async worker(id: string): Promise<WorkerBody> {
    return this.#get(CLIENT_PATHS.worker(id))
  }

  /** What has happened to a worker, newest first: also to one that is no longer here. */
  workerHistory(id: string, query: WorkerHistoryQuery = {}): Listing<WorkerHistoryBody> {
    return listing(this.#connection, {
      path: CLIENT_PATHS.workerHistory(id),
      query: { limit: query.limit },
      cursor: query.before,
      cursorName: 'before',
      read: workerHistoryOf,
    })
  }

  /** What the live workers can do, by the name of the skill. */
  async catalogue(): Promise<Readonly<Record<string, CatalogueEntry>>> {
    // A skill may be named like a property that every object has.
    const skills = Object.create(null) as Record<string, CatalogueEntry>
    let cursor: string | undefined
    do {
      const answer = await this.#connection.call(CLIENT_PATHS.catalogue, { query: { cursor }, repeatable: true })
      Object.assign(skills, catalogueOf(answer.body))
      cursor = answer.headers.get(HEADERS.nextCursor) ?? undefined
    } while (cursor !== undefined)
    return skills
  }

  /** All of them, in all their versions. */
  async blueprints(): Promise<readonly BlueprintBody[]> {
    return this.#get(CLIENT_PATHS.blueprints)
  }

  /** Its states and where they lead; the latest version unless another is named. */
  async blueprint(name: string, version?: number): Promise<BlueprintBody> {
    return this.#get(CLIENT_PATHS.blueprint(name), { version })
  }

  /** How many workers and jobs there are, by status. */
  async dashboard(): Promise<DashboardBody> {
    return this.#get(CLIENT_PATHS.dashboard)
  }

  /** Whom the token belongs to, what is left of its quota, and its limits. */
  async account(): Promise<Account> {
    return this.#get(ACCOUNT_PATH)
  }

  /** Why the job is where it is, and what it waits for. */
  async explain(id: string): Promise<Explanation> {
    return this.job(id).explain()
  }

  /** The blueprint drawn: Graphviz source or a picture. */
  async graph(name: string, format: 'dot' | 'svg' = 'dot', version?: number): Promise<string> {
    const call = { query: { format, version }, repeatable: true }
    const answer = await this.#connection.call(CLIENT_PATHS.graph(name), call)
    return answer.text
  }

  /** The boundary at which a server's answer is believed. */
  async #get<T>(path: string, query: Readonly<Record<string, number | undefined>> = {}): Promise<T> {
    const answer = await this.#connection.call(path, { query, repeatable: true })
    return answer.body as T
  }
}

export function createClient(options: ClientOptions): Client {
  return new Client(options)
}

/** The boundary at which a server's body is believed to be a job of a list. */
function listedOf(body: unknown): ListedJob {
  return body as ListedJob
}

function catalogueOf(body: unknown): Readonly<Record<string, CatalogueEntry>> {
  return body as Readonly<Record<string, CatalogueEntry>>
}

function workerHistoryOf(body: unknown): WorkerHistoryBody {
  return body as WorkerHistoryBody
}

function timeOf(time: Date | string | number | undefined): string | undefined {
  return time instanceof Date ? time.toISOString() : time?.toString()
}

function requestOf(blueprint: string, input: unknown, options: StartOptions): CreateJobRequest {
  const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1_000)
  const fields = {
    initial_data: input,
    idempotency_key: options.idempotencyKey,
    priority: options.priority,
    dispatch_timeout: seconds(options.dispatchTimeoutMs),
    result_timeout: seconds(options.resultTimeoutMs),
    execution_timeout: seconds(options.executionTimeoutMs),
    metadata: options.metadata,
    webhook_url: options.webhookUrl,
    tracing_context: options.tracingContext,
  }
  return { blueprint, ...jsonOf(fields) }
}

/** The boundary at which the compiler's checks of the input end: from here on it is JSON for the server to judge. */
function jsonOf(fields: Readonly<Record<string, unknown>>): Omit<CreateJobRequest, 'blueprint'> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
