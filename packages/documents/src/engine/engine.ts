import { stat } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '@impresario/core'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import type { DocumentsConfig } from '../config/config.ts'
import type { FileRecord, Indexer, IndexRequest } from '../index/indexer.ts'
import type { DocumentParser } from '../parsing/parser.ts'
import { mayBeDocument } from '../parsing/kind.ts'
import { nativePath, shownPath } from '../paths.ts'
import { TOKENIZER_VERSION } from '../text/tokens.ts'
import type { FileMonitor } from '../watching/monitor.ts'
import { HealthChecks } from './health-checks.ts'
import { Intake } from './intake.ts'
import { PRIORITIES, priorityRule } from './priority.ts'
import type { EngineState, EngineStats, EngineStatus } from './state.ts'
import type { Statistics } from './statistics.ts'
import type { Change, EndedTask, FileTask, TaskQueue } from './task.ts'
import { validateFile } from './validation.ts'
import type { WorkerPool } from './worker-pool.ts'

export interface EngineParts {
  readonly monitor: FileMonitor
  readonly parser: DocumentParser
  readonly indexer: Indexer
  readonly queue: TaskQueue
  readonly pool: WorkerPool
  readonly config: DocumentsConfig
  readonly statistics: Statistics
  readonly log: Log
  /** Takes in a file, or everything under a folder. */
  readonly add: (path: string) => Promise<unknown>
}

/** How often requests of other processes are looked for. */
const REQUESTS_MS = 250

/**
 * Brings the parts together: what the monitor notices goes through the intake into the queue, workers take it from there.
 *
 * starting → running → stopping → stopped; `error` when a part does not start.
 */
export class DocumentEngine {
  readonly #parts: EngineParts
  readonly #intake: Intake
  readonly #health: HealthChecks
  readonly #priority: ReturnType<typeof priorityRule>
  #status: EngineStatus = 'stopped'
  #startTime: Date | undefined
  #requests: NodeJS.Timeout | undefined
  /** Notes about files that are held back, until they are written. */
  readonly #holding = new Map<string, Promise<void>>()

  /** Notes about tasks that have ended, until they are written. */
  readonly #ending = new Set<Promise<void>>()

  constructor(parts: EngineParts) {
    this.#parts = parts
    this.#priority = priorityRule(parts.config)
    this.#intake = new Intake(parts.queue, (path, change) => this.#prepare(path, change))
    parts.queue.onEnded((task) => {
      const noted = this.#ended(task)
        .catch((error: unknown) => parts.log.error('the end of a task could not be noted', { reason: String(error) }))
        .finally(() => this.#ending.delete(noted))
      this.#ending.add(noted)
    })
    const { monitor, parser, indexer, config, log } = parts
    this.#health = new HealthChecks({ monitor, parser, indexer, settings: config.engine.health_check, log })
  }

  get #readsPictures(): boolean {
    return this.#parts.parser.ocr?.is_on === true
  }

  get intake(): Intake {
    return this.#intake
  }

