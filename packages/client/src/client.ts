import { traceContextOf } from '@impresario/protocol'
import type { CreateJobRequest, DataObject, EventPayload, EventType, TraceContext } from '@impresario/protocol'
import { Admin } from './admin.ts'
import { Agents, Audit, Tools } from './agents.ts'
import { Automations } from './automations.ts'
import { Runs } from './runs.ts'
import { ask } from './asking.ts'
import { Approvals, type ApproveOptions } from './approvals.ts'
import { changesOf } from './changes.ts'
import type { Change, ChangesOptions } from './changes.ts'
import { Connection, given, type Fetch } from './connection.ts'
import { Events, timeText } from './events.ts'
import { HttpTransport } from './http-transport.ts'
import { JobHandle, jsonOf, type WaitOptions } from './job.ts'
import { listing, type Listing, type PageQuery } from './listing.ts'
import { Quarantine } from './quarantine.ts'
import { SavedViews } from './saved-views.ts'
import { Schedules } from './schedules.ts'
import { sentEvent, type KeyedSend } from './sent-event.ts'
import type { ClientTransport } from './transport.ts'
import type {
  Account,
  BlueprintInfo,
  CatalogueEntry,
  Dashboard,
  Explanation,
  Job,
  ListedJob,
  TaskQueue,
  WorkerEvent,
  WorkerExplanation,
  WorkerInfo,
} from './views.ts'
import { Webhooks } from './webhooks.ts'
import { fromWire, wireName } from './wire-case.ts'
import type * as wire from './wire-views.ts'

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
  /**
   * The trace that is going on where a job is started, for jobs that name none themselves. With OpenTelemetry: what
   * `propagation.inject` writes for the active context.
   */
  readonly traceContext?: () => Partial<TraceContext> | undefined
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
/** One signature for all ways to start: of several, the compiler would report the one that was not meant. */
type StartArguments<B> = B extends string
  ? [input?: DataObject, options?: StartOptions]
  : [input: NoInfer<InputOf<B>>, options?: StartOptions]
type NameOf<B> = B extends { readonly name: infer Name } ? Name : never

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
  /** Which come first: `newest` without it. `oldest` goes without `search`. */
  readonly order?: 'newest' | 'oldest' | undefined
  /** A date, or ISO 8601 with its offset, or Unix seconds. */
  readonly createdAfter?: Date | string | number | undefined
  readonly createdBefore?: Date | string | number | undefined
  /** Only jobs of this client. Admins may name any, others themselves. */
  readonly owner?: string | undefined
}

export interface WorkerHistoryQuery {
  /** Events per page. */
  readonly limit?: number | undefined
  /** Only events before this one: its `eventId`, or the cursor of the page before. */
  readonly before?: string | undefined
}

const TIMEOUT_MS = 30_000
/** As long as the usual window of a rate limit. */
const RETRY_AFTER_MS_MAX = 60_000

/**
 * Starts, watches, steers and lists jobs, and looks at everything around them. The same over HTTP (`createClient`) and in
 * the orchestrator's own process (`server.client()`, `orchestrator.client()`).
 */
export class Client {
  readonly approvals: Approvals
  readonly quarantine: Quarantine
  readonly webhooks: Webhooks
  readonly schedules: Schedules
  readonly events: Events
  readonly automations: Automations
  readonly runs: Runs
  readonly agents: Agents
  readonly tools: Tools
  readonly audit: Audit
  /** Filters of the job list under names. */
  readonly views: SavedViews
  readonly admin: Admin
  readonly #transport: ClientTransport
  readonly #traceContext: ClientOptions['traceContext']

