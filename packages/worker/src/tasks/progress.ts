import { randomUUID } from 'node:crypto'
import type { EventRequest, WireTask } from '@impresario/protocol'
import type { EventSender } from './events.ts'
import { messageOf, type Log } from '../runtime/log.ts'

interface Entry {
  readonly task: WireTask
  /** What has not been sent yet. */
  unsent: { readonly progress: number; readonly message: string | undefined } | undefined
  sentAt: number
  /** Ends the tries to send what has been overtaken since. */
  sending: AbortController
}

const INTERVAL_MS = 1_000

/**
 * Sends progress at most once a second for each task; of what was said in between, only the last. What could not be
 * sent is tried again until newer progress, or the end of the task, makes it pointless.
 */
export class ProgressSender {
  readonly #workerId: string
  readonly #events: EventSender
  readonly #log: Log
  readonly #entries = new Map<string, Entry>()
  #timer: NodeJS.Timeout | undefined

  constructor(workerId: string, events: EventSender, log: Log) {
    this.#workerId = workerId
    this.#events = events
    this.#log = log
  }

  say(task: WireTask, progress: number, message: string | undefined): void {
    const entry = this.#entries.get(task.task_id) ?? {
      task,
      unsent: undefined,
      sentAt: Number.NEGATIVE_INFINITY,
      sending: new AbortController(),
    }
    entry.unsent = { progress, message }
    this.#entries.set(task.task_id, entry)
    this.#flush()
  }

  /** The result says more than any progress. */
  forget(taskId: string): void {
    if (this.#entries.size === 0) return
    this.#entries.get(taskId)?.sending.abort()
    this.#entries.delete(taskId)
  }

  stop(): void {
    clearTimeout(this.#timer)
    for (const taskId of this.#entries.keys()) this.forget(taskId)
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
    entry.sending.abort()
    entry.sending = new AbortController()
    const { signal } = entry.sending
    const { progress, message } = unsent
    const payload = message === undefined ? { progress } : { progress, message }
    this.#events.send(eventOf('progress', this.#workerId, task, payload), signal, true).catch((error: unknown) => {
      if (signal.aborted) return
      this.#log.debug('Progress was refused.', { task_id: task.task_id, error: messageOf(error) })
    })
  }
}

/** An event of a task, with an id by which the orchestrator knows it when it arrives twice. */
export function eventOf(
  type: string,
  workerId: string,
  task: WireTask,
  payload: NonNullable<EventRequest['payload']>,
): EventRequest {
  return {
    event_id: randomUUID(),
    event_type: type,
    worker_id: workerId,
    origin_worker_id: workerId,
    origin_task_id: task.task_id,
    target_task_id: task.task_id,
    target_job_id: task.job_id,
    payload,
    ...(task.tracing_context === undefined ? {} : { trace_context: task.tracing_context }),
  }
}
