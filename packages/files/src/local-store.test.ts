import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, expect, test } from 'vitest'
import { bytesOf, describeStore } from './describe-store.fixture.ts'
import type { FileStore } from './file-store.ts'
import { openStore } from './open-store.ts'

const made: string[] = []
afterAll(async () => Promise.all(made.map(async (path) => rm(path, { recursive: true, force: true }))))

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-files-'))
  made.push(directory)
  return directory
}

async function localStore(directory: string, concurrencyMax = 100): Promise<FileStore> {
  const store = await openStore({ concurrencyMax, bucket: 'impresario', directory: join(directory, 'files') })
  await store.check()
  return store
}

describeStore('a local directory', async () => {
  const directory = await newDirectory()
  return {
    store: await localStore(directory),
    open: async (concurrencyMax) => localStore(directory, concurrencyMax),
    isInByteOrder: true,
    hostileNames: 1_000,
    leftovers: async () => (await readdir(join(directory, 'files/.uploads'))).length,
    close: async () => {
      const beside = await readdir(directory)
      if (beside.join(', ') !== 'files') throw new Error(`A file has got out of the directory: ${beside.join(', ')}`)
    },
  }
})

const text = (content: string): Readable => Readable.from([Buffer.from(content)])

test('[J-01] links are not followed, wherever they stand and wherever they lead', async () => {
  const directory = await newDirectory()
  const store = await localStore(directory)
  await mkdir(join(directory, 'secret'))
  await writeFile(join(directory, 'secret/key'), 'private')
  await store.put('jobs/1/a', text('a'))
  await symlink(join(directory, 'secret/key'), join(directory, 'files/jobs+/1+/link'))
  await symlink(join(directory, 'secret'), join(directory, 'files/jobs+/2+'))
  expect(await store.get('jobs/1/link')).toBeUndefined()
  expect(await store.head('jobs/1/link')).toBeUndefined()
  expect(await store.get('jobs/2/key')).toBeUndefined()
  expect((await store.list('jobs/')).files.map(({ key }) => key)).toEqual(['jobs/1/a'])
  await store.delete(['jobs/2/key'])
  expect(await readFile(join(directory, 'secret/key'), 'utf8')).toBe('private')
  await expect(store.put('jobs/2/new', text('x'))).rejects.toMatchObject({ code: 'FILES_UNAVAILABLE' })
  expect(await readdir(join(directory, 'secret'))).toEqual(['key'])
  // A put replaces the link itself.
  await store.put('jobs/1/link', text('own'))
  expect(String(await bytesOf((await store.get('jobs/1/link'))?.body))).toBe('own')
  expect(await readFile(join(directory, 'secret/key'), 'utf8')).toBe('private')
})

test('[J-02] the sweep removes what a killed upload has left, and nothing that is being written', async () => {
  const directory = await newDirectory()
  const store = await localStore(directory)
  const uploads = join(directory, 'files/.uploads')
  await writeFile(join(uploads, 'killed'), randomBytes(100))
  await writeFile(join(uploads, 'running'), randomBytes(100))
  const hoursAgo = new Date(Date.now() - 7_200_000)
  await utimes(join(uploads, 'killed'), hoursAgo, hoursAgo)
  // Whoever is asked to wait for a day need not: a file that nobody has written to for an hour has nobody.
  expect(await store.sweep(86_400_000)).toBe(1)
  expect(await readdir(uploads)).toEqual(['running'])
})

test('[J-02] the sweep leaves an upload of this process alone, however long nothing of it comes', async () => {
  const directory = await newDirectory()
  const store = await localStore(directory)
  const uploads = join(directory, 'files/.uploads')
  async function* slow(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('one')
    const [draft = ''] = await readdir(uploads)
    const daysAgo = new Date(Date.now() - 172_800_000)
    await utimes(join(uploads, draft), daysAgo, daysAgo)
    expect(await store.sweep(1)).toBe(0)
    yield Buffer.from('two')
  }
  expect(await store.put('slow.txt', slow())).toMatchObject({ bytes: 6 })
  expect(await readdir(uploads)).toEqual([])
})

test('[J-01] puts and deletes in the same folder at the same time lose no file', async () => {
  const store = await localStore(await newDirectory())
  await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      await store.put(`same/folder/${index}`, text('x'))
      if (index % 2 === 0) await store.delete([`same/folder/${index}`])
    }),
  )
  expect((await store.list('same/')).files).toHaveLength(20)
})

test('[J-01] a directory that cannot be used is told without its path', async () => {
  const directory = await newDirectory()
  await writeFile(join(directory, 'files'), 'a file')
  const store = await openStore({ concurrencyMax: 1, bucket: 'b', directory: join(directory, 'files') })
  const refusal = await store.check().catch((error: unknown) => error)
  expect(refusal).toMatchObject({ code: 'FILES_UNAVAILABLE' })
  expect(String(refusal)).not.toContain(directory)
})
