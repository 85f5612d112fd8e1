import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Log } from '@impresario/core'
import { createOrchestrator } from '@impresario/server/embedded'
import type { Orchestrator } from '@impresario/server/embedded'
import { documentsConfig } from './config/config.ts'
import type { DocumentsConfig } from './config/config.ts'
import { documentBlueprint } from './engine/blueprint.ts'
import { DocumentEngine } from './engine/engine.ts'
import { JobQueue } from './engine/job-queue.ts'
import { metricsOf } from './engine/metrics.ts'
import type { Metric } from './engine/metrics.ts'
import { Pipeline } from './engine/pipeline.ts'
import type { EngineState, EngineStats } from './engine/state.ts'
import { Statistics } from './engine/statistics.ts'
import type { TaskFigures } from './engine/statistics.ts'
import type { TaskQueue } from './engine/task.ts'
import { LocalWorkerPool } from './engine/worker-pool.ts'
import type { WorkerPool } from './engine/worker-pool.ts'
import type { FileQuery, FileRecord, Indexer } from './index/indexer.ts'
import type { SearchOptions, SearchResult } from './index/search.ts'
import { SqliteIndex } from './index/sqlite-index.ts'
import type { DocumentParser } from './parsing/parser.ts'
import { ProcessParser } from './parsing/process-parser.ts'
import { FolderMonitor } from './watching/folder-monitor.ts'
import { ignoreRule } from './watching/ignored.ts'
import type { FileMonitor } from './watching/monitor.ts'
import { walk } from './watching/walk.ts'
import { isDirectory } from './engine/validation.ts'

export interface DocumentsOptions {
  /** Where the index is kept, and the jobs that are under way. */
  readonly directory: string
  /** Folders to watch; none for a program that only adds files and searches. */
  readonly folders?: readonly string[]
  readonly config?: DocumentsConfig
  readonly log?: Log
  /** Longest wait for what is under way at the end. */
  readonly shutdownTimeoutMs?: number
  /** Parts of your own, instead of ours. */
  readonly parser?: DocumentParser
  readonly indexer?: Indexer
  readonly monitor?: FileMonitor
  readonly queue?: TaskQueue
  readonly pool?: WorkerPool
}

const SHUTDOWN_MS = 10_000
/** A file that cannot be read so short a time after its last change may not be whole yet. */
const FRESH_MS = 5_000

const QUIET: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/** The documents app: watches folders, reads what is in them, and finds it. */
export function createDocuments(options: DocumentsOptions): Documents {
  return new Documents(options)
}

/** new → start → running → stop → stopped, for good. */
export class Documents {
  readonly engine: DocumentEngine
  readonly indexer: Indexer
  readonly #parser: DocumentParser
  readonly #monitor: FileMonitor
  readonly #orchestrator: Orchestrator
  readonly #statistics = new Statistics()
  readonly #isIgnored: (path: string) => boolean
  readonly #shutdownMs: number
  readonly #workers: number
  #keepAlive: NodeJS.Timeout | undefined
  #stopping: Promise<void> | undefined

