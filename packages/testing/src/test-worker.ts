import { createWorker } from '@impresario/worker'
import type { Worker, WorkerOptions } from '@impresario/worker'
import { WorkerLine } from './worker-line.ts'
import type { Delivery, LineParts } from './worker-line.ts'

export interface TestWorkerOptions extends Omit<
  WorkerOptions,
  'transport' | 'url' | 'token' | 'orchestrators' | 'orchestratorMode' | 'healthPort' | 'skillsDir'
> {}

/** A worker of the test kit: the SDK's own worker, with a connection that can be cut. */
export class TestWorker {
  readonly worker: Worker
  readonly line: WorkerLine
  readonly #concurrency: number

  constructor(options: TestWorkerOptions, parts: LineParts) {
    this.line = new WorkerLine(parts)
    const concurrency = options.concurrency ?? 10
    this.#concurrency = concurrency
    // The pauses of the SDK go by the clock of the machine, so they are short.
    const pauses = { idlePollMs: 0, pollRetryMs: 1, pollRetryMsMax: 1, registrationRetryMs: 1, resultRetryMs: 1 }
    const beats = { heartbeatMs: 1_000, heartbeatDebounceMs: 1, heartbeatCooldownMs: 0, shutdownMs: 1_000 }
    const log = { debug: ignore, info: ignore, warn: ignore, error: ignore }
    this.worker = createWorker({ log, ...pauses, ...beats, ...options, concurrency, transport: this.line })
  }

  get id(): string {
    return this.worker.id
  }

  /** All tasks that it has got so far. */
  get deliveries(): readonly Delivery[] {
    return this.line.deliveries
  }

  /** Whether it waits for tasks, or has as many as it can. */
  get isReady(): boolean {
    return this.line.isCut || this.line.isPolling || this.line.held.length >= this.#concurrency
  }

  /** It dies: results of what it is doing never arrive, and its tasks are given to others once their leases have ended. */
  crash(): void {
    this.line.cut()
    void this.worker.stop()
  }

  /** It finishes its tasks and signs off. */
  async stop(): Promise<void> {
    await this.worker.stop()
    this.line.cut()
  }
}

function ignore(): void {}
