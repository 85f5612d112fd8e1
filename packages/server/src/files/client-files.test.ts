import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Job, Storage } from '@impresario/core'
import { JobFiles, openStore } from '@impresario/files'
import type { FileStore } from '@impresario/files'
import { LIMITS } from '@impresario/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { SILENT } from '../runtime/log.ts'
import { ClientFiles } from './client-files.ts'
import type { ClientFileLimits } from './client-files.ts'

let directory = ''
let store: FileStore
let storage: Storage
let now = 1_000
let limits: Record<string, ClientFileLimits>
const owners = new Map<string, string>()

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-client-files-'))
  store = withAddresses(await openStore({ concurrencyMax: 10, bucket: 'b', directory }))
  now = 1_000
  storage = testStorage({ now: () => now })
  limits = { alpha: { filesMax: 3, bytesMax: 100 } }
  owners.clear()
  for (const jobId of ['a1', 'a2', 'a3']) owners.set(jobId, 'alpha')
  owners.set('b1', 'beta')
})
afterEach(async () => {
  await storage.close()
  await rm(directory, { recursive: true, force: true })
})

/** As S3 has them. Whoever has one writes to the store (`putBy`), and nobody here notices. */
function withAddresses(plain: FileStore): FileStore {
  const presign: FileStore['presign'] = async (key, options) =>
    `${key} ${options.method === 'PUT' ? options.bytes : options.method}`
  const of = (target: FileStore, name: string | symbol): unknown => {
    const value: unknown = Reflect.get(target, name)
    return typeof value === 'function' ? value.bind(target) : value
  }
  return new Proxy(plain, { get: (target, name) => (name === 'presign' ? presign : of(target, name)) })
}

async function putBy(given: string): Promise<void> {
  const [key = '', bytes] = given.split(' ')
  await store.put(key, Readable.from([Buffer.alloc(Number(bytes))]))
}

/** The address, or why there is none. */
async function address(files: JobFiles, jobId: string, name: string, bytes: number): Promise<string> {
  return files.presignUpload(jobId, name, bytes, ADDRESS_MS).then(
    (url) => url ?? 'none',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )
}

const ADDRESS_MS = 60_000
const ENDED_MS = ADDRESS_MS + LIMITS.fileAddressLingerMs
/** Longer than an instance waits before it looks again for addresses that have ended. */
const RELEASE_MS = 2_000

interface Instance {
  readonly files: JobFiles
  readonly accounts: ClientFiles
}

/** One of several that share the storage and the store. */
function instance(ofJob: { readonly jobFilesMax?: number; readonly jobBytesMax?: number } = {}): Instance {
  const accounts: ClientFiles = new ClientFiles({
    storage,
    log: SILENT,
    // Only the client of a job is asked for.
    readJob: async (id) => (owners.has(id) ? ({ client: { id: owners.get(id) } } as unknown as Job) : undefined),
    limitsOf: (clientId) => limits[clientId] ?? { filesMax: 0, bytesMax: 0 },
    hasLimits: () => Object.keys(limits).length > 0,
    files: () => files,
  })
  const jobLimits = { fileBytesMax: 1_000, jobFilesMax: 1_000, jobBytesMax: 10_000, ...ofJob }
  const files: JobFiles = new JobFiles(store, jobLimits, accounts)
  return { files, accounts }
}

async function put(files: JobFiles, jobId: string, name: string, size: number, isSaid = true): Promise<string> {
  const body = Readable.from([Buffer.alloc(size)])
  return files.put(jobId, name, body, isSaid ? { bytes: size } : {}).then(
    () => 'written',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )
}

async function use(): Promise<readonly unknown[]> {
  const value = (await storage.read('quota', '%files/alpha'))?.value
  return [value?.used, value?.bytes]
}

test('[J-02] the files of all jobs of a client count together, in number and bytes; the refusal says which limit and how much is used', async () => {
  const { files } = instance()
  expect(await put(files, 'a1', 'x', 40)).toBe('written')
  expect(await put(files, 'a2', 'x', 50)).toBe('written')
  expect(await put(files, 'a3', 'x', 11)).toBe(
    'The files of all jobs of this client may have 100 bytes together, of which 90 are used. This file has 11. ' +
      'Delete files that are not needed, or ask an operator to raise CLIENT_FILES_BYTES_MAX, or files_bytes_max in clients.toml.',
  )
  expect(await put(files, 'a3', 'x', 11, false)).toContain('10')
  expect(await put(files, 'a3', 'x', 10)).toBe('written')
  expect(await put(files, 'a3', 'y', 0)).toContain('may have 3 files together, and have 3.')
  expect(await put(files, 'b1', 'x', 900)).toBe('written')
  expect([await use(), await files.head('a3', 'y')]).toEqual([[3, 100], undefined])
})

