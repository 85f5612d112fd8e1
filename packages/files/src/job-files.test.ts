import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { FileStore } from './file-store.ts'
import { JobFiles } from './job-files.ts'
import { openStore } from './open-store.ts'

async function newStore(): Promise<FileStore> {
  const directory = mkdtempSync(join(tmpdir(), 'impresario-job-files-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const store = await openStore({ concurrencyMax: 10, bucket: 'files', directory })
  await store.check()
  return store
}

function boundTo(target: FileStore, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name)
  return typeof value === 'function' ? value.bind(target) : value
}

async function* pieces(...texts: readonly (string | Promise<unknown>)[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) {
    if (typeof text === 'string') yield Buffer.from(text)
    else await text
  }
}

test('[J-02] an upload that ends while another one looks for room counts for that one too', async () => {
  const store = await newStore()
  let looks = 0
  let goOn = (): void => undefined
  const held = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const list: FileStore['list'] = async (...given) => {
    looks += 1
    const isSecond = looks === 2
    const listing = await store.list(...given)
    if (!isSecond) return listing
    // The second one has looked; now the first ends, before the second goes on.
    goOn()
    await first
    return listing
  }
  const slow = new Proxy(store, { get: (target, name) => (name === 'list' ? list : boundTo(target, name)) })
  const files = new JobFiles(slow, { fileBytesMax: 100, jobFilesMax: 1, jobBytesMax: 100 })
  const first = files.put('job', 'a.txt', pieces('a', held))
  await expect(files.put('job', 'b.txt', pieces('b'))).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
  await expect(first).resolves.toMatchObject({ key: 'a.txt', bytes: 1 })
  expect(await files.usage('job')).toEqual({ files: 1, bytes: 1 })
  // The file may be replaced: it does not count beside itself.
  await expect(files.put('job', 'a.txt', pieces('again'))).resolves.toMatchObject({ bytes: 5 })
})

test('[J-02] many uploads at once stay within the limits of their job, in number and in bytes', async () => {
  const store = await newStore()
  const byNumber = new JobFiles(store, { fileBytesMax: 100, jobFilesMax: 5, jobBytesMax: 10_000 })
  const puts = Array.from({ length: 30 }, (_, index) => byNumber.put('one', `${index}`, pieces('x'), { bytes: 1 }))
  const kept = (await Promise.allSettled(puts)).filter(({ status }) => status === 'fulfilled')
  expect([kept.length, (await byNumber.usage('one')).files]).toEqual([5, 5])
  const byBytes = new JobFiles(store, { fileBytesMax: 100, jobFilesMax: 1_000, jobBytesMax: 55 })
  const text = '0123456789'
  await Promise.allSettled(
    Array.from({ length: 30 }, (_, i) => byBytes.put('two', `${i}`, pieces(text), { bytes: 10 })),
  )
  expect(await byBytes.usage('two')).toEqual({ files: 5, bytes: 50 })
})
