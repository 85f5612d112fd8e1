import {
  ENDED_STATUSES,
  pause,
  type CreateJobReply,
  type DataObject,
  type EventPayload,
  type EventType,
  type JobBody,
  type JobQuery,
} from '@impresario/protocol'
import type { ApproveOptions } from './approvals.ts'
import { given } from './connection.ts'
import { JobFailedError, WaitTimeoutError } from './errors.ts'
import { Files } from './files.ts'
import { listing, type Listing } from './listing.ts'
import { sentEvent, type SendOptions } from './sent-event.ts'
import type { ClientTransport, Waiting } from './transport.ts'
import type { Approval, Explanation, HistoryEvent, Job, LogLine, QuarantinedJob } from './views.ts'
import { fromWire } from './wire-case.ts'

export interface WaitOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface HistoryQuery {
  /** Events per page. */
  readonly limit?: number | undefined
  /** Only events after this one: its `eventId`, or the cursor of the page before. */
  readonly after?: string | undefined
}

export interface RetryOptions {
  /** Instead of what the job began with. */
  readonly initialData?: DataObject | undefined
  /** Instead of what its states have written so far. */
  readonly stateHistory?: DataObject | undefined
}

export interface RerunJobOptions {
  /** The state to begin in; the first one without it. */
  readonly from?: string | undefined
  /** Instead of what the job began with. */
  readonly initialData?: DataObject | undefined
  /** Instead of what its states had written; only with `from`. */
  readonly stateHistory?: DataObject | undefined
  readonly idempotencyKey?: string | undefined
}

/** The answer is held back for so long until there is news; then we ask again. */
const HOLD_MS = 25_000
/** While a task waits for a worker, the first look whether one has taken it. */
const LOOK_MS = 1_000
/** A server that is about to stop, or knows no long polls, answers at once; asking again at once would only hurt it. */
const EARLY_MS = 250

/**
 * A job that was started, here or elsewhere. Holds its id, and which question to a person was seen last: make as many as
 * you like.
 */
export class JobHandle<Output = unknown, State extends string = string> {
  readonly id: string
  /** Its files. */
  readonly files: Files
  readonly #transport: ClientTransport
  /** The question that `approve` answers. */
  #seenVisit: number | undefined

  constructor(transport: ClientTransport, id: string) {
    this.#transport = transport
    this.id = id
    this.files = new Files(transport.files, id)
  }

  /** What it looks like now. */
  async status(options: { readonly signal?: AbortSignal } = {}): Promise<Job<Output, State>> {
    return this.#read({}, options)
  }

  /** Resolves when the job has ended, however it did, or stands aside in quarantine. */
  async wait(options: WaitOptions = {}): Promise<Job<Output, State>> {
    const { signal } = options
    const endsAt = performance.now() + (options.timeoutMs ?? Number.POSITIVE_INFINITY)
    for (;;) {
      const askedAt = performance.now()
      const holdMs = Math.max(0, Math.min(HOLD_MS, endsAt - askedAt))
      const job = await this.#read({ wait: holdMs / 1_000, until: 'end' }, { holdMs, signal })
      if (isSettled(job)) return job
      if (performance.now() >= endsAt) throw new WaitTimeoutError(`Job ${this.id} is still "${job.status}".`)
      await pause(Math.min(askedAt + EARLY_MS, endsAt) - performance.now(), signal)
    }
  }

  /** The result once the job has finished; rejects with `JobFailedError` when it ends in any other way. */
  async result(options: WaitOptions = {}): Promise<Output> {
    const job = await this.wait(options)
    if (job.status === 'finished') return resultOf(job)
    throw new JobFailedError(job)
  }

