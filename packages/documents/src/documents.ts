import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Log } from '@impresario/core'
import { documentsConfig } from './config/config.ts'
import type { DocumentsConfig } from './config/config.ts'
import { DocumentEngine } from './engine/engine.ts'
import { OwnHost, workersOf } from './engine/host.ts'
import type { Host } from './engine/host.ts'
import { JobQueue } from './engine/job-queue.ts'
import { metricsOf } from './engine/metrics.ts'
import type { Metric } from './engine/metrics.ts'
import { Pipeline } from './engine/pipeline.ts'
import type { EngineState, EngineStats } from './engine/state.ts'
import { Statistics } from './engine/statistics.ts'
import type { TaskFigures } from './engine/statistics.ts'
import type { TaskQueue } from './engine/task.ts'
import type { WorkerPool } from './engine/worker-pool.ts'
import type { FileQuery, FileRecord, Indexer } from './index/indexer.ts'
import type { SearchOptions, SearchResult } from './index/search.ts'
import { SqliteIndex } from './index/sqlite-index.ts'
import type { DocumentParser } from './parsing/parser.ts'
import { FolderMonitor } from './watching/folder-monitor.ts'
import { ignoreRule } from './watching/ignored.ts'
import type { FileMonitor } from './watching/monitor.ts'
import { walk } from './watching/walk.ts'
import { isDirectory, withoutLink } from './engine/validation.ts'

export interface DocumentsOptions {
  /** Where the index is kept, and the jobs that are under way. */
  readonly directory: string
  /** Folders to watch; none for a program that only adds files and searches. */
  readonly folders?: readonly string[]
  readonly config?: DocumentsConfig
  readonly log?: Log
  /** Longest wait for what is under way at the end. */
  readonly shutdownTimeoutMs?: number
  /** Whose index it is; `default` without a name. */
  readonly owner?: string
  /** Where several indexes share an orchestrator: whoever gives it starts it first and stops it last. */
  readonly host?: Host
  /** Parts of your own, instead of ours. */
  readonly parser?: DocumentParser
  readonly indexer?: Indexer
  readonly monitor?: FileMonitor
  readonly queue?: TaskQueue
  readonly pool?: WorkerPool
}

export interface Added {
  /** Files, without those that are ignored. */
  readonly found: number
  /** Of these, those of kinds that have no text, such as films. */
  readonly skipped: number
  /** Folders that cannot be read. */
  readonly unreadable: readonly string[]
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
  readonly #ownHost: Host | undefined
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
    const hostOptions = { config, log, shutdownMs: this.#shutdownMs }
    // First, because it holds the lock of the directory: whatever else is opened is opened once.
    const host =
      options.host ??
      new OwnHost(directory, options.parser === undefined ? hostOptions : { ...hostOptions, parser: options.parser })
    this.#ownHost = options.host === undefined ? host : undefined
    this.indexer = options.indexer ?? new SqliteIndex(directory)
    const { parser } = host
    const parts = { parser, indexer: this.indexer, statistics: this.#statistics, log }
    // A file that is added by hand is taken as it is.
    const pipeline = new Pipeline({ ...parts, freshMs: folders.length === 0 ? 0 : FRESH_MS, instance: host.instance })
    const owner = options.owner ?? 'default'
    this.#workers = workersOf(config)
    const queueOptions = {
      owner,
      maxSize: config.engine.queue.max_size,
      ...(options.host === undefined || this.indexer.isShared === true ? {} : { home: host.instance }),
    }
    this.engine = new DocumentEngine({
      ...parts,
      config,
      monitor: options.monitor ?? this.#openMonitor(config, log),
      queue: options.queue ?? new JobQueue(host.client(owner), queueOptions),
      pool: options.pool ?? host.pool(owner, pipeline.handlers()),
      add: (path) => this.add(path),
    })
  }

  async start(): Promise<void> {
    // Its parts wait for events without holding the process; as long as it runs, it does.
    this.#keepAlive = setInterval(() => undefined, 60_000)
    try {
      await this.#ownHost?.start()
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
    await this.#ownHost?.stop()
    await this.indexer.close()
    clearInterval(this.#keepAlive)
  }

  /**
   * Takes in a file, or everything under a folder, documents that are gone from it included. Resolves when all is in the queue;
   * `idle` resolves when all is read.
   */
  async add(path: string): Promise<Added> {
    const full = resolve(path)
    if (!(await isDirectory(full))) {
      await this.engine.processFile(await withoutLink(full), { isPatient: true })
      return { found: 1, skipped: 0, unreadable: [] }
    }
    let found = 0
    let skipped = 0
    const unreadable: string[] = []
    const monitor = this.#openMonitor({ ...documentsConfig(), folders: [full] }, QUIET)
    for await (const { path: one, isDirectory: isFolder } of walk(full, this.#isIgnored, (at) => unreadable.push(at))) {
      if (isFolder) continue
      found += 1
      if (!this.engine.mayRead(one)) skipped += 1
    }
    await monitor.compareOnce(({ path: one, change }) => this.engine.intake.offer(one, change))
    return { found, skipped, unreadable }
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
      held: (path) => this.engine.hold(path),
      log,
    })
  }
}
