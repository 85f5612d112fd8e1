import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startPostgres } from '../../../../test/servers/postgres-server.ts'
import type { PostgresServer } from '../../../../test/servers/postgres-server.ts'
import { parsedDocument } from '../parsing/parsed-document.ts'
import type { ParsedDocument } from '../parsing/parser.ts'
import type { Indexer } from './indexer.ts'
import { openPostgresIndex } from './postgres-index.ts'
import { DocumentSearch } from './search.ts'
import { SearchThreads } from './search-threads.ts'
import { SqliteIndex } from './sqlite-index.ts'

function documentOf(path: string, text: string, { title = '', kind = 'txt' } = {}): ParsedDocument {
  return parsedDocument(path.slice(path.lastIndexOf('/') + 1), { kind, title, text, isTruncated: false })
}

const print = (hash: string, mtimeMs = 1_700_000_000_000) => ({ size: 10, mtimeMs, hash })

let directory = ''
let postgres: PostgresServer
let schemas = 0
beforeAll(async () => {
  postgres = await startPostgres()
})
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-index-'))
  schemas += 1
})
afterEach(() => rm(directory, { recursive: true, force: true }))
afterAll(() => postgres.stop())

const OPENERS: readonly (readonly [name: string, open: (owner?: string) => Promise<Indexer>])[] = [
  ['SQLite', async () => new SqliteIndex(directory)],
  ['PostgreSQL', (owner = 'us') => openPostgresIndex({ url: `${postgres.url}?schema=index_${schemas}`, owner })],
]

