import { describeStorage } from '@impresario/conformance'
import type { StorageUnderTest } from '@impresario/conformance'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe } from 'vitest'
import { createPostgresPool } from './connections.ts'
import { freezeClock } from './frozen-clock.fixture.ts'
import { openPostgresStorage } from './open.ts'
import { missingPostgres, startPostgres } from './postgres-server.fixture.ts'
import type { PostgresServer } from './postgres-server.fixture.ts'

const NAMESPACE = 'conformance'
const OPTIONS = { namespace: NAMESPACE, instance: 'one', poolMax: 4 } as const

let server: PostgresServer
let pool: Pool
let clock: { readonly advance: (ms: number) => Promise<void> }

/**
 * All cases use the same tables and connections, one after the other, and leave the tables empty: creating them again,
 * and having the server plan all statements again on each connection, takes longer than most cases. A restart here is a
 * crash: the old storage is abandoned without closing, and the new one starts under its name.
 */
async function open(): Promise<StorageUnderTest> {
  const options = { ...OPTIONS, url: server.url, pool }
  const storage = await openPostgresStorage(options)
  const opened = [storage]
  return {
    storage,
    advance: clock.advance,
    async reopen() {
      const again = await openPostgresStorage(options)
      opened.push(again)
      return again
    },
    async close() {
      await Promise.all(opened.map((one) => one.close()))
      await server.query(
        ['records', 'items', 'counts', 'sessions'].map((name) => `DELETE FROM ${NAMESPACE}.${name}`).join(';'),
      )
    },
  }
}

describe.skipIf(missingPostgres !== undefined)(`PostgreSQL ${missingPostgres ?? ''}`, () => {
  beforeAll(async () => {
    server = await startPostgres()
    pool = createPostgresPool(server.url, 4, () => undefined)
    await (await openPostgresStorage({ ...OPTIONS, url: server.url, pool })).close()
    clock = await freezeClock(server, NAMESPACE)
  }, 120_000)
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })
  describeStorage('PostgreSQL', open)
})
