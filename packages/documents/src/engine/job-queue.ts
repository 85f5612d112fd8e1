import { setMaxListeners } from 'node:events'
import type { Client } from '@impresario/server/embedded'
import { ImpresarioError } from '@impresario/protocol'
import { BLUEPRINT_NAME } from './blueprint.ts'
import type { EndedTask, FileTask, QueueStats, TaskQueue } from './task.ts'

const OPEN = ['pending', 'running', 'waiting_for_worker'] as const
const PAGE = 100

export interface JobQueueOptions {
  readonly owner: string
  /** The process that alone has the index. */
  readonly home?: string
  readonly maxSize: number
}

/**
 * The queue of files: each is a job of the orchestrator, which keeps it, hands it out by priority and tries it again. What is
 * bounded is the number of jobs that have not ended.
 */
export class JobQueue implements TaskQueue {
  readonly #client: Client
  readonly #owner: string
  /** The process whose tasks these are; `undefined` where every process has the index. */
  readonly #home: string | undefined
  readonly #maxSize: number
  readonly #open = new Map<string, FileTask>()
  readonly #listeners: ((task: EndedTask) => void)[] = []
  readonly #closing = new AbortController()
  readonly #waiting: (() => void)[] = []
  #enqueued = 0
  #completed = 0
  #failed = 0

  constructor(client: Client, { owner, home, maxSize }: JobQueueOptions) {
    this.#client = client
    this.#owner = owner
    this.#home = home
    this.#maxSize = maxSize
    // One for each job that is waited for.
    setMaxListeners(0, this.#closing.signal)
  }

  async open(): Promise<readonly FileTask[]> {
    const found: FileTask[] = []
    const query = { blueprint: BLUEPRINT_NAME, status: OPEN, limit: PAGE, fields: ['id', 'initialData'] as const }
    for await (const job of this.#client.list(query)) {
      const task = taskOf(job.initialData ?? {})
      // One from another machine, which has an index of its own.
      if (task.home !== undefined && task.home !== this.#home) continue
      found.push(task)
      this.#follow(job.id, task)
    }
    return found
  }

  async enqueue(task: FileTask): Promise<string> {
    if (this.#closing.signal.aborted) throw new ImpresarioError('SHUTTING_DOWN', 'The documents app is stopping.')
    if (this.#open.size >= this.#maxSize) {
      throw new ImpresarioError('QUEUE_FULL', `The queue is full: ${this.#maxSize} files wait. Try again later.`)
    }
    // Counted before it is safe, so that callers at the same time keep to the bound.
    const place = `new ${this.#enqueued}`
    this.#enqueued += 1
    this.#open.set(place, task)
    try {
      const { path, change, priority } = task
      const home = this.#home === undefined ? {} : { home: this.#home }
      const input = { owner: this.#owner, path, change, priority, ...home }
      const job = await this.#client.start(BLUEPRINT_NAME, input, { priority })
      this.#follow(job.id, task)
      return job.id
    } finally {
      this.#open.delete(place)
    }
  }

  room(): Promise<void> {
    if (this.#open.size < this.#maxSize || this.#closing.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  onEnded(listener: (task: EndedTask) => void): void {
    this.#listeners.push(listener)
  }

  stats(): QueueStats {
    const byPriority = [0, 0, 0]
    for (const { priority } of this.#open.values()) byPriority[priority] = (byPriority[priority] ?? 0) + 1
    return {
      size: this.#open.size,
      maxSize: this.#maxSize,
      byPriority,
      enqueued: this.#enqueued,
      completed: this.#completed,
      failed: this.#failed,
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  #follow(jobId: string, task: FileTask): void {
    this.#open.set(jobId, task)
    this.#client
      .job(jobId)
      .wait({ signal: this.#closing.signal })
      .then(
        (job) => {
          if (OPEN.some((status) => status === job.status)) return
          const isCompleted = job.status === 'finished'
          this.#ended({ ...task, jobId, isCompleted, error: job.errorMessage })
        },
        // The orchestrator has stopped; the next start finds the job.
        () => undefined,
      )
  }

  #ended(task: EndedTask): void {
    this.#open.delete(task.jobId)
    if (task.isCompleted) this.#completed += 1
    else this.#failed += 1
    for (const listener of this.#listeners) listener(task)
    if (this.#open.size < this.#maxSize) this.#waiting.shift()?.()
  }
}

/** Boundary: the blueprint's schema has checked it. */
function taskOf(initialData: object): FileTask & { readonly home?: string } {
  return initialData as FileTask
}
