import { describeStorage } from '@impresario/conformance'
import type { StorageUnderTest } from '@impresario/conformance'
import { afterAll, beforeAll, describe } from 'vitest'
import { freezeClock } from './frozen-clock.fixture.ts'
import { openPostgresStorage } from './open.ts'
import { missingPostgres, startPostgres } from './postgres-server.fixture.ts'
import type { PostgresServer } from './postgres-server.fixture.ts'

let server: PostgresServer | undefined
let count = 0

/** A restart here is a crash: the old storage is left as it stands, and the new one comes under its name. */
async function open(): Promise<StorageUnderTest> {
  if (server === undefined) throw new Error('PostgreSQL is not there')
  const { url } = server
  const namespace = `case_${++count}`
  const options = { url, namespace, instance: 'one', poolMax: 4 }
  const storage = await openPostgresStorage(options)
  const opened = [storage]
  const { advance } = await freezeClock(server, namespace)
  return {
    storage,
    advance,
    async reopen() {
      const again = await openPostgresStorage(options)
      opened.push(again)
      return again
    },
    async close() {
      for (const one of opened) await one.close()
      await server?.query(`DROP SCHEMA ${namespace} CASCADE`)
    },
  }
}

describe.skipIf(missingPostgres !== undefined)(`PostgreSQL ${missingPostgres ?? ''}`, () => {
  beforeAll(async () => {
    server = await startPostgres()
  }, 120_000)
  afterAll(() => server?.stop())
  describeStorage('PostgreSQL', open)
})
