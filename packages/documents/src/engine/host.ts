import { join } from 'node:path'
import type { Log } from '@impresario/core'
import { createOrchestrator } from '@impresario/server/embedded'
import type { Client, Orchestrator } from '@impresario/server/embedded'
import { TransientError } from '@impresario/worker'
import type { DocumentsConfig } from '../config/config.ts'
import type { DocumentParser } from '../parsing/parser.ts'
import { findOcr } from '../parsing/ocr.ts'
import { ProcessParser } from '../parsing/process-parser.ts'
import { documentBlueprint } from './blueprint.ts'
import { LocalWorkerPool } from './worker-pool.ts'
import type { TaskHandlers, WorkerPool } from './worker-pool.ts'

/** What an index needs to be kept up to date: somewhere to keep its jobs, workers that do them, and a parser. */
export interface Host {
  readonly parser: DocumentParser
  /** The name of this process among all that share the storage. */
  readonly instance: string
  client(owner: string): Client
  /** Workers for the tasks of one owner. */
  pool(owner: string, handlers: TaskHandlers): WorkerPool
  start(): Promise<void>
  stop(): Promise<void>
}

export interface HostOptions {
  readonly config: DocumentsConfig
  readonly log: Log
  readonly shutdownMs: number
  /** Instead of the one in processes of its own. */
  readonly parser?: DocumentParser
}

/** One index with an orchestrator of its own, in the same directory. */
export class OwnHost implements Host {
  readonly parser: DocumentParser
  /** No other process has its storage. Always the same, so that the next process goes on at once with what this one leaves. */
  readonly instance = 'own'
  readonly #options: HostOptions
  readonly #orchestrator: Orchestrator

  constructor(directory: string, options: HostOptions) {
    this.#options = options
    this.#orchestrator = openOrchestrator(directory, options)
    this.parser = options.parser ?? openParser(options.config)
  }

  client(owner: string): Client {
    return this.#orchestrator.client({ id: owner })
  }

  pool(_owner: string, handlers: TaskHandlers): WorkerPool {
    return openPool(this.#orchestrator, handlers, this.instance, this.#options)
  }

  start(): Promise<void> {
    return this.#orchestrator.start()
  }

  async stop(): Promise<void> {
    await this.#orchestrator.stop()
    await this.parser.close()
  }
}

/** Opens the index of an owner, when a task comes for one that is not open yet. */
type OpenOwner = (owner: string) => Promise<void>

/** Many indexes on one orchestrator: they share its workers and the parser, and each task goes to the index of its owner. */
export class SharedHost implements Host {
  readonly parser: DocumentParser
  readonly instance: string
  readonly #orchestrator: Pick<Orchestrator, 'client' | 'localTransport'>
  readonly #handlers = new Map<string, TaskHandlers>()
  readonly #open: OpenOwner
  readonly #pool: WorkerPool

  constructor(
    orchestrator: Pick<Orchestrator, 'client' | 'localTransport'>,
    open: OpenOwner,
    options: HostOptions & { readonly instance: string },
  ) {
    this.#orchestrator = orchestrator
    this.instance = options.instance
    this.#open = open
    this.parser = options.parser ?? openParser(options.config)
    this.#pool = openPool(
      orchestrator,
      {
        parse: async (input, task) => (await this.#of(input.owner)).parse(input, task),
        index: async (input, task) => (await this.#of(input.owner)).index(input, task),
        update: async (input, task) => (await this.#of(input.owner)).update(input, task),
        delete: async (input, task) => (await this.#of(input.owner)).delete(input, task),
      },
      options.instance,
      options,
    )
  }

  client(owner: string): Client {
    return this.#orchestrator.client({ id: owner })
  }

  pool(owner: string, handlers: TaskHandlers): WorkerPool {
    return {
      start: async () => {
        this.#handlers.set(owner, handlers)
      },
      stop: async () => {
        this.#handlers.delete(owner)
      },
    }
  }

  start(): Promise<void> {
    return this.#pool.start()
  }

  /** No task is under way when it resolves. The orchestrator belongs to others. */
  stop(): Promise<void> {
    return this.#pool.stop()
  }

  async close(): Promise<void> {
    await this.parser.close()
  }

  async #of(owner: string): Promise<TaskHandlers> {
    if (!this.#handlers.has(owner)) await this.#open(owner)
    const handlers = this.#handlers.get(owner)
    if (handlers === undefined) throw new TransientError('The index of this client is not open.')
    return handlers
  }
}

export function workersOf({ engine: { workers, limits } }: DocumentsConfig): number {
  return Math.min(workers.count, limits.max_concurrent_files)
}

function openPool(
  orchestrator: Pick<Orchestrator, 'localTransport'>,
  handlers: TaskHandlers,
  instance: string,
  { config, log, shutdownMs }: HostOptions,
): WorkerPool {
  return new LocalWorkerPool({
    instance,
    transport: orchestrator.localTransport(),
    concurrency: workersOf(config),
    handlers,
    // The engine gives up first, and says so.
    shutdownMs: shutdownMs + 1_000,
    log: { ...log, info: log.debug.bind(log) },
  })
}

function openParser({ engine: { limits }, ocr }: DocumentsConfig): ProcessParser {
  return new ProcessParser({
    processesMax: limits.parse_processes,
    timeoutMs: limits.parse_timeout,
    memoryBytes: limits.parse_memory,
    limits: { textCharsMax: limits.text_chars, unpackedBytesMax: limits.unpacked_size },
    ocr: findOcr(ocr),
  })
}

function openOrchestrator(directory: string, { config, log }: HostOptions): Orchestrator {
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