  constructor(options: DocumentsOptions) {
    const directory = resolve(options.directory)
    mkdirSync(directory, { recursive: true })
    const log = options.log ?? QUIET
    const given = options.config ?? documentsConfig()
    const folders = [...new Set([...given.folders, ...(options.folders ?? [])].map((folder) => resolve(folder)))]
    const config = { ...given, folders }
    this.#shutdownMs = options.shutdownTimeoutMs ?? SHUTDOWN_MS
    this.#isIgnored = ignoreRule(config.ignore, directory)
    // First, because it holds the lock of the directory: whatever else is opened is opened once.
    this.#orchestrator = openOrchestrator(directory, config, log)
    this.indexer = options.indexer ?? new SqliteIndex(directory)
    this.#parser = options.parser ?? openParser(config)
    const parts = { parser: this.#parser, indexer: this.indexer, statistics: this.#statistics, log }
    // A file that is added by hand is taken as it is.
    const pipeline = new Pipeline({ ...parts, freshMs: folders.length === 0 ? 0 : FRESH_MS })
    const { workers, queue, limits } = config.engine
    this.#workers = Math.min(workers.count, limits.max_concurrent_files)
    this.#monitor = options.monitor ?? this.#openMonitor(config, log)
    this.engine = new DocumentEngine({
      ...parts,
      config,
      monitor: this.#monitor,
      queue: options.queue ?? new JobQueue(this.#orchestrator.client(), queue.max_size),
      pool:
        options.pool ??
        new LocalWorkerPool({
          transport: this.#orchestrator.localTransport(),
          concurrency: this.#workers,
          handlers: pipeline.handlers(),
          // The engine gives up first, and says so.
          shutdownMs: this.#shutdownMs + 1_000,
          log: { ...log, info: log.debug.bind(log) },
        }),
    })
  }

  async start(): Promise<void> {
    // Its parts wait for events without holding the process; as long as it runs, it does.
    this.#keepAlive = setInterval(() => undefined, 60_000)
    try {
      await this.#orchestrator.start()
      await this.engine.start()
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** Safe to call twice. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    await this.engine.stop(this.#shutdownMs)
    await this.#orchestrator.stop()
    await this.#parser.close()
    await this.indexer.close()
    clearInterval(this.#keepAlive)
  }

  /**
   * Takes in a file, or everything under a folder, documents that are gone from it included. Resolves when all is in the queue;
   * `idle` resolves when all is read.
   */
  async add(path: string): Promise<{ readonly found: number }> {
    const full = resolve(path)
    if (!(await isDirectory(full))) {
      await this.engine.processFile(full)
      return { found: 1 }
    }
    let found = 0
    const monitor = this.#openMonitor({ ...documentsConfig(), folders: [full] }, QUIET)
    for await (const file of walk(full, this.#isIgnored)) if (!file.isDirectory) found += 1
    await monitor.compareOnce(({ path: one, change }) => this.engine.intake.offer(one, change))
    return { found }
  }

  idle(): Promise<void> {
    return this.engine.idle()
  }

  search(query: string, options: SearchOptions = {}): Promise<SearchResult> {
    return this.indexer.search(query, options)
  }

  file(path: string): Promise<FileRecord | undefined> {
    return this.indexer.file(resolve(path))
  }

  files(query: FileQuery = {}): Promise<readonly FileRecord[]> {
    return this.indexer.files(query)
  }

  retry(under?: string): Promise<number> {
    return this.engine.retry(under === undefined ? undefined : resolve(under))
  }

  /** Reads everything again. */
  async reindex(): Promise<number> {
    const count = await this.indexer.invalidate()
    let after = ''
    for (;;) {
      const page = await this.indexer.files({ after })
      for (const { path } of page) await this.engine.intake.offer(path, 'present')
      const last = page.at(-1)
      if (last === undefined) return count
      after = last.path
    }
  }

  status(): EngineState {
    return this.engine.getStatus()
  }

  stats(): Promise<EngineStats> {
    return this.engine.getStats()
  }

  figures(): TaskFigures {
    return this.#statistics.figures()
  }

  metrics(): readonly Metric[] {
    const { tasksPerSecond } = this.#statistics
    return metricsOf({ state: this.status(), figures: this.figures(), tasksPerSecond, workers: this.#workers })
  }

  #openMonitor({ folders, watch }: DocumentsConfig, log: Log): FolderMonitor {
    return new FolderMonitor({
      folders,
      isIgnored: this.#isIgnored,
      quietMs: watch.quiet,
      rescanMs: watch.rescan,
      pollMs: watch.poll,
      known: (path) => this.indexer.file(path),
      knownUnder: (folder, after) => this.indexer.files({ under: folder, after }),
      isUpToDate: (record, facts) => this.engine.isUpToDate(record, facts),
      log,
    })
  }
}

function openParser({ engine: { limits } }: DocumentsConfig): ProcessParser {
  return new ProcessParser({
    processesMax: limits.parse_processes,
    timeoutMs: limits.parse_timeout,
    memoryBytes: limits.parse_memory,
    limits: { textCharsMax: limits.text_chars, unpackedBytesMax: limits.unpacked_size },
  })
}

/** Jobs, tries and history are the orchestrator's; it lives in the same directory. */
function openOrchestrator(directory: string, config: DocumentsConfig, log: Log): Orchestrator {
  return createOrchestrator({
    blueprints: [documentBlueprint(config)],
    settings: {
      storageUrl: `file:${join(directory, 'jobs')}`,
      historyDatabaseUri: 'off',
      jobRetentionDays: 1,
      executorMaxConcurrentJobs: 100,
    },
    log: { ...log, info: log.debug.bind(log), warn: log.debug.bind(log) },
  })
}
