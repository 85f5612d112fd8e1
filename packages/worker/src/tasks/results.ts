import { PassingMap, pause } from '@impresario/protocol'
import type { ResultRequest } from '@impresario/protocol'
import { messageOf, type Log } from '../runtime/log.ts'
import { Backoff, nextTick } from '../runtime/pause.ts'
import { peaceMs, transportFailure, type WorkerTransport } from '../transport/transport.ts'

interface SenderOptions {
  readonly workerId: string
  readonly transport: WorkerTransport
  readonly log: Log
  /** Tries after the first one when the orchestrator cannot be reached. */
  readonly retriesMax: number
  readonly retryMs: number
  readonly rateLimitMs: number
  readonly onUnknownWorker: () => Promise<void>
}

const RETRY_MS_MAX = 30_000

/**
 * Brings results to one orchestrator.
 *
 * Batched, there is one post on its way at a time, and what ends meanwhile travels together in the next: the slower
 * the orchestrator, the larger the posts. Otherwise every result has a post of its own. Until it has been answered a
 * result stays here and is listed by `pendingIds`, so that heartbeats keep its task.
 */
export class ResultSender {
  readonly #options: SenderOptions
  readonly #pending = new PassingMap<ResultRequest, true>()
  readonly #waiting: ResultRequest[] = []
  #sending = false
  #whenEmpty: (() => void) | undefined
  readonly #stop = new AbortController()
  /** How many results one post may hold; 1 turns batching off. */
  batchMax = 1

  constructor(options: SenderOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#pending.size
  }

  pendingIds(): readonly string[] {
    return [...this.#pending.keys()].map((result) => result.task_id)
  }

  /** `after`: what the orchestrator has to know before, such as the task's events. Must not reject. */
  add(result: ResultRequest, after?: Promise<unknown>): void {
    this.#pending.set(result, true)
    if (after === undefined) this.#enqueue(result)
    else void after.then(() => this.#enqueue(result))
  }

  #enqueue(result: ResultRequest): void {
    if (this.batchMax === 1) {
      void this.#deliver([result]).then(() => this.#done([result]))
      return
    }
    this.#waiting.push(result)
    if (this.#sending) return
    this.#sending = true
    void this.#sendAll()
  }

  whenEmpty(): Promise<void> {
    if (this.#pending.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#whenEmpty = resolve
    })
  }

  /** Ends the waits between tries; what is still here is lost, and the caller says so. */
  stop(): void {
    this.#stop.abort()
  }

  async #sendAll(): Promise<void> {
    await nextTick()
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, Math.max(1, this.batchMax))
      await this.#deliver(batch)
      this.#done(batch)
    }
    this.#sending = false
  }

  #done(batch: readonly ResultRequest[]): void {
    for (const result of batch) this.#pending.delete(result)
    if (this.#pending.size === 0) this.#whenEmpty?.()
  }

  /** Resolves when the results have been answered or must be given up. Never rejects. */
  async #deliver(batch: readonly ResultRequest[]): Promise<void> {
    const { transport, workerId, log, retriesMax, retryMs, rateLimitMs } = this.#options
    const backoff = new Backoff(retryMs, RETRY_MS_MAX)
    while (!this.#stop.signal.aborted) {
      try {
        await this.#note(batch, await transport.results(workerId, batch))
        return
      } catch (error) {
        const failure = transportFailure(error)
        if (failure === 'refused') return this.#refused(batch, error)
        if (failure === 'unknown_worker') await this.#options.onUnknownWorker()
        if (backoff.failures >= retriesMax) {
          log.error('Results were given up: the orchestrator could not be reached.', ids(batch, error))
          return
        }
        const waitMs = Math.max(backoff.next(), peaceMs(error, rateLimitMs))
        log.warn('Results could not be delivered; they will be sent again.', { ...ids(batch, error), wait_ms: waitMs })
        await pause(waitMs, this.#stop.signal)
      }
    }
  }

  /** One bad result must not take the others with it, and its task must not run again and again for nothing. */
  async #refused(batch: readonly ResultRequest[], error: unknown): Promise<void> {
    const [first, ...others] = batch
    if (first === undefined) return
    if (others.length > 0) {
      for (const result of batch) await this.#deliver([result])
      return
    }
    await this.#substitute(first, messageOf(error))
  }

  /** A result that the orchestrator cannot hold becomes a failure that says so; a failure that it refuses is given up. */
  async #substitute(refused: ResultRequest, reason: string): Promise<void> {
    const { job_id, task_id, worker_id, status } = refused
    this.#options.log.error('The orchestrator refused a result.', { task_id, error: reason })
    if (status === 'failure') return
    const message = `The orchestrator refused the result: ${reason}`.slice(0, 1_000)
    const substitute = { job_id, task_id, status: 'failure', error: { code: 'PERMANENT_ERROR', message } }
    await this.#deliver([worker_id === undefined ? substitute : { ...substitute, worker_id }])
  }

  async #note(batch: readonly ResultRequest[], replies: readonly object[]): Promise<void> {
    for (const [index, reply] of replies.entries()) {
      const result = batch[index]
      if (result === undefined || ('status' in reply && reply.status !== 'ignored')) continue
      if ('error' in reply) await this.#substitute(result, String(reply.error))
      else this.#options.log.debug('The orchestrator ignored a result.', { ...reply, task_id: result.task_id })
    }
  }
}

function ids(batch: readonly ResultRequest[], error: unknown): Readonly<Record<string, unknown>> {
  return { error: messageOf(error), results: batch.length, task_ids: batch.slice(0, 10).map((one) => one.task_id) }
}
