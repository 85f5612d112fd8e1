import type { EventRequest, WireTask } from '@impresario/protocol'
import { messageOf, type Log } from './log.ts'
import type { WorkerTransport } from './transport.ts'

interface Entry {
  readonly task: WireTask
  /** What has not been sent yet. */
  unsent: { readonly progress: number; readonly message: string | undefined } | undefined
  sentAt: number
}

const INTERVAL_MS = 1_000

/** Sends progress at most once a second for each task; of what was said in between, only the last. */
export class ProgressSender {
  readonly #workerId: string
  readonly #transport: WorkerTransport
  readonly #log: Log
  readonly #entries = new Map<string, Entry>()
  #timer: NodeJS.Timeout | undefined

  constructor(workerId: string, transport: WorkerTransport, log: Log) {
    this.#workerId = workerId
    this.#transport = transport
    this.#log = log
  }

  say(task: WireTask, progress: number, message: string | undefined): void {
    const entry = this.#entries.get(task.task_id) ?? { task, unsent: undefined, sentAt: Number.NEGATIVE_INFINITY }
    entry.unsent = { progress, message }
    this.#entries.set(task.task_id, entry)
    this.#flush()
  }

  /** The result says more than any progress. */
  forget(taskId: string): void {
    if (this.#entries.size > 0) this.#entries.delete(taskId)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#entries.clear()
  }

  #flush(): void {
    const now = performance.now()
    let nextMs = Number.POSITIVE_INFINITY
    for (const entry of this.#entries.values()) {
      if (entry.unsent === undefined) continue
      const dueMs = entry.sentAt + INTERVAL_MS - now
      if (dueMs <= 0) this.#send(entry, now)
      else nextMs = Math.min(nextMs, dueMs)
    }
    clearTimeout(this.#timer)
    if (Number.isFinite(nextMs)) this.#timer = setTimeout(() => this.#flush(), nextMs)
  }

  #send(entry: Entry, now: number): void {
    const { task, unsent } = entry
    if (unsent === undefined) return
    entry.unsent = undefined
    entry.sentAt = now
    const { progress, message } = unsent
    const event: EventRequest = {
      event_type: 'progress',
      worker_id: this.#workerId,
      origin_task_id: task.task_id,
      target_task_id: task.task_id,
      target_job_id: task.job_id,
      payload: message === undefined ? { progress } : { progress, message },
    }
    this.#transport.event(event).catch((error: unknown) => {
      this.#log.debug('Progress could not be sent.', { task_id: task.task_id, error: messageOf(error) })
    })
  }
}