  /**
   * The job as it is now and again after every change, up to its end. Changes in quick succession may be skipped. That a
   * worker has picked up a task changes nothing in the job: `work` then shows it after a second, later the longer it waited.
   */
  async *watch(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<Job<Output, State>, void, undefined> {
    const { signal } = options
    let job = await this.#read({}, { signal })
    yield job
    let lookMs = LOOK_MS
    while (!ENDED_STATUSES.includes(job.status)) {
      const askedAt = performance.now()
      const holdMs = isUnclaimed(job) ? lookMs : HOLD_MS
      const next = await this.#read({ wait: holdMs / 1_000, version: job.version }, { holdMs, signal })
      if (next.version > job.version || isElsewhere(next, job)) {
        lookMs = LOOK_MS
        job = next
        yield job
      } else {
        lookMs = Math.min(2 * lookMs, HOLD_MS)
        await pause(askedAt + EARLY_MS - performance.now(), signal)
      }
    }
  }

  async cancel(reason?: string): Promise<void> {
    await this.#transport.cancelJob(this.id, reason === undefined ? {} : { reason })
  }

  /** What has happened to it, oldest first. */
  history({ limit, after: first }: HistoryQuery = {}): Listing<HistoryEvent> {
    return listing((after) => this.#transport.jobHistory(this.id, { limit, after }), fromWire, first)
  }

  /** What its handlers and workers wrote with `context.log` and `task.log`, oldest first. The newest lines are kept. */
  async log(): Promise<readonly LogLine[]> {
    return (await this.#transport.jobLog(this.id)).map((line) => fromWire(line))
  }

  /** Why its tasks are where they are, worker by worker. */
  async explain(): Promise<Explanation> {
    return fromWire(await this.#transport.explainJob(this.id))
  }

  /** What it asks a person, with links to decide it. A link decides once, without a token. */
  async approval(): Promise<Approval> {
    const question = fromWire(await this.#transport.readApproval(this.id))
    this.#seenVisit = question.visit
    return question
  }

  /**
   * Answers the question that was seen last, by `status`, `watch`, `wait` or `approval`; without any, the one that is open
   * now. A second answer never goes to a later question: look again first. The same answer to the same question once more
   * changes nothing and is no error, because the first reply may have been lost; another answer is refused. A program that
   * shows the question to a person while it watches the job gives the `visit` of what was shown.
   */
  async approve(decision: string, options: ApproveOptions = {}): Promise<void> {
    const visit = options.visit ?? this.#seenVisit ?? (await this.#openVisit())
    await this.#transport.decide(this.id, {
      decision,
      visit,
      ...given({ comment: options.comment, data: options.data }),
    })
  }

  /**
   * Sends the job an event. A job that waits for it goes on; any other open job keeps it until it does. With `eventId` the
   * same event may be sent again, and counts once.
   */
  async send<E extends EventType>(event: E, payload: NoInfer<EventPayload<E>>, options?: SendOptions): Promise<void>
  async send(topic: string, payload?: DataObject, options?: SendOptions): Promise<void>
  async send(event: EventType | string, payload: object = {}, { eventId }: SendOptions = {}): Promise<void> {
    await this.#transport.sendEvent(this.id, sentEvent(event, payload, eventId))
  }

  /** A job in quarantine with its whole error. */
  async quarantined(): Promise<QuarantinedJob> {
    return fromWire(await this.#transport.readQuarantined(this.id))
  }

  /** Sends a job in quarantine back into the state where it failed, perhaps with other data. */
  async retry({ initialData, stateHistory }: RetryOptions = {}): Promise<void> {
    await this.#transport.retryJob(this.id, jsonOf(given({ initial_data: initialData, state_history: stateHistory })))
  }

  /**
   * Starts a new job that does what this one did: from the beginning, or from one of its states on, with what the states
   * before had written. With the same `idempotencyKey` it is started once.
   */
  async rerun({ from, initialData, stateHistory, idempotencyKey }: RerunJobOptions = {}): Promise<JobHandle> {
    const { body } = await this.#transport.requests.ask({
      method: 'POST',
      path: ['jobs', this.id, 'rerun'],
      body: jsonOf(given({ from_state: from, initial_data: initialData, state_history: stateHistory })),
      ...(idempotencyKey === undefined ? {} : { key: idempotencyKey }),
    })
    return new JobHandle(this.#transport, (body as CreateJobReply).job_id)
  }

  /** Gives a job in quarantine up: it ends as failed. */
  async discard(): Promise<void> {
    await this.#transport.discardJob(this.id)
  }

  /** Zero where no question is open: the server then only looks whether this very decision was made before. */
  async #openVisit(): Promise<number> {
    return (await this.#read({}, {})).approval?.visit ?? 0
  }

  async #read(query: JobQuery, waiting: Waiting): Promise<Job<Output, State>> {
    const job = jobOf<Output, State>(await this.#transport.readJob(this.id, query, waiting))
    this.#seenVisit = job.approval?.visit ?? this.#seenVisit
    return job
  }
}

/** Whether a task of it waits for a worker, which may take it without a change of the job. */
function isUnclaimed({ work }: Pick<Job, 'work'>): boolean {
  return work !== undefined && work.waiting + work.delayed > 0
}

function isElsewhere(now: Pick<Job, 'work'>, before: Pick<Job, 'work'>): boolean {
  return JSON.stringify(now.work) !== JSON.stringify(before.work)
}

function isSettled(job: { readonly status: string }): boolean {
  return job.status === 'quarantined' || ENDED_STATUSES.includes(job.status)
}

/** The boundary at which a job is believed to be one of the blueprint that the caller named. */
function jobOf<Output, State extends string>(body: JobBody): Job<Output, State> {
  return fromWire(body) as Job<Output, State>
}

/** A finished job of a blueprint without an output has no result. */
function resultOf<Output>(job: { readonly result?: Output }): Output {
  return job.result as Output
}

/** The boundary at which the compiler's checks of data end: from here on it is JSON for the orchestrator to judge. */
export function jsonOf<T extends object>(fields: object): T {
  return fields as T
}