describe.each(OPENERS)('%s', (_name, open) => {
  let index: Indexer
  beforeEach(async () => {
    index = await open()
  })
  afterEach(() => index.close())

  async function put(
    path: string,
    text: string,
    options: { title?: string; kind?: string; mtimeMs?: number } = {},
  ): Promise<void> {
    await index.put(path, print(text, options.mtimeMs), documentOf(path, text, options))
  }

  async function paths(query: string): Promise<readonly string[]> {
    return (await index.search(query)).hits.map(({ path }) => path)
  }

  test('[L-04] documents are found by any form of their words, in both languages', async () => {
    await put('/a.txt', 'Договоры аренды подписаны. Reports were delivered.')
    await put('/b.txt', 'Ничего общего')
    expect(await paths('договору')).toEqual(['/a.txt'])
    expect(await paths('deliver report')).toEqual(['/a.txt'])
    expect(await paths('договор несуществующее')).toEqual([])
  })

  test('[L-04] updates and deletes are visible at once', async () => {
    await put('/a.txt', 'первое слово')
    expect(await paths('первый')).toEqual(['/a.txt'])
    await put('/a.txt', 'второе слово')
    expect(await paths('первый')).toEqual([])
    expect(await paths('второй')).toEqual(['/a.txt'])
    await index.remove('/a.txt')
    expect(await paths('второй')).toEqual([])
  })

  test('[L-04] the name and the title count for more than the text', async () => {
    const filler = 'прочие слова в тексте. '.repeat(20)
    await put('/text.txt', `${filler} бюджет ${filler}`)
    await put('/title.txt', filler, { title: 'Бюджет на год' })
    await put('/бюджет.txt', filler)
    for (let other = 0; other < 10; other += 1) await put(`/other${other}.txt`, filler)
    expect(await paths('бюджет')).toEqual(['/бюджет.txt', '/title.txt', '/text.txt'])
  })

  test('[L-04] phrases, prefixes, exclusion, fields and dates', async () => {
    await put('/x/plan.txt', 'красный кирпичный дом', { kind: 'pdf', mtimeMs: new Date(2_024, 2, 5).getTime() })
    await put('/y/дом.txt', 'дом из красного кирпича и AB-123/4', { mtimeMs: new Date(2_023, 2, 5).getTime() })
    expect(await paths('"красный дом"')).toEqual([])
    expect(await paths('"кирпичный дом"')).toEqual(['/x/plan.txt'])
    expect((await paths('кирпич*')).toSorted()).toEqual(['/x/plan.txt', '/y/дом.txt'])
    expect(await paths('красный -AB-123/4')).toEqual(['/x/plan.txt'])
    expect(await paths('123')).toEqual(['/y/дом.txt'])
    expect(await paths('name:дом')).toEqual(['/y/дом.txt'])
    expect(await paths('красный type:pdf')).toEqual(['/x/plan.txt'])
    expect(await paths('красный path:/Y/')).toEqual(['/y/дом.txt'])
    expect(await paths('date:2024')).toEqual(['/x/plan.txt'])
    expect(await paths('-кирпичный')).toEqual(['/y/дом.txt'])
    for (const query of ['красный -type:pdf', '-type:pdf,zip', 'красный -path:/X/', '-path:plan']) {
      expect(await paths(query)).toEqual(['/y/дом.txt'])
    }
    await expect(index.search('красный -date:2024')).rejects.toMatchObject({ code: 'INPUT_REFUSED' })
  })

  test('[L-04] odd queries give an answer or a reason, never an error of the database', async () => {
    await put('/a.txt', 'слово')
    for (const odd of ['"', '()', 'a AND OR', 'NEAR(', '***', 'name:"', "'; --", '^', '{a}', '\u0000', 'слово"']) {
      await expect(index.search(odd)).resolves.toBeDefined()
    }
  })

  test('[L-04] a query of nothing but signs finds nothing, and an empty one shows the newest', async () => {
    await put('/old.txt', 'слово', { mtimeMs: 1 })
    await put('/new.txt', 'слово', { mtimeMs: 2 })
    for (const nothing of ['"', '***', '— …', 'OR', '!?', '🎉']) expect(await paths(nothing)).toEqual([])
    expect(await paths('  ')).toEqual(['/new.txt', '/old.txt'])
  })

  test('[L-04] pages follow one another, and those that cannot be are refused', async () => {
    for (const name of ['a', 'b', 'c']) await put(`/${name}.txt`, 'слово')
    const page = async (limit: number, offset: number): Promise<readonly [string, boolean]> => {
      const { hits, hasMore } = await index.search('слово', { limit, offset })
      return [hits.map(({ name }) => name[0]).join(''), hasMore]
    }
    expect(await page(2, 0)).toEqual(['ab', true])
    expect(await page(2, 2)).toEqual(['c', false])
    expect(await page(0, 0)).toEqual(['', true])
    expect(await page(1_000_000, 0)).toEqual(['abc', false])
    for (const [limit, offset] of [
      [-1, 0],
      [1, -1],
      [1.5, 0],
      [1, 10_001],
      [Number.NaN, 0],
    ] as const) {
      await expect(page(limit, offset)).rejects.toMatchObject({ code: 'INPUT_REFUSED' })
    }
  })

  test('[L-01] a document that is moved keeps its identity, whichever is noticed first', async () => {
    await put('/old.txt', 'содержание')
    const before = await index.file('/old.txt')
    await index.remove('/old.txt')
    const [gone] = await index.withHash('содержание', '/new.txt')
    expect(gone?.id).toBe(before?.id)
    await index.mark('/new.txt', { status: 'running' })
    await index.put('/new.txt', print('содержание'), documentOf('/new.txt', 'содержание'), gone)
    expect((await index.file('/new.txt'))?.id).toBe(before?.id)
    expect(await paths('содержание')).toEqual(['/new.txt'])
    expect((await index.counts()).documents).toBe(1)
  })

  test('[L-01] a file that is back at its old path keeps its record, whatever was thought to be its new one', async () => {
    await put('/old.txt', 'содержание')
    const [moved] = await index.withHash('содержание', '/new.txt')
    expect(moved?.path).toBe('/old.txt')
    // Renamed back while the other path was read.
    await index.mark('/old.txt', { status: 'running' })
    await index.put('/new.txt', print('содержание'), documentOf('/new.txt', 'содержание'), moved)
    await index.touch('/old.txt', print('содержание'))
    await index.remove('/new.txt')
    expect(await paths('содержание')).toEqual(['/old.txt'])
  })

  test('[L-05] the status of a file is kept with its reason, and survives the process', async () => {
    await index.mark('/a.txt', { status: 'pending', priority: 2 })
    await index.mark('/b.pdf', { status: 'retry', attempts: 2, code: 'TIMEOUT', error: 'took too long' })
    await index.fail(
      '/b.pdf',
      { size: 7, mtimeMs: 9 },
      { status: 'failed', attempts: 3, code: 'BROKEN', error: 'cut off' },
    )
    await index.close()
    index = await open()
    expect(await index.file('/a.txt')).toMatchObject({ status: 'pending', priority: 2 })
    expect(await index.file('/b.pdf')).toMatchObject({
      status: 'failed',
      attempts: 3,
      code: 'BROKEN',
      error: 'cut off',
      size: 7,
    })
    expect((await index.counts()).byStatus).toEqual({ pending: 1, running: 0, completed: 0, failed: 1, retry: 0 })
  })

  test('[L-05] the files of a folder are listed and counted as changed, whatever letters its name has', async () => {
    for (const path of ['/🗂️ папка/a.txt', '/🗂️ папка/вложенная/b.txt', '/🗂️ папка 2/c.txt']) await put(path, path)
    for (const under of ['/🗂️ папка', '/🗂️ папка/']) {
      expect((await index.files({ under })).map(({ path }) => path)).toEqual([
        '/🗂️ папка/a.txt',
        '/🗂️ папка/вложенная/b.txt',
      ])
      expect(await index.invalidate(under)).toBe(2)
    }
  })

  test('[L-04] a document that cannot be read any more is not found any more', async () => {
    await put('/a.txt', 'видимое')
    await index.fail('/a.txt', { size: 1, mtimeMs: 1 }, { status: 'failed', code: 'BROKEN', error: 'x' })
    expect(await paths('видимое')).toEqual([])
  })

  test('writes that come together go together, and one that fails is undone alone', async () => {
    const done = await Promise.allSettled([
      put('/a.txt', 'раз'),
      index.put('/b.txt', print('b'), { ...documentOf('/b.txt', 'два'), packedText: bad() }),
      put('/c.txt', 'три'),
    ])
    expect(done.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await index.file('/b.txt')).toBeUndefined()
    expect((await index.counts()).documents).toBe(2)
  })
})

