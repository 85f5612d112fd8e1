/** The complete path of a task, with an orchestrator and a worker in one process. */
import type { Storage } from '@impresario/core'
import { createOrchestrator } from '@impresario/server/embedded'
import type { Orchestrator } from '@impresario/server/embedded'
import { createWorker } from '@impresario/worker'
import { setTimeout as pause } from 'node:timers/promises'
import { noop } from '../blueprints/workload.ts'
import { WORKER_LOG } from '../contestants/impresario.ts'
import { now } from '../measure.ts'
import { fill } from './depth.ts'
import type { Workload } from './workload.ts'

/** Tasks in progress at once. */
const CONCURRENCY = 64
/** This many new jobs are added when as many have been done. It costs both queues the same. */
const REPLACED = 100
/** Until the worker has registered and its first tasks are done. */
const WARM_UP_MS = 250

export class Works {
  readonly #storage: Storage
  readonly #workload: Workload
  #orchestrator: Promise<Orchestrator> | undefined

  constructor(storage: Storage, workload: Workload) {
    this.#storage = storage
    this.#workload = workload
  }

  /** Works for a while. The queue keeps its length. */
  async slice(ms: number): Promise<{ readonly done: number; readonly ms: number }> {
    this.#orchestrator ??= this.#open()
    const orchestrator = await this.#orchestrator
    let done = 0
    let filling = Promise.resolve()
    const log = WORKER_LOG
    const worker = createWorker({
      transport: orchestrator.localTransport(),
      id: 'bench',
      concurrency: CONCURRENCY,
      log,
    })
    worker.task('noop', () => {
      done += 1
      if (done % REPLACED === 0) filling = filling.then(() => fill(this.#storage, this.#workload, REPLACED))
      return {}
    })
    await worker.start()
    await pause(WARM_UP_MS)
    const begin = now()
    const before = done
    await pause(ms)
    const found = { done: done - before, ms: now() - begin }
    await worker.stop()
    await filling
    await fill(this.#storage, this.#workload, done % REPLACED)
    return found
  }

  async #open(): Promise<Orchestrator> {
    const settings = { logLevel: 'error' } as const
    const opened = createOrchestrator({ storage: this.#storage, blueprints: [noop], settings })
    await opened.start()
    return opened
  }
}
