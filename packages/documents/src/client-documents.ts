import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Log, RunnableBlueprint } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { Orchestrator } from '@impresario/server/embedded'
import { documentsConfig } from './config/config.ts'
import type { DocumentsConfig } from './config/config.ts'
import { Documents } from './documents.ts'
import { documentBlueprint } from './engine/blueprint.ts'
import { SharedHost } from './engine/host.ts'
import { addedUp, metricsText } from './engine/metrics.ts'
import type { FileRecord, FileStatus } from './index/indexer.ts'
import { openPostgresIndex } from './index/postgres-index.ts'
import type { SearchOptions, SearchResult } from './index/search.ts'
import type { DocumentParser } from './parsing/parser.ts'

export interface ClientDocumentsOptions {
  /** Where the indexes are kept, one directory for each client. */
  readonly directory: string
  /** The address of a storage in PostgreSQL: the indexes are kept there, and every machine that shares it has them. */
  readonly postgresUrl?: string
  /** Its `clients` say which folders are whose. */
  readonly config?: DocumentsConfig
  readonly log?: Log
  readonly parser?: DocumentParser
}

const QUIET: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const SHUTDOWN_MS = 10_000

/**
 * The documents of many clients on one orchestrator: an index for each, so that nothing of one client can be found by another.
 *
 * new → start, when the orchestrator runs → stop, before it stops.
 */
export class ClientDocuments {
  /** To be registered with the orchestrator. */
  readonly blueprint: RunnableBlueprint
  readonly #options: ClientDocumentsOptions
  readonly #config: DocumentsConfig
  readonly #log: Log
  readonly #open = new Map<string, Promise<Documents>>()
  readonly #running = new Set<Documents>()
  #host: SharedHost | undefined

  constructor(options: ClientDocumentsOptions) {
    this.#options = options
    this.#config = options.config ?? documentsConfig()
    this.#log = options.log ?? QUIET
    this.blueprint = documentBlueprint(this.#config)
  }

  async start(orchestrator: Pick<Orchestrator, 'client' | 'localTransport'>): Promise<void> {
    const { parser } = this.#options
    const instance = instanceIn(this.#options.directory)
    const options = { config: this.#config, log: this.#log, shutdownMs: SHUTDOWN_MS, instance }
    const openOwner = async (owner: string): Promise<void> => {
      await this.of(owner)
    }
    this.#host = new SharedHost(orchestrator, openOwner, parser === undefined ? options : { ...options, parser })
    // The indexes first: workers may find tasks that an earlier process left.
    await Promise.all(Object.keys(this.#config.clients).map((clientId) => this.of(clientId)))
    await this.#host.start()
  }

  async stop(): Promise<void> {
    await this.#host?.stop()
    for (const opened of this.#open.values()) await (await opened).stop()
    await this.#host?.close()
    this.#open.clear()
    this.#running.clear()
  }

  /** The index of a client; opened when it is first asked for. */
  of(clientId: string): Promise<Documents> {
    let opened = this.#open.get(clientId)
    if (opened === undefined) {
      opened = this.#start(clientId)
      this.#open.set(clientId, opened)
      opened.catch(() => this.#open.delete(clientId))
    }
    return opened
  }

  async search(clientId: string, query: string, page: SearchOptions): Promise<SearchResult> {
    return (await this.of(clientId)).search(query, page)
  }

  async text(clientId: string, id: number): Promise<{ readonly path: string; readonly text: string } | undefined> {
    return (await this.of(clientId)).indexer.text(id)
  }

  async files(
    clientId: string,
    { status, after, limit }: { readonly status?: string; readonly after?: string; readonly limit: number },
  ): Promise<readonly FileRecord[]> {
    const query = { limit, ...(after === undefined ? {} : { after }), ...(isStatus(status) ? { status } : {}) }
    return (await this.of(clientId)).files(query)
  }

  async stats(clientId: string): Promise<Readonly<Record<string, unknown>>> {
    return { ...(await (await this.of(clientId)).stats()) }
  }

  async submit(clientId: string, path: string): Promise<void> {
    const full = resolve(path)
    const folders = this.#foldersOf(clientId)
    if (!folders.some((folder) => full.startsWith(`${folder}/`))) {
      throw new ImpresarioError('FORBIDDEN', 'This file is in none of your folders.')
    }
    await mustBeInside(full, folders)
    await (await this.of(clientId)).engine.processFile(full)
  }

  async retry(clientId: string): Promise<number> {
    return (await this.of(clientId)).retry()
  }

  /** Added up over all clients, whose names are no labels: there may be many of them. */
  metricsText(): string {
    const all = [...this.#running].map((documents) => documents.metrics())
    return all.length === 0 ? '' : metricsText(addedUp(all))
  }

  #foldersOf(clientId: string): readonly string[] {
    return (this.#config.clients[clientId]?.folders ?? []).map((folder) => resolve(folder))
  }

  async #start(clientId: string): Promise<Documents> {
    const host = this.#host
    if (host === undefined) throw new ImpresarioError('SHUTTING_DOWN', 'The documents app does not run.')
    const { postgresUrl: url } = this.#options
    const indexer = url === undefined ? {} : { indexer: await openPostgresIndex({ url, owner: clientId }) }
    const documents = new Documents({
      ...indexer,
      directory: join(this.#options.directory, directoryName(clientId)),
      folders: this.#foldersOf(clientId),
      config: { ...this.#config, folders: [] },
      owner: clientId,
      host,
      log: this.#log,
    })
    await documents.start()
    this.#running.add(documents)
    return documents
  }
}

/** Links on the way to a file may lead out of the folder: into one of another client, for example. */
async function mustBeInside(file: string, folders: readonly string[]): Promise<void> {
  const place = await realpath(dirname(file)).catch(() => undefined)
  const allowed = await Promise.all(folders.map((folder) => realpath(folder).catch(() => folder)))
  if (place === undefined || allowed.some((folder) => place === folder || place.startsWith(`${folder}/`))) return
  throw new ImpresarioError('FORBIDDEN', 'This file is in none of your folders.')
}

/** The name of this machine's documents among all that share the storage; it stays the same when the process restarts. */
function instanceIn(directory: string): string {
  const file = join(resolve(directory), 'instance')
  mkdirSync(resolve(directory), { recursive: true })
  try {
    writeFileSync(file, randomUUID(), { flag: 'wx' })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
  return readFileSync(file, 'utf8').trim()
}

/** Ids of clients are any text; names of directories are not. */
function directoryName(clientId: string): string {
  const readable = clientId.replaceAll(/[^\w-]/g, '_').slice(0, 40)
  return `${readable}-${createHash('sha256').update(clientId).digest('hex').slice(0, 16)}`
}

function isStatus(status: string | undefined): status is FileStatus {
  return status !== undefined && ['pending', 'running', 'completed', 'failed', 'retry'].includes(status)
}
