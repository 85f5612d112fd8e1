import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Job, Storage } from '@impresario/core'
import { JobFiles, openStore } from '@impresario/files'
import type { FileStore } from '@impresario/files'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { SILENT } from '../runtime/log.ts'
import { ClientFiles } from './client-files.ts'
import type { ClientFileLimits } from './client-files.ts'

let directory = ''
let store: FileStore
let storage: Storage
let limits: Record<string, ClientFileLimits>
const owners = new Map<string, string>()

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-client-files-'))
  store = await openStore({ concurrencyMax: 10, bucket: 'b', directory })
  storage = testStorage({ now: () => 1_000 })
  limits = { alpha: { filesMax: 3, bytesMax: 100 } }
  owners.clear()
  for (const jobId of ['a1', 'a2', 'a3']) owners.set(jobId, 'alpha')
  owners.set('b1', 'beta')
})
afterEach(async () => {
  await storage.close()
  await rm(directory, { recursive: true, force: true })
})

interface Instance {
  readonly files: JobFiles
  readonly accounts: ClientFiles
}

/** One of several that share the storage and the store. */
function instance(): Instance {
  const accounts: ClientFiles = new ClientFiles({
    storage,
    log: SILENT,
    // Only the client of a job is asked for.
    readJob: async (id) => (owners.has(id) ? ({ client: { id: owners.get(id) } } as unknown as Job) : undefined),
    limitsOf: (clientId) => limits[clientId] ?? { filesMax: 0, bytesMax: 0 },
    hasLimits: () => Object.keys(limits).length > 0,
    files: () => files,
  })
  const files: JobFiles = new JobFiles(store, { fileBytesMax: 1_000, jobFilesMax: 100, jobBytesMax: 10_000 }, accounts)
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