test('[J-02] what replaces a file counts instead of it; what is deleted or was refused counts no longer', async () => {
  const { files } = instance()
  await put(files, 'a1', 'x', 60)
  await put(files, 'a1', 'y', 40)
  expect(await put(files, 'a1', 'x', 60)).toBe('written')
  expect(await put(files, 'a1', 'x', 61)).toContain('of which 100 are used')
  expect(await put(files, 'a1', 'x', 20)).toBe('written')
  expect(await use()).toEqual([2, 60])
  const broken = files.put('a2', 'z', Readable.from([Buffer.alloc(5)]), { bytes: 6 })
  await expect(broken).rejects.toMatchObject({ code: 'FILE_MISMATCH' })
  await files.mustHaveRoom('a2', 'z', 40)
  await files.delete('a1', 'y')
  await files.delete('a1', 'y')
  expect(await use()).toEqual([1, 20])
})

test('[J-02] many uploads to several instances at once stay within the limits of their client', async () => {
  const instances = [instance(), instance(), instance()]
  const said = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      put(instances[index % 3]!.files, `a${(index % 2) + 1}`, `file-${index}`, 1),
    ),
  )
  expect([said.filter((one) => one === 'written').length, await use()]).toEqual([3, [3, 3]])
})

test('[J-02] a new limit counts what is there; a count finds what came and went past the account', async () => {
  const { files, accounts } = instance()
  const limited = limits
  limits = {}
  for (const name of ['x', 'y']) await put(files, 'a1', name, 10)
  expect(await use()).toEqual([undefined, undefined])
  limits = limited
  expect(await put(files, 'a2', 'x', 10)).toBe('written')
  expect(await use()).toEqual([3, 30])
  // As an address of the store and the removal of a job do it.
  await store.put('jobs/a2/direct', Readable.from([Buffer.alloc(33)]))
  owners.delete('a1')
  await files.deleteAll('a1')
  await accounts.recount()
  expect(await use()).toEqual([2, 43])
  // With its limit the account goes too, and begins anew with the next one.
  limits = { beta: { filesMax: 1, bytesMax: 0 } }
  await accounts.recount()
  expect(await use()).toEqual([undefined, undefined])
})

test('[J-02] [J-06] a file counts for its client from the moment its address is issued, and once, however often it is sent', async () => {
  const { files, accounts } = instance()
  const first = await address(files, 'a1', 'x', 60)
  expect(await use()).toEqual([1, 60])
  expect(await address(files, 'a2', 'x', 41)).toContain('of which 60 are used')
  expect(await put(files, 'a2', 'x', 41)).toContain('of which 60 are used')
  // The same name again: the larger one counts.
  expect(await address(files, 'a1', 'x', 20)).toBe('jobs/a1/x 20')
  expect(await address(files, 'a1', 'x', 70)).toBe('jobs/a1/x 70')
  expect(await use()).toEqual([1, 70])
  await putBy(first)
  await accounts.recount()
  expect(await use()).toEqual([1, 70])
  // Deleted or replaced, it may come again as long as its address is good.
  await files.delete('a1', 'x')
  expect(await put(files, 'a1', 'x', 10)).toBe('written')
  expect([await use(), await put(files, 'a2', 'x', 31)]).toEqual([
    [1, 70],
    expect.stringContaining('of which 70 are used') as unknown,
  ])
  expect(await put(files, 'a1', 'x', 80)).toBe('written')
  expect(await use()).toEqual([1, 80])
  await files.delete('a1', 'x')
  expect(await use()).toEqual([1, 70])
  await accounts.recount()
  expect(await use()).toEqual([1, 70])
})

test('[J-02] [J-06] an address that has ended keeps no room; what came by it counts', async () => {
  const { files, accounts } = instance()
  await putBy(await address(files, 'a1', 'used', 50))
  await address(files, 'a1', 'unused', 30)
  await address(files, 'a2', 'other', 20)
  expect(await use()).toEqual([3, 100])
  expect(await put(files, 'a3', 'x', 1)).toContain('may have 3 files together, and have 3.')
  now += ENDED_MS - 1
  expect(await put(files, 'a3', 'x', 1)).toContain('may have 3 files together, and have 3.')
  now += RELEASE_MS
  expect(await put(instance().files, 'a3', 'x', 50)).toBe('written')
  expect(await use()).toEqual([2, 100])
  expect(await files.usage('a1')).toEqual({ files: 1, bytes: 50 })
  await accounts.recount()
  expect(await use()).toEqual([2, 100])
})

