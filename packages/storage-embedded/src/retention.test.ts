import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test, vi } from 'vitest'
import { temporaryDirectory } from './directory.fixture.ts'
import { openEmbeddedStorage } from './open.ts'
import { item, putJob } from './records.fixture.ts'

const SECRET = 'Frau Huber, IBAN DE02120300000000202051'
const PATIENCE = { timeout: 60_000, interval: 50 }

function jobsWithSecrets(count: number) {
  return Array.from({ length: count }, (_, index) => {
    const initialData = { text: `${SECRET} `.repeat(2_000) }
    return { ...putJob(`j${index}`, 1, { initialData, status: 'finished', endedAt: 1 }), expiresMs: 10_000 }
  })
}

/** Whether the data can be found in the files. */
function isReadable(directory: string): boolean {
  return readdirSync(directory).some((name) => readFileSync(join(directory, name)).includes(SECRET))
}

test('[G-05] [H-08] what has expired is neither in the file nor in its log any more, and its space is given back', async () => {
  const directory = temporaryDirectory()
  let now = 1_000
  const storage = openEmbeddedStorage({ directory, now: () => now })
  await storage.commit({ put: [...jobsWithSecrets(150), putJob('stays', 1)] })
  // Messages are readable no longer than their job.
  await storage.commit({ enqueue: [item('i1', { payload: { text: SECRET.repeat(100) } })] })
  await storage.commit({ remove: [{ queue: 'turns', id: 'i1' }] })
  await storage.sync()
  expect(isReadable(directory)).toBe(true)
  now += 10_001
  expect((await storage.list('job', { limit: 9 })).map(({ id }) => id)).toEqual(['stays'])
  const sizeOf = (): number => statSync(join(directory, 'impresario.db')).size
  await vi.waitUntil(() => !isReadable(directory) && sizeOf() < 2_000_000, PATIENCE)
  expect(storage.integrityCheck()).toEqual([])
  await storage.close()
})

/** As an earlier program left it: large, half empty, and with all deleted data in its free pages. */
function writeOldFile(directory: string): void {
  const db = new DatabaseSync(join(directory, 'impresario.db'))
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('CREATE TABLE filler (text TEXT)')
  const insert = db.prepare('INSERT INTO filler VALUES (?)')
  for (let row = 0; row < 100; row += 1) insert.run(`${SECRET} `.repeat(2_000))
  db.exec('DROP TABLE filler')
  db.close()
}

test('[G-05] [J-20] a file of an earlier version is rewritten once, keeps what it has, and gives space back from then on', async () => {
  const directory = temporaryDirectory()
  writeOldFile(directory)
  expect(isReadable(directory)).toBe(true)
  const lines: string[] = []
  const note = (message: string): void => {
    lines.push(message)
  }
  const log = { debug: note, info: note, warn: note, error: note }
  const first = openEmbeddedStorage({ directory, log })
  expect(isReadable(directory)).toBe(false)
  await first.commit({ put: [putJob('j1', 1)] })
  await first.close()
  const again = openEmbeddedStorage({ directory, log })
  expect((await again.read('job', 'j1'))?.version).toBe(1)
  await again.close()
  expect(lines).toEqual(['the job file is rewritten once, so that it can give space back'])
  expect(statSync(join(directory, 'impresario.db')).size).toBeLessThan(200_000)
})
