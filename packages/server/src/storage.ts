import type { Clock, Storage } from '@impresario/core'
import { createMemoryStorage, openEmbeddedStorage } from '@impresario/storage-embedded'
import { invalid } from './config.ts'

export interface StorageOptions {
  readonly clock: Clock
  /** A write failed: the storage refuses everything from now on. */
  readonly onFailure: (error: Error) => void
}

/** Opens the storage that the address names. */
export function openStorage(url: string, { clock, onFailure }: StorageOptions): Storage {
  if (url === 'memory:' || url === 'memory') return createMemoryStorage({ now: () => clock.now() })
  if (url.startsWith('file:')) {
    const directory = directoryOf(url) ?? ''
    if (directory === '') throw invalid('STORAGE_URL names no directory. Write it as file:./impresario-data.')
    return openEmbeddedStorage({ directory, onFailure, now: () => clock.now() })
  }
  const scheme = /^[a-z]+/i.exec(url)?.[0].toLowerCase() ?? ''
  if (['redis', 'rediss', 'postgres', 'postgresql'].includes(scheme)) {
    throw invalid(`STORAGE_URL: ${scheme} comes with a later release. Use memory: or file:<directory>.`)
  }
  throw invalid('STORAGE_URL is not understood. Use memory: or file:<directory>.')
}

/** Where the embedded storage lies; nowhere for others. */
export function directoryOf(url: string): string | undefined {
  return url.startsWith('file:') ? url.slice('file:'.length).replace(/^\/\//, '') : undefined
}