  async start(): Promise<void> {
    const { monitor, queue, pool, log } = this.#parts
    this.#status = 'starting'
    this.#startTime = new Date()
    try {
      this.#intake.resume(await queue.open())
      await pool.start()
      this.#status = 'running'
      await monitor.start(({ path, change }) => this.#notice(path, change))
    } catch (error) {
      this.#status = 'error'
      throw error
    }
    this.#health.start()
    this.#requests = setInterval(() => {
      void this.#serveRequests()
    }, REQUESTS_MS).unref()
    log.info('documents engine is running', { folders: this.#parts.config.folders.length })
  }

  /** No more files come in, what is under way may end, and at the deadline it is cut: the next start goes on with it. */
  async stop(timeoutMs: number): Promise<void> {
    if (this.#status === 'stopped' || this.#status === 'stopping') return
    const { monitor, queue, pool, log } = this.#parts
    this.#status = 'stopping'
    clearInterval(this.#requests)
    this.#health.stop()
    this.#intake.close()
    await monitor.stop().catch((error: unknown) => log.error('Failed to stop monitor', { reason: String(error) }))
    await queue.close()
    const deadline = new AbortController()
    const isInTime = await Promise.race([
      pool.stop().then(() => true),
      pause(timeoutMs, false, { signal: deadline.signal }).catch(() => false),
    ])
    deadline.abort()
    await Promise.all(this.#ending)
    if (isInTime) log.info('All workers stopped gracefully')
    else log.warn('Shutdown timeout reached, forcing stop')
    this.#status = 'stopped'
  }

  /** Submits one file by hand. Refuses what cannot be read, and a full queue; unless it is patient, also too much other work. */
  async processFile(path: string, { isPatient = false }: { readonly isPatient?: boolean } = {}): Promise<void> {
    const { queue, config } = this.#parts
    const facts = await validateFile(path, config.engine.limits.max_file_size, this.#readsPictures)
    const { size, maxSize } = queue.stats()
    if (size >= maxSize) {
      throw new ImpresarioError(
        'QUEUE_FULL',
        `failed to enqueue parse task: the queue is full (${maxSize} files wait).`,
      )
    }
    try {
      await this.#parts.indexer.mark(path, { status: 'pending', priority: this.#priority(path, facts) })
      await this.#intake.offer(path, 'present', isPatient)
    } catch (error) {
      if (isImpresarioError(error)) {
        throw new ImpresarioError(error.code, `failed to enqueue parse task: ${error.message}`, { cause: error })
      }
      throw error
    }
  }

  /** Whether a file of this name is worth a look. */
  mayRead(path: string): boolean {
    return mayBeDocument(path, this.#readsPictures)
  }

  /** A file keeps changing: it is shown as pending, and read when it is quiet. */
  hold(path: string): void {
    if (this.#status !== 'running' || !this.mayRead(path)) return
    const { indexer, log } = this.#parts
    const noted = indexer
      .mark(path, { status: 'pending' })
      .catch((error: unknown) =>
        log.warn('a file that is held back could not be noted', { path: shownPath(path), reason: String(error) }),
      )
      .finally(() => this.#holding.delete(path))
    this.#holding.set(path, noted)
  }

  /** Resolves when nothing that is known is left to do. */
  async idle(): Promise<void> {
    do {
      await this.#intake.idle()
      await Promise.all(this.#ending)
    } while (this.#status === 'running' && !this.#intake.isIdle)
  }

  getStatus(): EngineState {
    const { statistics, queue } = this.#parts
    const { size, enqueued, completed, failed } = queue.stats()
    return {
      status: this.#status,
      start_time: this.#startTime?.toISOString() ?? null,
      tasks_total: enqueued,
      tasks_done: completed,
      tasks_failed: failed,
      workers_busy: statistics.busy,
      queue_size: size,
      last_activity: statistics.lastActivity === undefined ? null : new Date(statistics.lastActivity).toISOString(),
    }
  }

  async getStats(): Promise<EngineStats> {
    const { indexer, queue, statistics } = this.#parts
    const { byStatus, documents } = await indexer.counts()
    const total = Object.values(byStatus).reduce((sum, count) => sum + count, 0)
    return {
      state: this.getStatus(),
      queue: queue.stats(),
      progress: { total, done: byStatus.completed + byStatus.failed },
      files: byStatus,
      documents,
      tasks_per_second: statistics.tasksPerSecond,
      components: this.#health.components(),
      ocr: this.#parts.parser.ocr ?? { is_on: false, reason: 'This parser does not recognise text in pictures.' },
    }
  }

  /** Looks at every part now; rejects with what is wrong. */
  async healthCheck(): Promise<void> {
    const broken = (await this.#health.check()).filter(({ isHealthy }) => !isHealthy)
    if (broken.length === 0) return
    const what = broken.map(({ name, problem }) => `${name}: ${problem ?? 'does not work'}`).join('; ')
    throw new ImpresarioError('INTERNAL', `Not healthy: ${what}`)
  }

  /** Reads failed files once more. */
  async retry(under?: string): Promise<number> {
    let after = ''
    let count = 0
    for (;;) {
      const page = await this.#parts.indexer.files({
        status: 'failed',
        after,
        ...(under === undefined ? {} : { under }),
      })
      for (const { path } of page) await this.#intake.offer(path, 'present')
      count += page.length
      const last = page.at(-1)
      if (last === undefined) return count
      after = last.path
    }
  }

  /** Whether a file needs no work. */
  isUpToDate(record: FileRecord, facts: { readonly size: number; readonly mtimeMs: number }): boolean {
    if (this.#intake.isBeingRead(record.path)) return true
    const isEnded = record.status === 'completed' || record.status === 'failed'
    return (
      isEnded &&
      record.size === facts.size &&
      record.mtimeMs === facts.mtimeMs &&
      record.tokenizer === TOKENIZER_VERSION
    )
  }

  async #notice(path: string, change: Change): Promise<void> {
    try {
      await this.#intake.offer(path, change)
    } catch (error) {
      // The next comparison finds it again.
      this.#parts.log.warn('a file could not be put into the queue', { path: shownPath(path), reason: String(error) })
    }
  }

  /** Validates a file and writes it down as pending; nothing when there is nothing to do. */
  async #prepare(path: string, change: Change): Promise<FileTask | undefined> {
    const { indexer, config } = this.#parts
    // In this order, or what it notes would stand last.
    await this.#holding.get(path)
    if (change === 'gone') {
      return (await indexer.file(path)) === undefined ? undefined : { path, change, priority: PRIORITIES.high }
    }
    if (!this.mayRead(path)) return undefined
    const { max_file_size: most } = config.engine.limits
    const facts = await validateFile(path, most, this.#readsPictures).catch(async (error: unknown) => {
      await this.#refuse(path, error)
    })
    if (facts === undefined) return undefined
    const record = await indexer.file(path)
    const isOutdated = record !== undefined && record.tokenizer !== TOKENIZER_VERSION && record.status === 'completed'
    const priority = isOutdated ? PRIORITIES.low : this.#priority(path, facts)
    await indexer.mark(path, { status: 'pending', priority })
    return { path, change, priority }
  }

  /** A file that is refused gets no task; its record says why. One that is gone needs none. */
  async #refuse(path: string, error: unknown): Promise<void> {
    const facts = await stat(nativePath(path)).catch(() => undefined)
    if (facts === undefined || !facts.isFile()) return
    const message = error instanceof Error ? error.message : String(error)
    await this.#parts.indexer.fail(path, facts, { status: 'failed', code: 'REFUSED', error: message })
  }

  /** A task that has used up its tries leaves its file in `retry`. */
  async #ended({ path, change, isCompleted, error }: EndedTask): Promise<void> {
    const { indexer, log } = this.#parts
    if (isCompleted || change === 'gone') return
    const record = await indexer.file(path)
    if (record === undefined || record.status === 'failed' || record.status === 'completed') return
    const facts = await stat(nativePath(path)).catch(() => ({ size: 0, mtimeMs: 0 }))
    const reason = record.error ?? error ?? 'The task failed.'
    await indexer.fail(path, facts, {
      status: 'failed',
      attempts: record.attempts,
      code: record.code ?? 'INTERNAL',
      error: reason,
    })
    log.error('document failed', { path: shownPath(path), reason, attempts: record.attempts })
  }

  async #serveRequests(): Promise<void> {
    const { indexer } = this.#parts
    try {
      for (const request of await indexer.takeRequests()) await this.#serve(request)
    } catch (error) {
      if (this.#status === 'running') this.#parts.log.warn('requests could not be read', { reason: String(error) })
    }
  }

  /** One that cannot be served does not take the others along. */
  async #serve({ kind, path }: IndexRequest): Promise<void> {
    const { indexer, monitor, add, log } = this.#parts
    try {
      if (kind === 'add') await add(path)
      else if (kind === 'retry') await this.retry(path === '' ? undefined : path)
      else {
        await indexer.invalidate(path === '' ? undefined : path)
        await monitor.rescan()
      }
    } catch (error) {
      log.warn('a request could not be served', { kind, file: shownPath(path), reason: String(error) })
    }
  }
}
