import {
  CLIENT_PATHS,
  ENDED_STATUSES,
  stringifyExact,
  type ApprovalBody,
  type ApprovalRequest,
  type DataObject,
  type EventPayload,
  type EventType,
  type HistoryBody,
  type JobBody,
  type QuarantinedBody,
} from '@impresario/protocol'
import { given, pause, type Connection } from './connection.ts'
import { JobEndedError, WaitTimeoutError } from './errors.ts'
import { explanationOf, type Explanation } from './explanation.ts'
import { listing, type Listing } from './listing.ts'
import { quarantinedOf } from './quarantine.ts'
import { sentEvent, type SendOptions } from './sent-event.ts'

/** A job as the server describes it, with the types of its blueprint. */
export type Job<Output = unknown, State extends string = string> = Omit<JobBody, 'result' | 'current_state'> & {
  readonly current_state: State
  readonly result?: Output
}

export interface WaitOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface HistoryQuery {
  /** Events per page. */
  readonly limit?: number | undefined
  /** Only events after this one: its `event_id`, or the cursor of the page before. */
  readonly after?: string | undefined
}

export interface ApproveOptions {
  readonly comment?: string | undefined
  /** Which question is meant, as `approval.visit` names it; the one that was seen last without it. */
  readonly visit?: number | undefined
}

export interface RetryOptions {
  /** Instead of what the job began with. */
  readonly initialData?: DataObject | undefined
  /** Instead of what its states have written so far. */
  readonly stateHistory?: DataObject | undefined
}

/** The server holds a question back for so long until there is news; then we ask again. */
const HOLD_MS = 25_000
/** A server that is about to stop, or knows no long polls, answers at once; asking again at once would only hurt it. */
const EARLY_MS = 250

/**
 * A job that was started, here or elsewhere. Holds its id, and which question to a person was seen last: make as many as
 * you like.
 */
export class JobHandle<Output = unknown, State extends string = string> {
  readonly id: string
  readonly #connection: Connection
  /** The question that `approve` answers. */
  #seenVisit: number | undefined

  constructor(connection: Connection, id: string) {
    this.#connection = connection
    this.id = id
  }

  /** What it looks like now. */
  async status(options: { readonly signal?: AbortSignal } = {}): Promise<Job<Output, State>> {
    return this.#read({}, 0, options.signal)
  }

  /** Resolves when the job has ended, however it did, or stands aside in quarantine. */
  async wait(options: WaitOptions = {}): Promise<Job<Output, State>> {
    const endsAt = performance.now() + (options.timeoutMs ?? Number.POSITIVE_INFINITY)
    for (;;) {
      const askedAt = performance.now()
      const holdMs = Math.max(0, Math.min(HOLD_MS, endsAt - askedAt))
      const job = await this.#read({ wait: holdMs / 1_000, until: 'end' }, holdMs, options.signal)
      if (isSettled(job)) return job
      if (performance.now() >= endsAt) throw new WaitTimeoutError(`Job ${this.id} is still "${job.status}".`)
      await pause(Math.min(askedAt + EARLY_MS, endsAt) - performance.now(), options.signal)
    }
  }

  /** The result once the job has finished; rejects with `JobEndedError` when it ends in any other way. */
  async result(options: WaitOptions = {}): Promise<Output> {
    const job = await this.wait(options)
    if (job.status === 'finished') return resultOf(job)
    throw new JobEndedError(bodyOf(job))
  }

  /** The job as it is now and again after every change, up to its end. Changes in quick succession may be skipped. */
  async *watch(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<Job<Output, State>, void, undefined> {
    let job = await this.#read({}, 0, options.signal)
    yield job
    while (!ENDED_STATUSES.includes(job.status)) {
      const askedAt = performance.now()
      const next = await this.#read({ wait: HOLD_MS / 1_000, version: job.version }, HOLD_MS, options.signal)
      if (next.version > job.version) {
        job = next
        yield job
      } else {
        await pause(askedAt + EARLY_MS - performance.now(), options.signal)
      }
    }
  }

  async cancel(reason?: string): Promise<void> {
    const body = JSON.stringify(reason === undefined ? {} : { reason })
    await this.#connection.call(CLIENT_PATHS.cancel(this.id), { method: 'POST', body, repeatable: true })
  }

  /** What has happened to it, oldest first. */
  history({ limit, after }: HistoryQuery = {}): Listing<HistoryBody> {
    return listing(this.#connection, {
      path: CLIENT_PATHS.history(this.id),
      query: { limit },
      cursor: after,
      cursorName: 'after',
      read: historyOf,
    })
  }

