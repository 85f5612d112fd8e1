import { inject } from 'vitest'
import { newDirectory } from './run-directory.ts'

/** Where the tests of one project keep their records: its server, if it has one, is shared by all of them. */
export interface StorageGround {
  readonly backend: 'memory' | 'embedded' | 'redis' | 'postgres'
  /** Where the server is. */
  readonly url?: string
}

declare module 'vitest' {
  export interface ProvidedContext {
    readonly storage: StorageGround | undefined
  }
}

export function storageGround(): StorageGround {
  return inject('storage') ?? { backend: 'memory' }
}

let namespaces = 0

/** Unique on this server, for all threads. */
export function newNamespace(): string {
  namespaces += 1
  return `test_${process.pid}_${process.env['VITEST_POOL_ID'] ?? 0}_${Date.now().toString(36)}_${namespaces}`
}

/** The address of a storage that has not been used yet. */
export function newStorageUrl(): string {
  const { backend, url = '' } = storageGround()
  if (backend === 'memory') return 'memory:'
  if (backend === 'embedded') return `file:${newDirectory('embedded')}`
  return `${url}?${backend === 'redis' ? 'namespace' : 'schema'}=${newNamespace()}`
}

/** The same for a test that restarts on existing data, which a storage in memory would not have. */
export function newDurableStorageUrl(): string {
  return storageGround().backend === 'memory' ? `file:${newDirectory('embedded')}` : newStorageUrl()
}
