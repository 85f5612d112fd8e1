import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parsedDocument } from '../parsing/parsed-document.ts'
import { openForReading } from './schema.ts'
import { addFunctions, searchIn } from './search.ts'
import { SqliteIndex } from './sqlite-index.ts'

/** Sixty documents with the same word; the first twenty in a folder of their own, and each twice as long as the one before is not. */
async function sixty(): Promise<ReturnType<typeof openForReading>> {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-search-bounds-'))
  const index = new SqliteIndex(directory)
  for (let number = 0; number < 60; number += 1) {
    const name = `file${String(number).padStart(2, '0')}.txt`
    const text = `склад ${'слово '.repeat(100)}`
    const parsed = parsedDocument(name, { kind: 'txt', title: '', text, isTruncated: false })
    await index.put(join('/', number < 20 ? 'old' : 'new', name), { size: 1, mtimeMs: number, hash: name }, parsed)
  }
  await index.close()
  const db = openForReading(directory)
  addFunctions(db)
  onTestFinished(async () => {
    db.close()
    await rm(directory, { recursive: true, force: true })
  })
  return db
}

test('[L-04] the work of a search in SQLite is bounded: so many documents are ranked, with filters and without', async () => {
  const db = await sixty()
  const names = (query: string, rankedMax?: number): readonly string[] =>
    searchIn(db, query, { limit: 100 }, rankedMax === undefined ? {} : { rankedMax })
      .hits.map(({ name }) => name)
      .toSorted()
  expect(names('склад')).toHaveLength(60)
  expect(names('склад path:new')).toHaveLength(40)
  const newest = Array.from({ length: 10 }, (_, index) => `file${50 + index}.txt`)
  expect(names('склад', 10)).toEqual(newest)
  expect(names('склад path:new', 10)).toEqual(newest)
  // What a filter leaves out does not count.
  expect(names('склад path:old', 10)).toEqual(Array.from({ length: 10 }, (_, index) => `file${10 + index}.txt`))
  expect(names('склад type:txt date:1970', 10)).toEqual(newest)
})

test('[L-04] the texts that a search looks through are bounded too: hits beyond that have no snippet', async () => {
  const db = await sixty()
  const chars = `склад ${'слово '.repeat(100)}`.length
  const { hits } = searchIn(db, 'склад', { limit: 50 }, { snippetCharsMax: chars * 20 })
  expect(hits).toHaveLength(50)
  expect(hits.filter(({ snippet }) => snippet.includes('склад'))).toHaveLength(20)
  expect(hits.slice(20).every(({ snippet, highlights }) => snippet === '' && highlights.length === 0)).toBe(true)
})