test('[J-02] [J-06] a count releases what has ended and keeps what may still come, also for jobs without any file', async () => {
  const { files, accounts } = instance()
  await address(files, 'a1', 'x', 10)
  now += ENDED_MS / 2
  await address(files, 'a2', 'y', 20)
  await accounts.recount()
  expect(await use()).toEqual([2, 30])
  now += ENDED_MS / 2
  await accounts.recount()
  expect(await use()).toEqual([1, 20])
  now += ENDED_MS / 2
  await accounts.recount()
  expect(await use()).toEqual([0, 0])
})

test('[J-02] [J-06] many addresses and uploads at once, at several instances, stay within the limits of the client', async () => {
  const instances = [instance(), instance(), instance()]
  const said = await Promise.all(
    Array.from({ length: 24 }, async (_, index) => {
      const { files } = instances[index % 3]!
      const [jobId, name] = [`a${(index % 2) + 1}`, `file-${index}`]
      return index % 4 < 2 ? address(files, jobId, name, 1) : put(files, jobId, name, 1)
    }),
  )
  const given = said.filter((one) => one.startsWith('jobs/'))
  expect([given.length + said.filter((one) => one === 'written').length, await use()]).toEqual([3, [3, 3]])
  for (const one of given) await putBy(one)
  await instances[0]!.accounts.recount()
  expect(await use()).toEqual([3, 3])
})

test('[J-02] [J-06] many addresses at several instances stay within the limits of a job, also without limits of its client', async () => {
  const byNumber = [instance({ jobFilesMax: 5 }), instance({ jobFilesMax: 5 })]
  const ask = async (of: readonly Instance[], jobId: string, bytes: number): Promise<readonly string[]> =>
    Promise.all(Array.from({ length: 12 }, (_, index) => address(of[index % 2]!.files, jobId, `${index}`, bytes)))
  const some = await ask(byNumber, 'b1', 1)
  expect(some.filter((one) => one.startsWith('jobs/'))).toHaveLength(5)
  expect(await put(byNumber[0]!.files, 'b1', 'streamed', 1)).toContain('The job has 5 files')
  const byBytes = [instance({ jobBytesMax: 35 }), instance({ jobBytesMax: 35 })]
  owners.set('b2', 'beta')
  expect((await ask(byBytes, 'b2', 10)).filter((one) => one.startsWith('jobs/'))).toHaveLength(3)
  expect(await put(byBytes[0]!.files, 'b2', 'streamed', 6)).toContain('of which 5 are left')
  now += ENDED_MS
  expect(await put(byBytes[0]!.files, 'b2', 'streamed', 35)).toBe('written')
})

test('[J-06] a job has so many addresses of the store at a time; beyond it, uploads come through the server', async () => {
  const { files } = instance()
  for (let index = 0; index < LIMITS.fileAddressesMax; index += 1) {
    expect(await address(files, 'b1', `${index}`, 1)).toBe(`jobs/b1/${index} 1`)
  }
  expect(await address(files, 'b1', 'more', 1)).toBe('none')
  expect(await address(files, 'b1', '7', 1)).toBe('jobs/b1/7 1')
  now += ENDED_MS
  expect(await address(files, 'b1', 'more', 1)).toBe('jobs/b1/more 1')
})

test('[J-02] an upload that is under way while the files are counted stays booked, and is settled once', async () => {
  const { files, accounts } = instance()
  let goOn = (): void => undefined
  const held = new Promise<void>((resolve) => {
    goOn = resolve
  })
  let isSending = (): void => undefined
  const sending = new Promise<void>((resolve) => {
    isSending = resolve
  })
  async function* slow(): AsyncGenerator<Uint8Array> {
    isSending()
    await held
    yield Buffer.alloc(7)
  }
  const upload = files.put('a1', 'slow', slow(), { bytes: 7 })
  await sending
  await accounts.recount()
  expect(await use()).toEqual([1, 7])
  goOn()
  await upload
  expect(await use()).toEqual([1, 7])
})
