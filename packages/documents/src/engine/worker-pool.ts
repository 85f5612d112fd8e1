import type { Log } from '@impresario/core'
import { createWorker } from '@impresario/worker'
import type { HandlersFor, Worker, WorkerOptions } from '@impresario/worker'
import { documentTasks } from './contract.ts'

/** Takes tasks and does them, so many at a time. Replaceable: an option of `createDocuments`. */
export interface WorkerPool {
  start(): Promise<void>
  /** Takes nothing new, and waits a while for what is under way. */
  stop(): Promise<void>
}

export interface PoolOptions {
  readonly transport: NonNullable<WorkerOptions['transport']>
  readonly concurrency: number
  readonly handlers: HandlersFor<typeof documentTasks>
  /** Longest wait for what is under way at the end. */
  readonly shutdownMs: number
  readonly log: Log
}

/** Workers of the orchestrator, in this process. */
export class LocalWorkerPool implements WorkerPool {
  readonly #worker: Worker

  constructor({ transport, concurrency, handlers, shutdownMs, log }: PoolOptions) {
    this.#worker = createWorker({
      transport,
      concurrency,
      id: `documents-${process.pid}`,
      type: 'documents',
      telemetry: false,
      shutdownMs,
      log,
    })
    this.#worker.handle(documentTasks, handlers)
  }

  async start(): Promise<void> {
    await this.#worker.start()
  }

  async stop(): Promise<void> {
    await this.#worker.stop()
  }
}
