import type { Log } from '@impresario/core'
import { createWorker } from '@impresario/worker'
import type { HandlersFor, Worker, WorkerOptions } from '@impresario/worker'
import { PLACE_PROPERTY } from './blueprint.ts'
import { documentTasks } from './contract.ts'

/** Takes tasks and does them, so many at a time. Replaceable: an option of `createDocuments`. */
export interface WorkerPool {
  start(): Promise<void>
  /** Takes nothing new, and waits a while for what is under way. */
  stop(): Promise<void>
}

export type TaskHandlers = HandlersFor<typeof documentTasks>

export interface PoolOptions {
  readonly transport: NonNullable<WorkerOptions['transport']>
  readonly concurrency: number
  /** The name of this process among all that share the storage. */
  readonly instance: string
  readonly handlers: TaskHandlers
  /** Longest wait for what is under way at the end. */
  readonly shutdownMs: number
  readonly log: Log
}

/**
 * Workers of the orchestrator, in this process: one reads files, one writes into the index. Apart, because documents that were
 * read and wait for the index take memory, and must not stand in one line behind files that nobody has read yet.
 */
export class LocalWorkerPool implements WorkerPool {
  readonly #workers: readonly Worker[]

  constructor({ transport, concurrency, instance, handlers, shutdownMs, log }: PoolOptions) {
    const { parse, index, update, delete: remove } = documentTasks
    const named = (name: string): Worker =>
      createWorker({
        transport,
        concurrency,
        id: `documents-${name}-${instance}`,
        type: 'documents',
        extra: { [PLACE_PROPERTY]: instance },
        telemetry: false,
        shutdownMs,
        log,
      })
    const reader = named('reader')
    reader.handle({ parse }, { parse: handlers.parse })
    const writer = named('writer')
    writer.handle(
      { index, update, delete: remove },
      { index: handlers.index, update: handlers.update, delete: handlers.delete },
    )
    this.#workers = [reader, writer]
  }

  async start(): Promise<void> {
    for (const worker of this.#workers) await worker.start()
  }

  async stop(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.stop()))
  }
}
