import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test } from 'vitest'
import { temporaryDirectory } from './directory.fixture.ts'
import { openEmbeddedStorage } from './open.ts'
import type { FileStorage } from './open.ts'
import { item, job, putJob } from './records.fixture.ts'

/** The tables as version 1 made them. */
const VERSION_1 = `
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1), schema_version INTEGER NOT NULL, epoch INTEGER NOT NULL, time REAL NOT NULL
) STRICT;
CREATE TABLE records (
  kind TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, owner TEXT, status TEXT, name TEXT, data TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX records_by_owner ON records (kind, owner, id) WHERE owner IS NOT NULL;
CREATE INDEX records_by_status ON records (kind, status, id) WHERE status <> 'finished';
CREATE TABLE items (
  queue TEXT NOT NULL, id TEXT NOT NULL, lane TEXT NOT NULL, priority REAL NOT NULL, seq INTEGER NOT NULL,
  due_at REAL NOT NULL, payload TEXT NOT NULL, fallback_lane TEXT, fallback_at REAL, settle_at REAL,
  unclaimed_at REAL, run_ms REAL, run_at REAL, token INTEGER NOT NULL, leased_until REAL NOT NULL, holder TEXT, deliveries INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES (1, 1, 7, 5000);
`

function writeVersion1(directory: string): void {
  const db = new DatabaseSync(join(directory, 'impresario.db'))
  db.exec('PRAGMA journal_mode = WAL')
  db.exec(VERSION_1)
  const record = db.prepare('INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)')
  for (const [id, owner, status] of [
    ['j1', 'ann', 'running'],
    ['j2', 'ann', 'finished'],
    ['j3', 'bob', 'finished'],
  ] as const) {
    record.run('job', id, 3, owner, status, 'press', JSON.stringify(job(id, { status })))
  }
  record.run('key', 'k1', 1, null, null, null, JSON.stringify({ jobId: 'j1', fingerprint: 'f', createdAt: 1 }))
  db.exec(`INSERT INTO items VALUES
    ('turns', 'i1', 'a', 2, 9, 4000, '{"id":"i1"}', NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, 0)`)
  db.close()
}

test('[G-01] [J-20] a file of version 1 is opened, brought up to date once, and has everything that it had', async () => {
  const directory = temporaryDirectory()
  writeVersion1(directory)
  let now = 6_000
  const first = openEmbeddedStorage({ directory, now: () => now })
  await expectContents(first, 3)
  const facets = { owner: 'ann', status: 'running', name: 'press', text: 'Found' }
  await first.commit({
    put: [
      { ...putJob('j1', 4), facets },
      { ...putJob('j4', 1), expiresMs: 1_000 },
    ],
    enqueue: [item('i2')],
  })
  expect((await first.claim('turns', { limit: 9, leaseMs: 1 })).leases.map(({ id }) => id)).toEqual(['i1', 'i2'])
  await first.close()
  now += 1_000
  const second = openEmbeddedStorage({ directory, now: () => now })
  await expectContents(second, 4)
  expect((await second.list('job', { limit: 9, search: 'FOUND' })).map(({ id }) => id)).toEqual(['j1'])
  await second.close()

  const db = new DatabaseSync(join(directory, 'impresario.db'))
  expect(db.prepare('SELECT schema_version AS version, epoch FROM meta').get()).toMatchObject({ version: 2, epoch: 9 })
  const old = db.prepare("SELECT name FROM sqlite_schema WHERE name = 'records_1'")
  expect(old.all()).toEqual([])
  db.close()
})

async function expectContents(storage: FileStorage, version: number): Promise<void> {
  expect(storage.integrityCheck()).toEqual([])
  expect((await storage.list('job', { limit: 9 })).map((one) => [one.id, one.version])).toEqual([
    ['j3', 3],
    ['j2', 3],
    ['j1', version],
  ])
  expect((await storage.read('key', 'k1'))?.value.jobId).toBe('j1')
  expect((await storage.list('job', { limit: 9, owner: 'ann', status: 'running' })).map(({ id }) => id)).toEqual(['j1'])
  expect(await storage.counts('job', {})).toEqual({ running: 1, finished: 2 })
  expect(await storage.counts('job', { owner: 'bob' })).toEqual({ finished: 1 })
  expect(await storage.peek('turns', ['i1'])).toMatchObject([{ priority: 2, payload: { id: 'i1' } }])
}

