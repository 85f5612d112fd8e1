import { copyFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { isImpresarioError } from '@impresario/protocol'
import { temporaryDirectory } from './directory.fixture.ts'
import { FILES_GONE } from './file-identity.ts'
import { openEmbeddedStorage } from './open.ts'
import { putJob } from './records.fixture.ts'

function replace(directory: string, name: string): void {
  const path = join(directory, name)
  copyFileSync(path, `${path}.copy`)
  renameSync(`${path}.copy`, path)
}

const HARMS: readonly (readonly [string, (directory: string) => void])[] = [
  ['the file deleted', (directory) => rmSync(join(directory, 'impresario.db'))],
  ['the log deleted', (directory) => rmSync(join(directory, 'impresario.db-wal'))],
  ['the lock deleted', (directory) => rmSync(join(directory, 'impresario.lock'))],
  ['the file replaced by a copy', (directory) => replace(directory, 'impresario.db')],
  ['the directory moved away', (directory) => renameSync(directory, `${directory}-away`)],
]

test.each(HARMS)('[G-01] with %s nothing more is acknowledged', async (_name, harm) => {
  const directory = join(temporaryDirectory(), 'data')
  const failures: Error[] = []
  const storage = openEmbeddedStorage({ directory, onFailure: (error) => failures.push(error) })
  await storage.commit({ put: [putJob('j1', 1)] })
  await storage.sync()
  harm(directory)
  // The check that runs every second may have been faster than the commit.
  const acknowledged = Promise.resolve(storage.commit({ put: [putJob('j2', 1)] })).then(() => storage.sync())
  await expect(acknowledged).rejects.toThrow(FILES_GONE)
  await expect(storage.read('job', 'j1')).rejects.toThrow(FILES_GONE)
  expect(failures).toHaveLength(1)
  expect(isImpresarioError(failures[0], 'STORAGE_UNAVAILABLE') && failures[0].details).toEqual({ reason: 'files_gone' })
  await expect(storage.close()).rejects.toThrow(FILES_GONE)
})

test('[G-01] files that are gone are noticed while nobody writes', async () => {
  const directory = temporaryDirectory()
  const failures: Error[] = []
  const storage = openEmbeddedStorage({ directory, onFailure: (error) => failures.push(error) })
  await storage.commit({ put: [putJob('j1', 1)] })
  await storage.sync()
  rmSync(join(directory, 'impresario.db'))
  await vi.waitUntil(() => failures.length > 0, { timeout: 60_000, interval: 20 })
  await expect(storage.read('job', 'j1')).rejects.toThrow(FILES_GONE)
  await expect(storage.close()).rejects.toThrow(FILES_GONE)
})
