import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { JobFiles, JobValues, openStore } from '@impresario/files'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SILENT } from '../runtime/log.ts'
import { createClock } from '../runtime/clock.ts'
import { FileJanitor } from './file-janitor.ts'
import type { FileJanitorOptions } from './file-janitor.ts'

let directory = ''
let files: JobFiles
const jobs = new Set<string>()

beforeEach(async () => {
  jobs.clear()
  directory = await mkdtemp(join(tmpdir(), 'impresario-janitor-'))
  const store = await openStore({ concurrencyMax: 10, bucket: 'b', directory: join(directory, 'files') })
  files = new JobFiles(store, { fileBytesMax: 1_000, jobFilesMax: 10, jobBytesMax: 10_000 })
})
afterEach(async () => rm(directory, { recursive: true, force: true }))

function janitor(more: Partial<FileJanitorOptions> = {}): FileJanitor {
  return new FileJanitor({
    service: { files, store: files.store, values: new JobValues(files.store) },
    clock: createClock(),
    log: SILENT,
    owner: 'one',
    existing: async (ids) => new Set(ids.filter((id) => jobs.has(id))),
    removesFiles: true,
    everyMs: 1_000,
    recount: async () => undefined,
    copiesDirectory: undefined,
    ...more,
  })
}

async function outOfReach(): Promise<never> {
  throw new Error('The storage is away')
}

async function put(jobId: string, name: string): Promise<void> {
  await files.put(jobId, name, Readable.from([Buffer.from('x')]))
}

async function jobsWithFiles(): Promise<readonly string[]> {
  const found: string[] = []
  for await (const jobId of files.jobs()) found.push(jobId)
  return found.toSorted()
}

test('[J-03] files go with their job and not before, whatever the id of the job is made of', async () => {
  const odd = ['..', 'a/b', 'a%2Fb', 'é', '.', 'x'.repeat(300)]
  for (const jobId of ['kept', 'gone', ...odd]) for (const name of ['a', 'b/c']) await put(jobId, name)
  jobs.add('kept').add('a/b')
  expect(await jobsWithFiles()).toEqual(['kept', 'gone', ...odd].toSorted())
  expect(await janitor().sweep()).toBe(12)
  expect(await jobsWithFiles()).toEqual(['a/b', 'kept'])
  expect(await janitor().sweep()).toBe(0)
})

test('[J-03] a store of another installation is left alone, and so is everything while jobs cannot be looked up', async () => {
  await put('mine', 'a')
  jobs.add('mine')
  await janitor().sweep()
  jobs.clear()
  const left = join(directory, 'files/.uploads/left')
  const daysAgo = new Date(Date.now() - 200_000_000)
  await writeFile(left, 'an upload of the other installation')
  await utimes(left, daysAgo, daysAgo)
  expect(await janitor({ owner: 'another' }).sweep()).toBe(0)
  await rm(left)
  const away = janitor({ existing: outOfReach })
  await expect(away.sweep()).rejects.toThrow('The storage is away')
  expect(await janitor({ removesFiles: false }).sweep()).toBe(0)
  expect(await jobsWithFiles()).toEqual(['mine'])
  expect(await janitor().sweep()).toBe(1)
})

test('[J-03] what killed uploads and killed handlers have left is removed', async () => {
  await put('kept', 'a')
  jobs.add('kept')
  const left = join(directory, 'files/.uploads/left')
  await writeFile(left, 'half of it')
  const copies = join(directory, 'copies')
  for (const name of ['turn-old', 'turn-new', 'somebody-elses']) await mkdir(join(copies, name), { recursive: true })
  const daysAgo = new Date(Date.now() - 200_000_000)
  for (const path of [left, join(copies, 'turn-old'), join(copies, 'somebody-elses')]) {
    await utimes(path, daysAgo, daysAgo)
  }
  await janitor({ copiesDirectory: copies }).sweep()
  expect(await readdir(join(directory, 'files/.uploads'))).toEqual([])
  expect((await readdir(copies)).toSorted()).toEqual(['somebody-elses', 'turn-new'])
})
