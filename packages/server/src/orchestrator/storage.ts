import { hostname } from 'node:os'
import type { Clock, Log, Storage } from '@impresario/core'
import { createMemoryStorage, openEmbeddedStorage } from '@impresario/storage-embedded'
import { invalid } from '../config/config.ts'
import { deferredStorage } from './deferred-storage.ts'
import { postgresStorage, redisStorage } from './drivers.ts'
import { openPatiently } from './patient-opening.ts'
import type { Settings } from '../config/config.ts'
import { directoryOf, storageUrlProblem } from '../config/storage-choice.ts'

/** What a database server promises for what it has acknowledged, as its settings were when it was opened. */
export interface StorageDurability {
  readonly promise: 'always' | 'everysec' | 'none' | 'unknown'
  /** In words, why a write could be lost. */
  readonly doubts: readonly string[]
}

/** What is known of it: nothing before a database server is open, and of a storage in the process. */
export class KnownDurability {
  #known: StorageDurability | undefined

  get known(): StorageDurability | undefined {
    return this.#known
  }

  learn(durability: StorageDurability): void {
    this.#known = durability
  }
}

export interface StorageOptions {
  readonly clock: Clock
  readonly log: Log
  /** Names this process among those that share the storage, also after a restart. The host's name may be shared. */
  readonly instanceId: string
  /** How long to wait for a server that is not ready. */
  readonly waitMs: number
  /** Ends that waiting. */
  readonly signal: AbortSignal
  /** A write failed: the storage refuses everything from now on. */
  readonly onFailure: (error: Error) => void
  /** Learns what a database server promises, once it is open. */
  readonly durability?: KnownDurability
}

/** Opens the storage that the address names. */
export function openStorage(url: string, options: StorageOptions): Storage {
  const { clock, log, instanceId, onFailure } = options
  const problem = storageUrlProblem(url)
  if (problem !== undefined) throw invalid(`STORAGE_URL ${problem}`)
  // Its items have durations, which must not change when the clock is set.
  const now = (): number => clock.steady?.() ?? clock.now()
  if (url === 'memory:' || url === 'memory') return createMemoryStorage({ now })
  if (url.startsWith('file:')) {
    return openEmbeddedStorage({ directory: directoryOf(url) ?? '', log, onFailure, now })
  }
  // Two processes of one host must not take each other's work for their own of an earlier life.
  const own = instanceId === hostname() ? {} : { instance: instanceId }
  const open = /^postgres/i.test(url)
    ? async () => {
        const { openPostgresStorage } = await postgresStorage()
        // One attempt: who waits for the server says so, with its address.
        return openPostgresStorage({ url, log, startMs: 0, ...own })
      }
    : async () => {
        const { openRedisStorage } = await redisStorage()
        return openRedisStorage({ url, log, ...own })
      }
  const { waitMs, signal } = options
  const told = async (): Promise<Storage> => {
    const storage = await open()
    options.durability?.learn(storage.durability)
    return storage
  }
  return deferredStorage(openPatiently(told, { address: shownAddress(url), waitMs, log, signal }))
}

/** Whether other instances may work on the same storage. */
/** Whether large values of jobs have a place beside their records. */
export function hasFileStore({
  storageUrl,
  s3EndpointUrl,
  filesDir,
}: Pick<Settings, 'storageUrl' | 's3EndpointUrl' | 'filesDir'>): boolean {
  return s3EndpointUrl !== '' || filesDir !== '' || !isShared(storageUrl)
}

export function isShared(url: string): boolean {
  return /^(?:rediss?|postgres(?:ql)?):/i.test(url)
}

/** The address without what only the server is to know: a user, a password, settings. */
export function shownAddress(url: string): string {
  return url.replace(/\?.*$/s, '').replace(/^([a-z]+:\/\/)[^/]*@/i, '$1')
}