test('[G-01] the check of a file finds a wrong count', async () => {
  const directory = temporaryDirectory()
  const storage = openEmbeddedStorage({ directory })
  await storage.commit({ put: [putJob('j1', 1)] })
  await storage.sync()
  const db = new DatabaseSync(join(directory, 'impresario.db'))
  db.exec('UPDATE counts SET count = 5')
  db.close()
  expect(storage.integrityCheck()).toEqual(['The count of ["job","client","press","running"] is 5 and should be 1.'])
  await storage.close()
})

test('[K-13] a name of the audit log has no count of its own, and counts by name of an earlier program are put together', async () => {
  const directory = temporaryDirectory()
  const audit = (id: string) => ({
    kind: 'audit' as const,
    id,
    version: 1,
    value: {},
    facets: { owner: 'ann', name: `subject of ${id}`, status: 'event.published' },
  })
  const first = openEmbeddedStorage({ directory })
  await first.commit({ put: [audit('a1'), audit('a2'), putJob('j1', 1)] })
  expect(await first.counts('audit', { owner: 'ann' })).toEqual({ 'event.published': 2 })
  await first.close()
  const db = new DatabaseSync(join(directory, 'impresario.db'))
  const keys = (): readonly unknown[] =>
    db
      .prepare('SELECT key FROM counts ORDER BY key')
      .all()
      .map((row) => (row as { readonly key: string }).key)
  const kept = ['["audit","ann",null,"event.published"]', '["job","client","press","running"]']
  expect(keys()).toEqual(kept)
  db.exec(`DELETE FROM counts WHERE key LIKE '["audit"%';
    INSERT INTO counts VALUES ('["audit","ann","subject of a1","event.published"]', 1),
      ('["audit","ann","subject of a2","event.published"]', 1)`)

  const second = openEmbeddedStorage({ directory })
  expect(await second.counts('audit', { owner: 'ann' })).toEqual({ 'event.published': 2 })
  expect(await second.counts('job', { name: 'press' })).toEqual({ running: 1 })
  await second.commit({ drop: [{ kind: 'audit', id: 'a1' }] })
  await second.sync()
  expect(await second.counts('audit', {})).toEqual({ 'event.published': 1 })
  expect(second.integrityCheck()).toEqual([])
  expect(keys()).toEqual(kept)
  await expect((async () => second.counts('audit', { name: 'subject of a1' }))()).rejects.toThrow(/not counted by name/)
  await second.close()
  db.close()
})

test('[K-04] triggers are found by an index of their names, which a file of an earlier program gets when it is opened', async () => {
  const directory = temporaryDirectory()
  const first = openEmbeddedStorage({ directory, now: () => 1 })
  const put = (['ann', 'ann', 'bob'] as const).map((owner, at) => ({
    ...({ kind: 'subscription', id: `s${at}`, version: 1, value: { at } } as const),
    facets: { owner, name: at === 0 ? '=other' : '=order.paid' },
  }))
  await first.commit({ put })
  await first.close()
  const db = new DatabaseSync(join(directory, 'impresario.db'))
  db.exec('DROP INDEX records_by_name')
  db.close()
  const second = openEmbeddedStorage({ directory, now: () => 1 })
  const found = async (query: object): Promise<readonly string[]> =>
    (await second.list('subscription', { name: '=order.paid', limit: 9, ...query })).map(({ id }) => id)
  // The statement names its index: without it, or if it led nowhere, SQLite would refuse it.
  expect(await found({})).toEqual(['s2', 's1'])
  expect(await found({ owner: 'ann' })).toEqual(['s1'])
  expect(await found({ before: 's2' })).toEqual(['s1'])
  await second.close()
  const again = new DatabaseSync(join(directory, 'impresario.db'), { readOnly: true })
  const plan = again.prepare(
    "EXPLAIN QUERY PLAN SELECT data FROM records INDEXED BY records_by_name WHERE kind = 'subscription' AND kind = ? AND +owner = ? AND name = ? ORDER BY id DESC",
  )
  expect(plan.all('subscription', 'ann', 'x')).toMatchObject([{ detail: expect.stringContaining('name=?') as string }])
  again.close()
})
