import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { parsedDocument } from '../parsing/parsed-document.ts'
import { INDEX_FILE, openForReading } from './schema.ts'
import { addFunctions, searchIn } from './search.ts'
import { SearchThreads } from './search-threads.ts'
import { SqliteIndex } from './sqlite-index.ts'

async function indexOf(count: number): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-search-threads-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const index = new SqliteIndex(directory)
  const puts = Array.from({ length: count }, (_, number) => {
    const text = `склад номер ${number}`
    const parsed = parsedDocument(`${number}.txt`, { kind: 'txt', title: '', text, isTruncated: false })
    return index.put(`/all/${number}.txt`, { size: 1, mtimeMs: number, hash: String(number) }, parsed)
  })
  await Promise.all(puts)
  await index.close()
  return directory
}

test('[L-04] a search that takes too long is stopped where it is, and the next one is answered by the same thread', async () => {
  const directory = await indexOf(600)
  const db = openForReading(directory)
  addFunctions(db)
  // Nothing is left to be shown: the statement itself must have stopped.
  const beyond = { limit: 1, offset: 5_000 }
  for (const query of ['склад', 'склад path:all', 'type:txt', '-нет path:all']) {
    expect(searchIn(db, query, beyond)).toEqual({ hits: [], hasMore: false })
    expect(() => searchIn(db, query, beyond, { searchMs: 0 })).toThrow('The search took longer than 0 s')
  }
  db.close()
  const threads = new SearchThreads({ searchMs: 0, threadsMax: 1 })
  for (const id of [1, 2]) {
    await expect(threads.search(directory, 'склад', {})).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
    expect(await threads.text(directory, id)).toMatchObject({ path: `/all/${id - 1}.txt` })
  }
  expect(threads.size).toEqual({ usable: 1, stuck: 0 })
  await threads.release(directory)
})

test('[L-04] a thread that does not answer is given up while the process goes on, and the next search gets another', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-search-locked-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await cp(join(await indexOf(3), INDEX_FILE), join(directory, INDEX_FILE))
  const other = new DatabaseSync(join(directory, INDEX_FILE))
  other.exec('PRAGMA journal_mode = DELETE')
  other.exec('BEGIN EXCLUSIVE')
  const threads = new SearchThreads({ searchMs: 50, graceMs: 50, stuckMax: 1 })
  let ticks = 0
  const ticking = setInterval(() => {
    ticks += 1
  }, 5)
  await expect(threads.search(directory, 'склад', {})).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
  clearInterval(ticking)
  expect(ticks).toBeGreaterThan(5)
  expect(threads.size).toEqual({ usable: 0, stuck: 1 })
  await expect(threads.search(directory, 'склад', {})).rejects.toMatchObject({ code: 'OVERLOADED' })
  other.exec('COMMIT')
  other.close()
  await vi.waitUntil(() => threads.size.stuck === 0, { timeout: 30_000 })
  const again = () => threads.text(directory, 1)
  expect(await vi.waitFor(again, { timeout: 30_000 })).toMatchObject({ path: '/all/0.txt' })
  await threads.release(directory)
})

test('[L-04] searches share two threads, those that wait are bounded, and idle threads end', async () => {
  const directory = await indexOf(10)
  const threads = new SearchThreads({ waitingMax: 10, idleMs: 1 })
  const asked = Array.from({ length: 15 }, () => threads.search(directory, 'склад', { limit: 2 }))
  const outcomes = await Promise.allSettled(asked)
  expect(threads.size.usable + threads.size.stuck).toBeLessThanOrEqual(2)
  const answer = { status: 'fulfilled', value: { hits: [{ kind: 'txt' }, {}], hasMore: true } }
  const refusal = { status: 'rejected', reason: { code: 'OVERLOADED' } }
  expect(outcomes).toMatchObject(outcomes.map((_, index) => (index < 12 ? answer : refusal)))
  // Whoever closes an index waits for the searches in it.
  const last = threads.search(directory, 'склад', {})
  await threads.release(directory)
  expect((await last).hits).toHaveLength(10)
  await vi.waitUntil(() => threads.size.usable + threads.size.stuck === 0)
  await expect(threads.search(directory, 'date:never', {})).rejects.toMatchObject({ code: 'INPUT_REFUSED' })
  await expect(threads.search(join(directory, 'none'), 'склад', {})).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await threads.release(directory)
})
