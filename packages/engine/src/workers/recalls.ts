import { parseDeliveryId, taskId } from '@impresario/core'
import type { Decision, JobEvent, Log, Storage } from '@impresario/core'
import { promised } from '@impresario/protocol'
import type { Custody } from './custody.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Holdings, Recall } from './holdings.ts'
import type { Renewal } from './renewal.ts'
import type { Signals } from '../service/signals.ts'

export interface RecallsOptions {
  readonly storage: Storage
  readonly dispatcher: Dispatcher
  readonly holdings: Holdings
  readonly signals: Signals
  readonly log: Log
  readonly custody: Custody
  readonly renewal: Renewal
}

/**
 * Tells workers to stop tasks that were taken back from them, wherever they are.
 *
 * Who decides may be another instance than the one that handed the task out, and the worker's socket or its next poll may be
 * at a third one. So a decision about a task that is not in any hands here is told to the others (`drop`); the one that knows
 * the hands finds out who it is, and tells all instances (`recall`), because any may be connected to that worker. Signals can
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

  /**
   * A decision took tasks back. One that ended by its result leaves its worker's hands without a word: a heartbeat may have
   * put it there again while the result was being written.
   */
  onDecided(decision: Decision, event: JobEvent): void {
    const { holdings, storage, signals, custody } = this.#options
    for (const effect of decision.effects) {
      if (effect.type !== 'dropTask') continue
      const id = taskId(decision.job.id, effect.visit, effect.branch)
      const held = holdings.holderOf(id)
      // Of another try: an older one has ended elsewhere, a newer one was handed out already.
      const isHeld = held !== undefined && parseDeliveryId(held.holding.deliveryId)?.attempt === effect.attempt
      if (isResultOf(event, effect)) {
        if (isHeld) custody.release(held.workerId, held.holding.lease)
        continue
      }
      const recall = isHeld ? holdings.recall(held.workerId, id) : undefined
      if (recall === undefined && !signals.hasPeers) continue
      promised(() => storage.sync()).then(
        () => (recall === undefined ? signals.send(['drop', id]) : this.#tell(recall)),
        (error: unknown) => this.#fail(error),
      )
    }
  }

  /** Another instance took it back. If a worker that is known here held it and lost it, that worker is told to stop. */
  async #lookUp(id: string): Promise<void> {
    const { dispatcher, holdings, storage, custody, renewal } = this.#options
    const [view] = await storage.peek('tasks', [id])
    if (view === undefined) dispatcher.release(id)
    const held = holdings.holderOf(id)
    // Meanwhile the next try may be in the same hands.
    if (held === undefined || view?.lease?.token === held.holding.lease.token) return
    const { workerId, holding } = held
    const ref = parseDeliveryId(holding.deliveryId)
    const taken = ref === undefined ? [] : await renewal.takenBack(workerId, [ref])
    if (holdings.of(workerId).get(id) !== holding) return
    if (taken.length === 0) {
      custody.release(workerId, holding.lease)
      return
    }
    const recall = holdings.recall(workerId, id)
    if (recall !== undefined) this.#tell(recall)
  }

  /** What the worker has ended by itself meanwhile it need not stop. */
  #tell(recall: Recall): void {
    const { workerId, taskId: id, jobId } = recall
    if (this.#options.holdings.hasAnswered(workerId, id)) return
    this.#options.signals.send(['recall', workerId, id, jobId])
    for (const listener of this.#listeners) listener(recall)
    this.#options.custody.wake(workerId)
  }

  /** Another instance knows of it. Here it matters to a socket, and to a poll that waits and can say it. */
  #pass(recall: Recall): void {
    const { holdings, custody } = this.#options
    if (holdings.hasAnswered(recall.workerId, recall.taskId)) return
    for (const listener of this.#listeners) listener(recall)
    if (custody.wake(recall.workerId)) holdings.addRecall(recall)
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
