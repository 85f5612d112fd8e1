import {
  CLIENT_PATHS,
  HEADERS,
  type BlueprintBody,
  type CreateJobRequest,
  type Json,
  type JsonObject,
  type WorkerBody,
} from '@impresario/protocol'
import { Connection, type Fetch } from './connection.ts'
import { JobCreator } from './creator.ts'
import { JobHandle, jobOf, type Job } from './job.ts'

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
}

/** A blueprint, as far as a client needs it: its name, and types that exist only for the compiler. */
export interface BlueprintRef<Input = unknown, Output = unknown, State extends string = string> {
  readonly name: string
  readonly '~types'?: { readonly input: Input; readonly output: Output; readonly state: State }
}

type TypesOf<B> = B extends { readonly '~types'?: infer Types } ? NonNullable<Types> : never
type InputOf<B> = TypesOf<B> extends { readonly input: infer Input } ? Input : JsonObject
type OutputOf<B> = TypesOf<B> extends { readonly output: infer Output } ? Output : unknown
type StateOf<B> = TypesOf<B> extends { readonly state: infer State extends string } ? State : string

export interface StartOptions {
  /** The same key gives the same job, however often it is asked for. */
  readonly idempotencyKey?: string
  readonly priority?: number
  readonly dispatchTimeoutMs?: number
  readonly resultTimeoutMs?: number
  readonly executionTimeoutMs?: number
  readonly metadata?: JsonObject
  readonly webhookUrl?: string
}

export interface ListQuery {
  readonly status?: string | readonly string[]
  readonly blueprint?: string
  /** Jobs per page. */
  readonly limit?: number
  readonly cursor?: string
}

export interface JobPage {
  readonly jobs: readonly Job[]
  /** Where the next page begins; absent on the last one. */
  readonly cursor?: string
}

/** Newest first. Iterating fetches page after page; `page` fetches one. */
export interface JobList extends AsyncIterable<Job> {
  page(): Promise<JobPage>
}

const TIMEOUT_MS = 30_000

/** Starts, watches, cancels and lists jobs. */
export class Client {
  readonly #connection: Connection
  readonly #creator: JobCreator

  constructor(options: ClientOptions) {
    const { url, token, fetch, timeoutMs = TIMEOUT_MS, retries = 2 } = options
    this.#connection = new Connection({ url, token, fetch, timeoutMs, retries })
    this.#creator = new JobCreator(this.#connection)
  }

  /** Resolves once the server has the job safe. Calls of the same moment travel together. */
  async start<const B extends BlueprintRef>(
    blueprint: B,
    input: NoInfer<InputOf<B>>,
    options?: StartOptions,
  ): Promise<JobHandle<OutputOf<B>, StateOf<B>>>
  async start(blueprint: string, input?: JsonObject, options?: StartOptions): Promise<JobHandle>
  async start(blueprint: BlueprintRef | string, input?: unknown, options: StartOptions = {}): Promise<JobHandle> {
    const name = typeof blueprint === 'string' ? blueprint : blueprint.name
    return this.job(await this.#creator.create(requestOf(name, input, options)))
  }

  /** A job that exists already. Asks the server nothing. */
  job<B extends BlueprintRef = BlueprintRef>(id: string, _blueprint?: B): JobHandle<OutputOf<B>, StateOf<B>> {
    return new JobHandle(this.#connection, id)
  }

  list(query: ListQuery = {}): JobList {
    const page = (cursor = query.cursor): Promise<JobPage> => this.#page(query, cursor)
    return {
      page: () => page(),
      async *[Symbol.asyncIterator]() {
        let cursor = query.cursor
        do {
          const found: JobPage = await page(cursor)
          yield* found.jobs
          cursor = found.cursor
        } while (cursor !== undefined)
      },
    }
  }

  async cancel(id: string, reason?: string): Promise<void> {
    await this.job(id).cancel(reason)
  }

  /** Answers a job that waits for a person. */
  async approve(id: string, decision: string, comment?: string): Promise<void> {
    const body = JSON.stringify(comment === undefined ? { decision } : { decision, comment })
    await this.#connection.call(CLIENT_PATHS.approval(id), { method: 'POST', body, repeatable: false })
  }

  async workers(): Promise<readonly WorkerBody[]> {
    return this.#get(CLIENT_PATHS.workers)
  }

  async blueprints(): Promise<readonly BlueprintBody[]> {
    return this.#get(CLIENT_PATHS.blueprints)
  }

  async dashboard(): Promise<JsonObject> {
    return this.#get(CLIENT_PATHS.dashboard)
  }

  /** Why the job is where it is, and what it waits for. */
  async explain(id: string): Promise<Json> {
    return this.#get(CLIENT_PATHS.explain(id))
  }

  /** The blueprint drawn: Graphviz source or a picture. */
  async graph(name: string, format: 'dot' | 'svg' = 'dot'): Promise<string> {
    const answer = await this.#connection.call(CLIENT_PATHS.graph(name), { query: { format }, repeatable: true })
    return answer.text
  }

  async #page(query: ListQuery, cursor: string | undefined): Promise<JobPage> {
    const { status, blueprint, limit } = query
    const statuses = typeof status === 'string' ? status : status?.join(',')
    const call = { query: { status: statuses, blueprint, limit, cursor }, repeatable: true }
    const answer = await this.#connection.call(CLIENT_PATHS.jobs, call)
    const jobs = Array.isArray(answer.body) ? answer.body.map((body) => jobOf<unknown, string>(body)) : []
    const next = answer.headers.get(HEADERS.nextCursor)
    return next === null || next === '' ? { jobs } : { jobs, cursor: next }
  }

  /** The boundary at which a server's answer is believed. */
  async #get<T>(path: string): Promise<T> {
    const answer = await this.#connection.call(path, { repeatable: true })
    return answer.body as T
  }
}

export function createClient(options: ClientOptions): Client {
  return new Client(options)
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
  }
  return { blueprint, ...given(fields) }
}

/** The boundary at which the compiler's checks of the input end: from here on it is JSON for the server to judge. */
function given(fields: Readonly<Record<string, unknown>>): Omit<CreateJobRequest, 'blueprint'> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
