import type { Item, Put } from '@impresario/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPostgresStorage } from './open.ts'
import { missingPostgres, startPostgres } from './postgres-server.fixture.ts'
import type { PostgresServer } from './postgres-server.fixture.ts'

let server: PostgresServer

const item = (id: string): Item => ({
  queue: 'tasks',
  id,
  lane: 'a',
  priority: 0,
  delayMs: 0,
  payload: null,
  settleMs: 3_600_000,
})

const record = (id: string, version: number): Put => ({
  kind: 'delivery',
  id,
  version,
  value: { trail: 'x'.repeat(500), version },
  facets: { owner: 'ann', status: 'active', name: 'noop' },
})

/**
 * The server's statistics, once they include this many updates: a connection reports them when it ends, or a little
 * later.
 */
async function updatesOf(table: string, atLeast: number): Promise<{ readonly all: number; readonly hot: number }> {
  for (;;) {
    const [row] = await server.query(
      "SELECT n_tup_upd AS all, n_tup_hot_upd AS hot FROM pg_stat_user_tables WHERE schemaname = 'churned' AND relname = $1",
      [table],
    )
    const found = { all: Number(row?.['all']), hot: Number(row?.['hot']) }
    if (found.all >= atLeast) return found
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

describe.skipIf(missingPostgres !== undefined)(`PostgreSQL under a steady load ${missingPostgres ?? ''}`, () => {
  beforeAll(async () => {
    server = await startPostgres()
  }, 120_000)
  afterAll(() => server.stop())

  test('[G-03] tables have room for the next version of a row, and are cleaned after a number of changes', async () => {
    await (await openPostgresStorage({ url: server.url, namespace: 'settings' })).close()
    const rows = await server.query(
      "SELECT c.relname AS name, c.reloptions AS options FROM pg_class c WHERE c.relnamespace = 'settings'::regnamespace AND c.reloptions IS NOT NULL",
    )
    const options = Object.fromEntries(rows.map((row) => [String(row['name']), row['options']]))
    const every = (changes: number): readonly string[] => [
      'autovacuum_vacuum_scale_factor=0',
      `autovacuum_vacuum_threshold=${changes}`,
    ]
    expect(options['items']).toEqual(
      expect.arrayContaining([...every(2_000), 'fillfactor=75', 'vacuum_index_cleanup=on']),
    )
    expect(options['counts']).toEqual(expect.arrayContaining([...every(1_000), 'fillfactor=25']))
    expect(options['sessions']).toEqual(expect.arrayContaining([...every(200), 'fillfactor=25']))
    expect(options['records']).toEqual(expect.arrayContaining(['autovacuum_vacuum_threshold=2000', 'fillfactor=75']))
  })

  test('[G-03] renewals and new versions of a record change no index', async () => {
    const storage = await openPostgresStorage({ url: server.url, namespace: 'churned', pollMs: 3_600_000 })
    const ids = Array.from({ length: 20 }, (_, index) => `i${index}`)
    await storage.commit({ enqueue: ids.map(item), put: ids.map((id) => record(id, 1)) })
    const claim = { limit: 20, leaseMs: 60_000, holder: 'w' }
    const { leases } = await storage.claim('tasks', claim)
    for (let round = 2; round <= 21; round++) {
      expect(await storage.renew(leases, 60_000 + round)).toEqual(leases.map(() => true))
      expect(await storage.commit({ put: ids.map((id) => record(id, round)) })).toBe('committed')
    }
    await storage.close()
    // The exceptions are the claim itself, and a row version that finds its page full.
    expect((await updatesOf('items', 420)).hot).toBeGreaterThanOrEqual(380)
    expect((await updatesOf('records', 400)).hot).toBeGreaterThanOrEqual(360)
  })
})
