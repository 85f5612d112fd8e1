import { join } from 'node:path'
import type { TestProjectInlineConfiguration } from 'vitest/config'
import { backendTests } from './backend-tests.ts'
import type { StorageGround } from './storage-ground.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Runs the tests that request a storage on this one; `unit` and `repo` run them on the one in memory. */
export function backendProject(backend: Exclude<StorageGround['backend'], 'memory'>): TestProjectInlineConfiguration {
  const ground =
    backend === 'embedded'
      ? { provide: { storage: { backend } } }
      : { globalSetup: [`test/servers/${backend}-setup.ts`] }
  return {
    extends: true,
    test: {
      name: `on-${backend}`,
      include: [...backendTests(ROOT)],
      pool: 'threads',
      isolate: false,
      testTimeout: 180_000,
      hookTimeout: 180_000,
      setupFiles: ['test/servers/close-storages.ts'],
      ...ground,
    },
  }
}
