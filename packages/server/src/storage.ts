import { hostname } from 'node:os'
import type { Clock, Log, Storage } from '@impresario/core'
import { createMemoryStorage, openEmbeddedStorage } from '@impresario/storage-embedded'
import { invalid } from './config.ts'
import { deferredStorage } from './deferred-storage.ts'

export interface StorageOptions {
  readonly clock: Clock
  readonly log: Log
  /** Names this process among those that share the storage, also after a restart. The host's name is nobody's own. */
  readonly instanceId: string
  /** A write failed: the storage refuses everything from now on. */
  readonly onFailure: (error: Error) => void
}

/** Opens the storage that the address names. */
export function openStorage(url: string, { clock, log, instanceId, onFailure }: StorageOptions): Storage {
  if (url === 'memory:' || url === 'memory') return createMemoryStorage({ now: () => clock.now() })
  if (url.startsWith('file:')) {
    const directory = directoryOf(url) ?? ''
    if (directory === '') throw invalid('STORAGE_URL names no directory. Write it as file:./impresario-data.')
    return openEmbeddedStorage({ directory, onFailure, now: () => clock.now() })
  }
  // Two processes of one host must not take each other's work for their own of an earlier life.
  const own = instanceId === hostname() ? {} : { instance: instanceId }
  const scheme = /^[a-z]+/i.exec(url)?.[0].toLowerCase() ?? ''
  if (['postgres', 'postgresql'].includes(scheme)) {
    // Its driver is read only by those who use it.
    return deferredStorage(
      import('@impresario/storage-postgres').then(({ openPostgresStorage }) =>
        openPostgresStorage({ url, log, ...own }),
      ),
    )
  }
  if (['redis', 'rediss'].includes(scheme)) {
    return deferredStorage(
      import('@impresario/storage-redis').then(({ openRedisStorage }) => openRedisStorage({ url, log, ...own })),
    )
  }
  const forms = 'memory:, file:<directory>, redis://host or postgres://user@host/database'
  throw invalid(`STORAGE_URL is not understood. Use ${forms}.`)
}

/** Whether other instances may work on the same storage. */
export function isShared(url: string): boolean {
  return /^(?:rediss?|postgres(?:ql)?):/i.test(url)
}

/** Where the embedded storage lies; nowhere for others. */
export function directoryOf(url: string): string | undefined {
  return url.startsWith('file:') ? url.slice('file:'.length).replace(/^\/\//, '') : undefined
}

/** The address without what only the server is to know: a user, a password, settings. */
export function shownAddress(url: string): string {
  return url.replace(/\?.*$/s, '').replace(/^([a-z]+:\/\/)[^/]*@/i, '$1')
}
