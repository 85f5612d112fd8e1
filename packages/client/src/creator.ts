import {
  CLIENT_PATHS,
  HEADERS,
  isImpresarioError,
  isJsonObject,
  LIMITS,
  stringifyExact,
  type CreateJobRequest,
} from '@impresario/protocol'
import type { Connection } from './connection.ts'
import { ConnectionError, refusalOf } from './errors.ts'
import { newJobId } from './job-id.ts'

interface Waiting {
  readonly text: string
  readonly key: string | undefined
  readonly isRepeatable: boolean
  readonly resolve: (jobId: string) => void
  readonly reject: (error: unknown) => void
}

/** Below the server's limit of 1 MiB for a body, with room for the frame around the jobs. */
const BODY_CHARS_MAX = 300_000
/** More than one full batch may be on its way, so that the server never waits for us. */
const FLIGHTS_MAX = 4

/**
 * Creates jobs, many with one request when many are wanted.
 *
 * What is asked for in the same moment, or while a request is on its way, goes out together: the slower the server,
 * the larger the batches, and a single job is never held back. A refused job rejects only its own promise.
 */
export class JobCreator {
  readonly #connection: Connection
  readonly #waiting: Waiting[] = []
  #flights = 0
  #scheduled = false

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /**
   * Resolves with the job's id. With retries every job gets its id here, because a request that was cut off may have
   * been heard: repeated with the same id it makes no second job.
   */
  create(request: CreateJobRequest): Promise<string> {
    const key = request.idempotency_key ?? undefined
    const isNamed = key === undefined && this.#connection.retries > 0
    const text = stringifyExact(isNamed ? { ...request, job_id: newJobId() } : request)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, key, isRepeatable: isNamed || key !== undefined, resolve, reject })
      if (this.#scheduled) return
      this.#scheduled = true
      queueMicrotask(() => {
        this.#scheduled = false
        this.#launch()
      })
    })
  }

  #launch(): void {
    while (this.#waiting.length > 0) {
      const full = this.#waiting.length >= LIMITS.batchItemsMax
      if (this.#flights >= (full ? FLIGHTS_MAX : 1)) return
      this.#flights += 1
      void this.#send(this.#take()).then(() => {
        this.#flights -= 1
        this.#launch()
      })
    }
  }

  #take(): readonly Waiting[] {
    let chars = 0
    let count = 0
    for (const { text } of this.#waiting) {
      chars += text.length
      if (count > 0 && (chars > BODY_CHARS_MAX || count >= LIMITS.batchItemsMax)) break
      count += 1
    }
    return this.#waiting.splice(0, count)
  }

  /** Never rejects: every promise is settled here. */
  async #send(batch: readonly Waiting[]): Promise<void> {
    const [first, ...others] = batch
    if (first === undefined) return
    if (others.length === 0) return this.#sendOne(first)
    const body = `{"jobs":[${batch.map((one) => one.text).join(',')}]}`
    const repeatable = batch.every((one) => one.isRepeatable)
    try {
      const answer = await this.#connection.call(CLIENT_PATHS.jobBatch, { method: 'POST', body, repeatable })
      const results = isJsonObject(answer.body) ? answer.body['results'] : undefined
      if (!Array.isArray(results)) throw new ConnectionError('The answer is not what this client understands.')
      for (const [index, one] of batch.entries()) settle(one, results[index])
    } catch (error) {
      // A batch that was refused as a whole may hold one bad job: the others must not suffer for it.
      if (isImpresarioError(error) && [400, 413, 422].includes(error.status)) {
        for (const one of batch) await this.#sendOne(one)
        return
      }
      for (const one of batch) one.reject(error)
    }
  }

  async #sendOne(one: Waiting): Promise<void> {
    const headers = one.key === undefined ? {} : { [HEADERS.idempotencyKey]: one.key }
    const call = { method: 'POST', body: one.text, headers, repeatable: one.isRepeatable } as const
    try {
      const answer = await this.#connection.call(CLIENT_PATHS.jobs, call)
      settle(one, answer.body)
    } catch (error) {
      one.reject(error)
    }
  }
}

function settle(one: Waiting, reply: unknown): void {
  if (isJsonObject(reply) && typeof reply['job_id'] === 'string') return one.resolve(reply['job_id'])
  one.reject(refusalOf(500, reply))
}