  /** Why its tasks are where they are, worker by worker. */
  async explain(): Promise<Explanation> {
    const answer = await this.#connection.call(CLIENT_PATHS.explain(this.id), { repeatable: true })
    return explanationOf(answer.body)
  }

  /** What it asks a person, with links to decide it. Whoever has a link may decide, once, without a token. */
  async approval(): Promise<ApprovalBody> {
    const answer = await this.#connection.call(CLIENT_PATHS.question(this.id), { repeatable: true })
    const question = approvalOf(answer.body)
    this.#seenVisit = question.visit
    return question
  }

  /**
   * Answers the question that was seen last, by `status`, `watch`, `wait` or `approval`; without any, the one that is
   * open now. A second answer never goes to a later question: look again first. The same answer to the same question once more
   * changes nothing and is no error, because the first reply may have been lost; another answer is refused. Whoever shows the question to a person
   * while watching the job gives the `visit` of what was shown.
   */
  async approve(decision: string, options: ApproveOptions = {}): Promise<void> {
    const visit = options.visit ?? this.#seenVisit ?? (await this.#openVisit())
    const request: ApprovalRequest = { decision, visit, ...given({ comment: options.comment }) }
    // It names the question: a repetition is answered as the first one was, and decides nothing else.
    const call = { method: 'POST', body: JSON.stringify(request), repeatable: true } as const
    await this.#connection.call(CLIENT_PATHS.approval(this.id), call)
  }

  /**
   * Sends the job an event. A job that waits for it goes on; any other open job keeps it until it does. With `eventId` the
   * same event may be sent again, and counts once.
   */
  async send<E extends EventType>(event: E, payload: NoInfer<EventPayload<E>>, options?: SendOptions): Promise<void>
  async send(topic: string, payload?: DataObject, options?: SendOptions): Promise<void>
  async send(event: EventType | string, payload: object = {}, { eventId }: SendOptions = {}): Promise<void> {
    const body = sentEvent(event, payload, eventId)
    await this.#connection.call(CLIENT_PATHS.jobEvents(this.id), { method: 'POST', body, repeatable: true })
  }

  /** A job in quarantine with its whole error. */
  async quarantined(): Promise<QuarantinedBody> {
    const answer = await this.#connection.call(CLIENT_PATHS.quarantined(this.id), { repeatable: true })
    return quarantinedOf(answer.body)
  }

  /** Sends a job in quarantine back into the state where it failed, perhaps with other data. */
  async retry({ initialData, stateHistory }: RetryOptions = {}): Promise<void> {
    const request = given({ initial_data: initialData, state_history: stateHistory })
    const call = { method: 'POST', body: stringifyExact(request), repeatable: false } as const
    await this.#connection.call(CLIENT_PATHS.retry(this.id), call)
  }

  /** Gives a job in quarantine up: it ends as failed. */
  async discard(): Promise<void> {
    const call = { method: 'POST', body: '{}', repeatable: true } as const
    await this.#connection.call(CLIENT_PATHS.discard(this.id), call)
  }

  /** Zero where no question is open: the server then only looks whether this very decision was made before. */
  async #openVisit(): Promise<number> {
    return (await this.#read({}, 0, undefined)).approval?.visit ?? 0
  }

  async #read(
    query: Readonly<Record<string, string | number>>,
    holdMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Job<Output, State>> {
    const answer = await this.#connection.call(CLIENT_PATHS.job(this.id), { query, holdMs, signal, repeatable: true })
    const job = jobOf<Output, State>(answer.body)
    this.#seenVisit = job.approval?.visit ?? this.#seenVisit
    return job
  }
}

function isSettled(job: { readonly status: string }): boolean {
  return job.status === 'quarantined' || ENDED_STATUSES.includes(job.status)
}

/** The boundary at which a server's body is believed to be a job of the blueprint that the caller named. */
function jobOf<Output, State extends string>(body: unknown): Job<Output, State> {
  return body as Job<Output, State>
}

function historyOf(body: unknown): HistoryBody {
  return body as HistoryBody
}

function approvalOf(body: unknown): ApprovalBody {
  return body as ApprovalBody
}

function bodyOf(job: object): JobBody {
  return job as JobBody
}

/** A finished job of a blueprint without an output has no result. */
function resultOf<Output>(job: { readonly result?: Output }): Output {
  return job.result as Output
}
