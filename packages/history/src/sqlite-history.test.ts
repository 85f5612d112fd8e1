import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { HandClock, KEEP, anEvent, recordingLog } from './history.fixture.ts'
import { openHistory } from './open.ts'
import { SqliteHistory } from './sqlite-history.ts'

const directory = mkdtempSync(join(tmpdir(), 'impresario-history-'))
afterAll(() => rmSync(directory, { recursive: true }))

let count = 0
const newFile = (): string => join(directory, `file-${(count += 1)}.db`)

function open(file: string): SqliteHistory {
  const store = new SqliteHistory(file)
  onTestFinished(() => store.close())
  return store
}

const openUri = (uri: string) => openHistory(uri, { clock: new HandClock(), log: recordingLog(), retention: KEEP })

test('[G-04] [H-08] a file of history is its owner’s alone', async () => {
  const file = join(directory, 'deep', 'again.db')
  open(file)
  expect(statSync(join(directory, 'deep')).mode & 0o777).toBe(0o700)
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

test('[G-04] times are in the file as Unix seconds in UTC', async () => {
  const file = newFile()
  const store = open(file)
  await store.write({ writer: 'w', number: 1, events: [anEvent({ at: 1_700_000_000_123 })] })
  const db = new DatabaseSync(file, { readOnly: true })
  expect({ ...(db.prepare('SELECT timestamp FROM history').get() as object) }).toEqual({ timestamp: 1_700_000_000.123 })
  db.close()
})

/** The bytes of the file's pages, and of its free pages. */
function sizesOf(file: string): { readonly all: number; readonly free: number; readonly vacuum: number } {
  const db = new DatabaseSync(file, { readOnly: true })
  const ask = (name: string): number => Number(Object.values(db.prepare(`PRAGMA ${name}`).get() as object)[0])
  const sizes = { all: ask('page_count') * 4_096, free: ask('freelist_count') * 4_096, vacuum: ask('auto_vacuum') }
  db.close()
  return sizes
}

async function fill(store: SqliteHistory, number: number): Promise<void> {
  const events = Array.from({ length: 4_000 }, (_, index) => anEvent({ at: index, note: 'x'.repeat(300) }))
  await store.write({ writer: 'w', number, events })
}

test('[G-05] what is removed makes the file smaller while it is in use', async () => {
  const file = newFile()
  const store = open(file)
  await fill(store, 1)
  const before = sizesOf(file).all
  while ((await store.trim({ ageMs: 0, bytesMax: 1e12 }, 10_000)) > 0);
  const after = sizesOf(file)
  expect(after.all).toBeLessThan(before / 10)
  expect([after.free, after.vacuum]).toEqual([0, 2])
  // On the disk too, not only for readers.
  expect(statSync(file).size).toBeLessThan(before / 10)
})

test('[G-05] [H-08] what is removed is neither in the file nor in its log any more', async () => {
  const file = newFile()
  const store = open(file)
  const note = 'Frau Huber, IBAN DE02120300000000202051'
  const isReadable = (): boolean =>
    [file, `${file}-wal`].some((path) => existsSync(path) && readFileSync(path).includes(note))
  const events = [
    ...Array.from({ length: 50 }, (_, at) => anEvent({ at, note })),
    anEvent({ at: 9_000, note: 'stays' }),
  ]
  await store.write({ writer: 'w', number: 1, events })
  expect(isReadable()).toBe(true)
  while ((await store.trim({ ageMs: 5_000, bytesMax: 1e12 }, 10_000)) > 0);
  expect(isReadable()).toBe(false)
  expect(await store.list({ limit: 9 })).toMatchObject([{ note: 'stays' }])
})

/**
 * As the first version created them, without blueprints, with fewer indexes, without a version number and without
 * `auto_vacuum`.
 */
function oldFile(): string {
  const file = newFile()
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = WAL')
  db.exec(`CREATE TABLE history (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp REAL NOT NULL, event_type TEXT NOT NULL, job_id TEXT, worker_id TEXT,
    client TEXT, state TEXT, previous_state TEXT, next_state TEXT, origin_task_id TEXT, attempt_number INTEGER,
    duration_ms REAL, note TEXT, context_snapshot TEXT
  ) STRICT`)
  db.exec(
    `CREATE INDEX history_of_workers ON history (worker_id, event_id) WHERE worker_id IS NOT NULL AND job_id IS NULL`,
  )
  db.exec(`INSERT INTO history (timestamp, event_type, job_id) VALUES (1, 'old', 'job-1')`)
  db.close()
  return file
}

test('[G-05] files of an earlier version are read on, and can give space back too', async () => {
  const file = oldFile()
  expect(sizesOf(file).vacuum).toBe(0)
  const store = open(file)
  expect(await store.ofJob('job-1', { limit: 9 })).toMatchObject([{ at: 1_000, event: 'old' }])
  await fill(store, 1)
  await store.write({ writer: 'w', number: 2, events: [anEvent({ at: 20_000, blueprint: 'film' })] })
  expect(await store.list({ blueprint: 'film', limit: 9 })).toHaveLength(1)
  expect(sizesOf(file).vacuum).toBe(2)
  const before = sizesOf(file).all
  while ((await store.trim({ ageMs: 0, bytesMax: 1e12 }, 10_000)) > 0);
  expect(sizesOf(file).all).toBeLessThan(before / 10)
})

test('[G-04] a file of a newer program is refused', () => {
  const file = newFile()
  const db = new DatabaseSync(file)
  db.exec('PRAGMA user_version = 99')
  db.close()
  expect(() => new SqliteHistory(file)).toThrow('has version 99; this program knows versions up to 2')
})

test('[G-04] questions go by indexes, whatever they filter by', () => {
  const file = newFile()
  open(file)
  const db = new DatabaseSync(file, { readOnly: true })
  onTestFinished(() => db.close())
  const planOf = (where: string): string => {
    const sql = `EXPLAIN QUERY PLAN SELECT * FROM history AS h WHERE ${where} ORDER BY h.timestamp DESC, h.event_id DESC LIMIT 9`
    return JSON.stringify(db.prepare(sql).all())
  }
  const plans: Readonly<Record<string, string>> = {
    "job_id = 'x' AND h.timestamp >= 0": 'history_of_jobs',
    "worker_id = 'x' AND job_id IS NULL AND h.timestamp >= 0": 'history_of_workers_alone',
    "client = 'x' AND h.timestamp >= 0 AND (h.timestamp, h.event_id) < (9, 9)": 'history_of_clients',
    "worker_id = 'x' AND h.timestamp >= 0": 'history_with_workers',
    'h.timestamp >= 0': 'history_by_time',
  }
  for (const [where, index] of Object.entries(plans)) {
    expect(planOf(where)).toContain(index)
    expect(planOf(where)).not.toContain('TEMP B-TREE')
  }
})

test('[G-04] an address that is no history is refused with the way to write it', () => {
  expect(() => openUri('mongodb://x')).toThrow('sqlite:./impresario-data/history.db')
  expect(() => openUri('sqlite:')).toThrow('HISTORY_DATABASE_URI')
  expect(() => openUri('postgres://[')).toThrow('postgres://user:password@host:5432/database')
  expect(() => openUri('postgres://u:secret@h/db?schema=Ä')).toThrow('cannot name a schema')
})
