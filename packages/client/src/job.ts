import { CLIENT_PATHS, ENDED_STATUSES, type JobBody } from '@impresario/protocol'
import { pause, type Connection } from './connection.ts'
import { JobEndedError, WaitTimeoutError } from './errors.ts'

/** A job as the server describes it, with the types of its blueprint. */
export type Job<Output = unknown, State extends string = string> = Omit<JobBody, 'result' | 'current_state'> & {
  readonly current_state: State
  readonly result?: Output
}

export interface WaitOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** The server holds a question back for so long until there is news; then we ask again. */
const HOLD_MS = 25_000
/** A server that is about to stop, or knows no long polls, answers at once; asking again at once would only hurt it. */
const EARLY_MS = 250

/** A job that was started, here or elsewhere. Holds nothing but its id: make as many as you like. */
export class JobHandle<Output = unknown, State extends string = string> {
  readonly id: string
  readonly #connection: Connection

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

  async #read(
    query: Readonly<Record<string, string | number>>,
    holdMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Job<Output, State>> {
    const answer = await this.#connection.call(CLIENT_PATHS.job(this.id), { query, holdMs, signal, repeatable: true })
    return jobOf(answer.body)
  }
}

function isSettled(job: { readonly status: string }): boolean {
  return job.status === 'quarantined' || ENDED_STATUSES.includes(job.status)
}

/** The boundary at which a server's body is believed to be a job of the blueprint that the caller named. */
export function jobOf<Output, State extends string>(body: unknown): Job<Output, State> {
  return body as Job<Output, State>
}

function bodyOf(job: object): JobBody {
  return job as JobBody
}

/** A finished job of a blueprint without an output has no result. */
function resultOf<Output>(job: { readonly result?: Output }): Output {
  return job.result as Output
}
