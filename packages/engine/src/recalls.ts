import { taskId } from '@impresario/core'
import type { Decision, JobEvent, Log, Storage } from '@impresario/core'
import type { Dispatcher } from './dispatcher.ts'
import type { Holdings, Recall } from './holdings.ts'
import type { Signals } from './signals.ts'

export interface RecallsOptions {
  readonly storage: Storage
  readonly dispatcher: Dispatcher
  readonly holdings: Holdings
  readonly signals: Signals
  readonly log: Log
  /** Ends the parked polls of a worker here. False when it has none. */
  readonly wake: (workerId: string) => boolean
}

/**
 * Tells workers to stop tasks that were taken back from them, wherever they are.
 *
 * Who decides may be another instance than the one that handed the task out, and the worker's socket or its next poll may be
 * at a third one. So a decision about a task that is not in any hands here is told to the others (`drop`); the one that knows
 * the hands finds out who it is, and tells everybody (`recall`), because anybody may have a way to that worker. Signals can
 * be lost: a worker that names its tasks in its heartbeats learns it from these too.
 */
export class Recalls {
  readonly #options: RecallsOptions
  readonly #listeners = new Set<(recall: Recall) => void>()

  constructor(options: RecallsOptions) {
    this.#options = options
    const { signals } = options
    signals.on('drop', (id = '') => {
      this.#lookUp(id).catch((error: unknown) => this.#fail(error))
    })
    signals.on('recall', (workerId = '', id = '', jobId = '') => this.#pass({ workerId, taskId: id, jobId }))
  }

  /** Calls `listener` with every task that is taken back from a worker that holds it, once that is durable. */
  listen(listener: (recall: Recall) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /** A decision took tasks back. A task that ended by its result is in no hands any more. */
  onDecided(decision: Decision, event: JobEvent): void {
    const { dispatcher, holdings, storage, signals } = this.#options
    for (const effect of decision.effects) {
      if (effect.type !== 'dropTask') continue
      const id = taskId(decision.job.id, effect.visit, effect.branch)
      const workerId = dispatcher.workerOf(id)
      const recall = workerId === undefined ? undefined : holdings.recall(workerId, id)
      if (recall === undefined && (!signals.hasPeers || isResultOf(event, effect))) continue
      storage.sync().then(
        () => (recall === undefined ? signals.send(['drop', id]) : this.#tell(recall)),
        (error: unknown) => this.#fail(error),
      )
    }
  }

  /** Somebody else took it back. If it was in hands that are known here, and is not any more, its worker shall stop it. */
  async #lookUp(id: string): Promise<void> {
    const { dispatcher, holdings, storage } = this.#options
    const workerId = dispatcher.workerOf(id)
    if (workerId === undefined) return
    const holding = holdings.of(workerId).get(id)
    const [view] = await storage.peek('tasks', [id])
    if (view === undefined) dispatcher.release(id)
    // Meanwhile the next try may be in the same hands.
    if (holding === undefined || view?.lease?.token === holding.lease.token) return
    if (holdings.of(workerId).get(id) !== holding) return
    const recall = holdings.recall(workerId, id)
    if (recall !== undefined) this.#tell(recall)
  }

  #tell(recall: Recall): void {
    const { workerId, taskId: id, jobId } = recall
    this.#options.signals.send(['recall', workerId, id, jobId])
    for (const listener of this.#listeners) listener(recall)
    this.#options.wake(workerId)
  }

  /** Another instance knows of it. Here it matters to a socket, and to a poll that waits and can say it. */
  #pass(recall: Recall): void {
    const { holdings, wake } = this.#options
    for (const listener of this.#listeners) listener(recall)
    if (wake(recall.workerId)) holdings.addRecall(recall)
  }

  #fail(error: unknown): void {
    this.#options.log.warn('a worker could not be told to stop a task', { error: String(error) })
  }
}

/** Whether the task is dropped because its result is here. */
export function isResultOf(
  event: JobEvent,
  { visit, branch }: { readonly visit: number; readonly branch: string },
): boolean {
  return event.type === 'taskEnded' && event.visit === visit && event.branch === branch
}
