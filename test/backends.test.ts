import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { backendTests } from './servers/backend-tests.ts'

const ROOT = join(import.meta.dirname, '..')

/**
 * Tests of the engine, the server, webhooks and the whole system that choose their own storage, and why. All others use
 * the storage of their project, and so run on memory, file, Redis and PostgreSQL.
 */
const CHOSEN: Readonly<Record<string, string>> = {
  'packages/engine/src/engine.test.ts': 'one case whose disk loses what was not made durable',
  'packages/engine/src/job/director.test.ts': 'what a storage in memory answers at once, and one that answers later',
  'packages/engine/src/turns/lost-turns.test.ts':
    'what a process leaves behind that ended before its disk had everything',
  'packages/engine/src/workers/desk-lives.test.ts': 'one case whose disk the test holds up',
  'packages/engine/src/workers/desk.test.ts': 'one case whose disk the test holds up',
  'packages/server/src/auth/auth.test.ts': 'refused before a storage is opened',
  'packages/server/src/client-api/schedule-routes.test.ts': 'refused before a storage is opened',
  'packages/server/src/cluster/cluster.fixture.ts': 'several instances on Redis, and on PostgreSQL',
  'packages/server/src/cluster/readiness.test.ts': 'storages that are full, read-only, replicas, or not there',
  'packages/server/src/config/config.test.ts': 'addresses that are read, and nothing is opened',
  'packages/server/src/files/offloading.test.ts': 'a storage beneath the one that is tested',
  'packages/server/src/http/tls.test.ts': 'refused before a storage is opened',
  'packages/server/src/orchestrator/deferred-storage.test.ts': 'a storage that is opened late',
  'packages/server/src/orchestrator/history.test.ts': 'the history that lies beside an embedded file',
  'packages/server/src/orchestrator/storage-failure.test.ts': 'an embedded file that is deleted underneath',
  'packages/server/src/protection.test.ts': 'refused before a storage is opened',
  'packages/server/src/transfer/jobs.test.ts': 'from each storage to the next',
  'packages/server/src/transfer/transfer.test.ts': 'from each storage to the next',
  'test/deploy.test.ts': 'a server that is made and not started',
  'test/history.test.ts': 'histories in memory, SQLite and PostgreSQL',
  'test/monitoring.test.ts': 'a directory, whose disk is measured',
  'test/rolling-restart.test.ts': 'several instances on Redis',
  'test/security.test.ts': 'what the embedded file shows, and refusals',
}

const CHOICE =
  /createMemoryStorage\(|openEmbeddedStorage\(|createVolatileJournal\(|open(?:Redis|Postgres)Storage\(|start(?:Redis|Postgres)\(|storageUrl: ['`](?:memory|file|redis|postgres)/

/** Tests and their shared code. Tests of real processes choose the storage that they name. */
function testSources(): readonly string[] {
  return ['packages/engine/src', 'packages/server/src', 'packages/webhooks/src', 'test'].flatMap((place) =>
    readdirSync(join(ROOT, place), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /\.(?:test|fixture)\.ts$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
      .filter((file) => !file.startsWith('test/system/') && file !== 'test/backends.test.ts'),
  )
}

test('[G-01] tests take the storage of their project, those left out that are about one storage', () => {
  const chosen = testSources().filter((file) => CHOICE.test(readFileSync(join(ROOT, file), 'utf8')))
  expect(chosen.toSorted()).toEqual(Object.keys(CHOSEN))
})

test('[G-01] the whole orchestrator runs on every storage with the whole test suite', () => {
  const files = backendTests(ROOT)
  expect(files.length).toBeGreaterThan(55)
  for (const file of [
    'packages/engine/src/engine.test.ts',
    'packages/server/src/fuzz/endpoints.test.ts',
    'packages/server/src/worker-api/generations.test.ts',
    'packages/server/src/worker-api/worker-routes.test.ts',
    'packages/webhooks/src/sender.test.ts',
    'test/client-sdk.test.ts',
    'test/worker-sdk.test.ts',
  ]) {
    expect(files).toContain(file)
  }
  const scripts: unknown = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  expect(scripts).toMatchObject({ scripts: { test: expect.stringContaining('--mode backends') as unknown } })
})
