import type { Item, Storage } from '@impresario/core'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { migrate, MIGRATIONS } from './migrations.ts'
import type { Migration } from './migrations.ts'
import { openPostgresStorage } from './open.ts'
import { missingPostgres, startPostgres } from './postgres-server.fixture.ts'
import type { PostgresServer } from './postgres-server.fixture.ts'

let server: PostgresServer
let count = 0

const newNamespace = (): string => `migrated_${++count}`

async function open(namespace: string): Promise<Storage> {
  const storage = await openPostgresStorage({ url: server.url, namespace, poolMax: 2 })
  onTestFinished(() => storage.close())
  return storage
}

/** Starts like a program that knows other migrations. */
async function migrateAs(namespace: string, migrations: readonly Migration[]): Promise<void> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  try {
    await migrate(client, namespace, migrations)
  } finally {
    await client.end()
  }
}

async function versionOf(namespace: string): Promise<unknown> {
  return (await server.query(`SELECT version FROM ${namespace}.meta`))[0]?.['version']
}

async function work(storage: Storage, id: string): Promise<void> {
  const item: Item = { queue: 'turns', id, lane: id, priority: 0, delayMs: 0, payload: null }
  expect(await storage.commit({ enqueue: [item] })).toBe('committed')
  const [lease] = (await storage.claim('turns', { lanes: [id], limit: 1, leaseMs: 60_000 })).leases
  expect(await storage.commit({ settle: lease! })).toBe('committed')
}

const KNOWN = MIGRATIONS.length
/** The migration of the next program: a column that this one does not know. */
const NEXT: readonly Migration[] = [
  ...MIGRATIONS,
  { sql: 'ALTER TABLE {schema}.items ADD COLUMN colour text', oldest: KNOWN },
]

describe.skipIf(missingPostgres !== undefined)(`Migrations of PostgreSQL ${missingPostgres ?? ''}`, () => {
  beforeAll(async () => {
    server = await startPostgres()
  }, 120_000)
  afterAll(() => server.stop())

  test('[G-03] eight instances that start together on an empty database make the tables once', async () => {
    const namespace = newNamespace()
    const storages = await Promise.all(Array.from({ length: 8 }, () => open(namespace)))
    await Promise.all(storages.map((storage, index) => work(storage, `i${index}`)))
    expect(await versionOf(namespace)).toBe(KNOWN)
  })

  test('[G-03] [J-20] instances of this version and the next start together and work side by side', async () => {
    const namespace = newNamespace()
    const early = await open(namespace)
    const working = Promise.all([0, 1, 2, 3].map((index) => work(early, `early ${index}`)))
    const starts = Array.from({ length: 8 }, (_, index) =>
      index % 2 === 0 ? migrateAs(namespace, NEXT) : open(namespace).then((storage) => work(storage, `i${index}`)),
    )
    await Promise.all([working, ...starts])
    // There is no downgrade, and a process that restarts works as before.
    await work(await open(namespace), 'late')
    await work(early, 'still there')
    expect(await versionOf(namespace)).toBe(KNOWN + 1)
  })

  test('[G-03] [J-20] tables that are no longer for this program are refused', async () => {
    const namespace = newNamespace()
    await migrateAs(namespace, [...NEXT, { sql: 'SELECT', oldest: KNOWN + 1 }])
    const opening = openPostgresStorage({ url: server.url, namespace })
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' })
    await expect(opening).rejects.toThrow(`has version ${KNOWN + 2}, which is for programs of version ${KNOWN + 1}`)
  })

  test('[G-03] a migration that fails leaves nothing of itself behind', async () => {
    const namespace = newNamespace()
    const broken = [...NEXT, { sql: 'ALTER TABLE {schema}.nowhere ADD COLUMN x text', oldest: KNOWN }]
    await expect(migrateAs(namespace, broken)).rejects.toThrow('nowhere')
    await expect(versionOf(namespace)).rejects.toThrow('does not exist')
    await work(await open(namespace), 'i1')
  })

  test('[G-03] the bodies of all functions are right', async () => {
    const namespace = newNamespace()
    await open(namespace)
    const sql = `SELECT pg_get_functiondef(p.oid) AS text FROM pg_proc p WHERE p.pronamespace = '${namespace}'::regnamespace`
    const functions = await server.query(sql)
    expect(functions.length).toBeGreaterThan(10)
    for (const { text } of functions) await server.query(String(text))
  })
})
