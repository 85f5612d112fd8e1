import { watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type { Log } from '@impresario/core'
import { isImpresarioError } from '@impresario/protocol'
import type { Settings } from '../config/config.ts'
import { loadCredentials } from './credentials.ts'
import type { Credentials } from './credentials.ts'

/** The outcome of a reload. Counts only: names of clients are private. */
interface ReloadReport {
  readonly clients: number
  readonly workers: number
}

export type Reloaded =
  | ({ readonly status: 'reloaded' } & ReloadReport)
  /** The files are as they should not be; what was in force before still is. */
  | { readonly status: 'refused'; readonly error: string }

export interface CredentialChange {
  readonly after: Credentials
  /** Whether this worker has lost a token, or all of them. */
  hasLostWorker(workerId: string): boolean
}

/**
 * The credentials in force. Read at the start, when a broken file stops it; reloaded on request, when a broken file
 * changes nothing. A reload takes effect for the next request, whole or not at all.
 */
export class CredentialBook {
  readonly #settings: Settings
  readonly #log: Log
  readonly #listeners = new Set<(change: CredentialChange) => void>()
  #current: Credentials

  constructor(settings: Settings, log: Log, current: Credentials = loadCredentials(settings)) {
    this.#settings = settings
    this.#log = log
    this.#current = current
  }

  get current(): Credentials {
    return this.#current
  }

  /** Is told after every reload that went through. Those who hold connections open end those that lost their token. */
  onChange(listener: (change: CredentialChange) => void): void {
    this.#listeners.add(listener)
  }

  /** Never throws: the caller of a reload is told why it was refused. */
  reload(): Reloaded {
    let after: Credentials
    try {
      after = loadCredentials(this.#settings)
    } catch (error) {
      if (!isImpresarioError(error)) throw error
      this.#log.error('the files of clients and workers were not reloaded; the old ones stay', { error: error.message })
      return { status: 'refused', error: error.message }
    }
    const before = this.#current
    this.#current = after
    const hasLostWorker = (id: string): boolean => after.workers.hasLost(id, before.workers)
    for (const listener of this.#listeners) listener({ after, hasLostWorker })
    const report = { clients: after.clients.length, workers: after.workers.size }
    this.#log.info('clients and workers reloaded', report)
    return { status: 'reloaded', ...report }
  }

  /** Reloads when one of the files changes. Gives back how to end it. */
  watch(): () => void {
    const { clientsConfigPath, workersConfigPath } = this.#settings
    const paths = [clientsConfigPath, workersConfigPath].filter((path) => path !== '').map((path) => resolve(path))
    return watchFiles(paths, () => this.reload())
  }
}

/** Editors write in several steps, and some replace the file: what is watched is its directory, and the last step counts. */
const CALM_MS = 200

function watchFiles(paths: readonly string[], changed: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  const watchers = new Map<string, FSWatcher>()
  const names = new Set(paths.map((path) => basename(path)))
  for (const directory of new Set(paths.map((path) => dirname(path)))) {
    const watcher = watch(directory, { persistent: false }, (_event, name) => {
      // A mounted secret (Kubernetes) is changed by a link beside it that has another name.
      if (name !== null && !names.has(name) && !name.startsWith('..')) return
      clearTimeout(timer)
      timer = setTimeout(changed, CALM_MS)
      timer.unref()
    })
    watcher.on('error', () => watcher.close())
    watchers.set(directory, watcher)
  }
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers.values()) watcher.close()
  }
}