  constructor(transport: ClientTransport, options: Pick<ClientOptions, 'traceContext'> = {}) {
    this.#transport = transport
    this.#traceContext = options.traceContext
    this.approvals = new Approvals(transport)
    this.quarantine = new Quarantine(transport)
    this.webhooks = new Webhooks(transport)
    this.schedules = new Schedules(transport, (id) => this.job(id))
    this.events = new Events(transport)
    const { requests } = transport
    this.automations = new Automations(requests)
    this.runs = new Runs(requests)
    this.agents = new Agents(requests)
    this.tools = new Tools(requests)
    this.audit = new Audit(requests)
    this.views = new SavedViews(requests)
    this.admin = new Admin(transport)
  }

  /**
   * Resolves once the job is safe. With the blueprint, or with its name and its type (`start<typeof publish>('publish', …)`,
   * which needs no more than a type-only import), input and result are checked by the compiler.
   */
  async start<const B extends BlueprintRef | string>(
    blueprint: B | NameOf<B>,
    ...[input, options = {}]: StartArguments<B>
  ): Promise<JobHandle<OutputOf<B>, StateOf<B>>> {
    const name = typeof blueprint === 'string' ? blueprint : blueprint.name
    const tracingContext = options.tracingContext ?? traceContextOf(this.#traceContext?.() ?? {})
    const traced = tracingContext === undefined ? options : { ...options, tracingContext }
    return new JobHandle(this.#transport, await this.#transport.createJob(requestOf(name, input, traced)))
  }

  /** A job that exists already. Asks nothing. */
  job<B extends BlueprintRef = BlueprintRef>(id: string, _blueprint?: B): JobHandle<OutputOf<B>, StateOf<B>> {
    return new JobHandle(this.#transport, id)
  }

  /** The job as it is now. */
  async get<B extends BlueprintRef = BlueprintRef>(id: string, blueprint?: B): Promise<Job<OutputOf<B>, StateOf<B>>> {
    return this.job(id, blueprint).status()
  }

  /** Resolves when the job has ended, however it did, or stands aside in quarantine. */
  async wait(id: string, options?: WaitOptions): Promise<Job> {
    return this.job(id).wait(options)
  }

  /** The result once the job has finished; rejects with `JobFailedError` when it ends in any other way. */
  async result(id: string, options?: WaitOptions): Promise<unknown> {
    return this.job(id).result(options)
  }

  /** The job as it is now and again after every change, up to its end. */
  watch(id: string, options?: { readonly signal?: AbortSignal }): AsyncGenerator<Job, void, undefined> {
    return this.job(id).watch(options)
  }

  /**
   * Newest first, unless `order` says otherwise. What is too long for a list is left out of each job and named in its `omittedFields`. With `fields` each
   * job has only these, however long they are.
   */
  list(query?: ListQuery): Listing<ListedJob>
  list<const Field extends keyof Job>(
    query: ListQuery & { readonly fields: readonly Field[] },
  ): Listing<Pick<Job, Field>>
  list(query: ListQuery & { readonly fields?: readonly string[] } = {}): Listing<ListedJob> {
    const { status, search, createdAfter, createdBefore, fields, cursor: first, ...rest } = query
    const wanted = {
      ...rest,
      status: typeof status === 'string' ? status : status?.join(','),
      q: search,
      created_after: timeText(createdAfter),
      created_before: timeText(createdBefore),
      fields: fields?.map(wireName).join(','),
    }
    return listing((cursor) => this.#transport.listJobs(given({ ...wanted, cursor })), fromWire, first)
  }

  /**
   * Sends an event to every job that waits for it with this key as its `match`, now or within a day. It reaches each job
   * once, also when it is sent again under the same `eventId`.
   */
  async send<E extends EventType>(event: E, payload: NoInfer<EventPayload<E>>, options: KeyedSend): Promise<void>
  async send(topic: string, payload: DataObject, options: KeyedSend): Promise<void>
  async send(event: EventType | string, payload: object, { key, eventId }: KeyedSend): Promise<void> {
    await this.#transport.publishEvent({ ...sentEvent(event, payload, eventId), key })
  }

  /**
   * What changes, as it changes: jobs that this client may see, and workers. When the stream is cut it is opened again, from
   * where it ended. Ends with the signal, or when it is left; throws when the server refuses it.
   */
  changes(options: ChangesOptions = {}): AsyncGenerator<Change, void, undefined> {
    return changesOf(this.#transport, options)
  }

  async cancel(id: string, reason?: string): Promise<void> {
    await this.job(id).cancel(reason)
  }

  /** Answers whatever the job asks at this moment, or the question that `visit` names. */
  async approve(id: string, decision: string, options: ApproveOptions = {}): Promise<void> {
    await this.approvals.decide(id, decision, options)
  }

  /** Those that are live. */
  async workers(): Promise<readonly WorkerInfo[]> {
    return listing((cursor) => this.#transport.listWorkers({ cursor }), fromWire).all()
  }

  async worker(id: string): Promise<WorkerInfo> {
    return fromWire(await this.#transport.readWorker(id))
  }

  /** Why a worker gets tasks, or gets none. */
  async explainWorker(id: string): Promise<WorkerExplanation> {
    const path = ['workers', id, 'explain']
    return ask<wire.WorkerExplanationBody>(this.#transport.requests, { method: 'GET', path })
  }

  /** Tasks of all clients that wait, by kind of work. For admins. */
  async queues(): Promise<readonly TaskQueue[]> {
    return ask<readonly wire.QueueBody[]>(this.#transport.requests, { method: 'GET', path: ['queues'] })
  }

  /** What has happened to a worker, newest first: also to one that is no longer here. */
  workerHistory(id: string, { limit, before: first }: WorkerHistoryQuery = {}): Listing<WorkerEvent> {
    return listing((before) => this.#transport.workerHistory(id, { limit, before }), fromWire, first)
  }

  /** What the live workers can do, by the name of the skill. */
  async catalogue(): Promise<Readonly<Record<string, CatalogueEntry>>> {
    // A skill may be named like a property that every object has.
    const skills = Object.create(null) as Record<string, CatalogueEntry>
    const all = listing(
      (cursor) => this.#transport.listSkills({ cursor }),
      (skill) => skill,
    )
    for await (const [name, skill] of all) skills[name] = fromWire(skill)
    return skills
  }

  /** All of them, in all their versions. */
  async blueprints(): Promise<readonly BlueprintInfo[]> {
    return fromWire(await this.#transport.listBlueprints())
  }

  /** Its states and where they lead; the latest version unless another is named. */
  async blueprint(name: string, version?: number): Promise<BlueprintInfo> {
    return fromWire(await this.#transport.readBlueprint(name, version))
  }

  /** How many workers and jobs there are, by status. */
  async dashboard(): Promise<Dashboard> {
    return fromWire(await this.#transport.dashboard())
  }

  /** Whom the client is, what is left of its quota, and its limits. */
  async account(): Promise<Account> {
    return fromWire(await this.#transport.account())
  }

  /** Why the job is where it is, and what it waits for. */
  async explain(id: string): Promise<Explanation> {
    return this.job(id).explain()
  }

  /** The blueprint drawn: Graphviz source or a picture. */
  async graph(name: string, format: 'dot' | 'svg' = 'dot', version?: number): Promise<string> {
    return this.#transport.drawBlueprint(name, format, version)
  }
}

/** A client of a server elsewhere. Jobs that are started in the same moment travel together. */
export function createClient(options: ClientOptions): Client {
  const { url, token, fetch, timeoutMs = TIMEOUT_MS, retries = 2, retryAfterMsMax = RETRY_AFTER_MS_MAX } = options
  const connection = new Connection({ url, token, fetch, timeoutMs, retries, retryAfterMsMax })
  return new Client(new HttpTransport(connection), options)
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
  return { blueprint, ...jsonOf<Omit<CreateJobRequest, 'blueprint'>>(given<unknown>(fields)) }
}