test('[L-04] SQLite: what is written is visible to another process at once', async () => {
  const index = new SqliteIndex(directory)
  const write = (text: string): Promise<void> => index.put('/a.txt', print(text), documentOf('/a.txt', text))
  await write('первое слово')
  const reader = new DocumentSearch(directory)
  expect(reader.search('первый').hits).toHaveLength(1)
  await write('второе слово')
  expect(reader.search('первый').hits).toHaveLength(0)
  expect(reader.search('второй').hits).toHaveLength(1)
  await index.remove('/a.txt')
  expect(reader.search('второй').hits).toHaveLength(0)
  reader.close()
  await index.close()
})

describe('PostgreSQL', () => {
  const openFor = (owner: string) => openPostgresIndex({ url: `${postgres.url}?schema=index_${schemas}`, owner })

  test('[L-04] [G-02] two processes open the same index at once, and both see what either writes', async () => {
    const [one, other] = await Promise.all([openFor('us'), openFor('us')])
    const documents = Array.from({ length: 40 }, (_, index) => `/d${index}.txt`)
    await Promise.all(
      documents.flatMap((path) =>
        [one, other].map((index) => index.put(path, print(path), documentOf(path, `слово ${path}`))),
      ),
    )
    expect((await one.search('слова', { limit: 100 })).hits.map(({ path }) => path).toSorted()).toEqual(
      documents.toSorted(),
    )
    expect((await other.counts()).documents).toBe(40)
    await Promise.all([one.close(), other.close()])
  })

  test('[L-04] [H-05] nothing of one client is found, listed, counted or read by another', async () => {
    const [mine, theirs] = [await openFor('me'), await openFor('them')]
    await mine.put('/a.txt', print('a'), documentOf('/a.txt', 'секретное слово'))
    const id = (await mine.search('слово')).hits[0]?.id ?? 0
    expect((await mine.text(id))?.text).toBe('секретное слово')
    for (const query of ['слово', 'секрет*', '-другое', 'type:txt', 'name:a']) {
      expect((await theirs.search(query)).hits).toEqual([])
    }
    expect(await theirs.text(id)).toBeUndefined()
    expect(await theirs.file('/a.txt')).toBeUndefined()
    expect(await theirs.files({})).toEqual([])
    expect(await theirs.withHash('a', '/b.txt')).toEqual([])
    expect((await theirs.counts()).documents).toBe(0)
    expect(await theirs.remove('/a.txt')).toBe(false)
    await Promise.all([mine.close(), theirs.close()])
  })

  test('[L-04] a document with more words than PostgreSQL holds is found by its first words and by its last', async () => {
    const index = await openFor('us')
    const words = Array.from({ length: 30_000 }, (_, number) => `word${number}`)
    await index.put('/long.txt', print('long'), documentOf('/long.txt', words.join(' ')))
    for (const query of ['word1', '"word7 word8"', 'word29999']) {
      expect((await index.search(query)).hits).toHaveLength(1)
    }
    const endless = Array.from({ length: 200_000 }, (_, number) => `${number}endless${number * 7}`)
    await index.put('/endless.txt', print('endless'), documentOf('/endless.txt', endless.join(' ')))
    expect((await index.search('1endless7')).hits).toHaveLength(1)
    await index.close()
  })

  test('[L-04] the texts that a search looks through are bounded, and other threads make the snippets', async () => {
    const text = `склад ${'слово '.repeat(20_000)}`
    const url = `${postgres.url}?schema=index_${schemas}`
    const threads = new SearchThreads({ threadsMax: 1 })
    const index = await openPostgresIndex({ url, owner: 'us', snippetCharsMax: text.length * 3, threads })
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await index.put(`/${name}.txt`, print(name), documentOf(`/${name}.txt`, text))
    }
    for (const query of ['склад', 'type:txt']) {
      const { hits } = await index.search(query, { limit: 4 })
      expect(hits.map(({ snippet }) => snippet.startsWith('склад'))).toEqual([true, true, true, false])
      expect(hits[3]).toMatchObject({ snippet: '', highlights: [] })
    }
    const [first] = (await index.search('склад')).hits
    expect(first?.highlights[0]).toEqual([0, 5])
    expect((await index.text(first?.id ?? 0))?.text).toBe(text)
    expect(threads.size).toEqual({ usable: 1, stuck: 0 })
    const hasty = await openPostgresIndex({ url, owner: 'us', threads: new SearchThreads({ searchMs: 0 }) })
    await expect(hasty.search('склад')).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
    await Promise.all([index.close(), hasty.close()])
  })

  test('[L-04] [I-09] a database that is gone is an error that names no address, and comes back', async () => {
    const refused = await openPostgresIndex({ url: 'postgres://me:hidden@127.0.0.1:1/none', owner: 'us' }).catch(
      (error: unknown) => error,
    )
    expect(refused).toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    expect(String(refused)).not.toMatch(/hidden|127\.0\.0\.1/)
  })
})

/** What a replaced parser might give. */
function bad(): Uint8Array {
  return { not: 'bytes' } as unknown as Uint8Array
}
