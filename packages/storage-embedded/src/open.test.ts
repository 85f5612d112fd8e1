import { spawn } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test } from 'vitest'
import { isImpresarioError } from '@impresario/protocol'
import { temporaryDirectory } from './directory.fixture.ts'
import { openEmbeddedStorage } from './open.ts'
import { item, putJob } from './records.fixture.ts'

test('[G-01] a directory that is in use is refused with the process that uses it', async () => {
  const directory = temporaryDirectory()
  const storage = openEmbeddedStorage({ directory })
  const attempt = (): unknown => {
    try {
      return openEmbeddedStorage({ directory })
    } catch (error) {
      return error
    }
  }
  const refusal = attempt()
  expect(isImpresarioError(refusal, 'STORAGE_UNAVAILABLE') && refusal.details).toEqual({ directory, pid: process.pid })
  expect(isImpresarioError(refusal) && refusal.message).toContain(`${directory} is in use by process ${process.pid}`)
  await storage.close()
  const again = openEmbeddedStorage({ directory })
  await again.close()
})

test('[H-08] only its owner may read what it makes; what is there keeps its rights', async () => {
  const directory = join(temporaryDirectory(), 'new')
  const modeOf = (path: string): number => statSync(path).mode & 0o777
  const first = openEmbeddedStorage({ directory })
  await first.commit({ put: [putJob('a', 1)] })
  await first.sync()
  expect(modeOf(directory)).toBe(0o700)
  const files = readdirSync(directory).filter((name) => name.startsWith('impresario.db'))
  expect(files.length).toBeGreaterThan(0)
  for (const name of files) expect(modeOf(join(directory, name))).toBe(0o600)
  await first.close()
  const file = join(directory, 'impresario.db')
  chmodSync(file, 0o640)
  const second = openEmbeddedStorage({ directory })
  expect(modeOf(file)).toBe(0o640)
  await second.close()
})

test('[G-01] what a dead process left behind keeps nobody out', async () => {
  const directory = temporaryDirectory()
  writeFileSync(join(directory, 'impresario.pid'), '999999999\n')
  writeFileSync(join(directory, 'impresario.lock'), '')
  const storage = openEmbeddedStorage({ directory })
  await storage.close()
  expect(existsSync(join(directory, 'impresario.pid'))).toBe(false)
})

test('[G-01] [J-20] a file of a newer version is refused at the start and left as it is', async () => {
  const directory = temporaryDirectory()
  await openEmbeddedStorage({ directory }).close()
  const db = new DatabaseSync(join(directory, 'impresario.db'))
  db.exec('UPDATE meta SET schema_version = 99')
  expect(() => openEmbeddedStorage({ directory })).toThrow(/schema version 99; this program knows version 2/)
  expect(db.prepare('SELECT schema_version AS version, epoch FROM meta').get()).toMatchObject({ version: 99, epoch: 1 })
  db.exec('UPDATE meta SET schema_version = 2')
  db.close()
  await openEmbeddedStorage({ directory }).close()
})

test('[G-01] closing leaves everything in the database file and nothing in its log', async () => {
  const directory = temporaryDirectory()
  const copies = temporaryDirectory()
  const storage = openEmbeddedStorage({ directory })
  await storage.commit({ put: [putJob('j1', 1)] })
  await storage.close()
  copyFileSync(join(directory, 'impresario.db'), join(copies, 'impresario.db'))
  const copy = openEmbeddedStorage({ directory: copies })
  expect((await copy.read('job', 'j1'))?.version).toBe(1)
  await copy.close()
})

test('[G-01] the check of a sound file finds nothing, and finds what is not JSON', async () => {
  const directory = temporaryDirectory()
  const storage = openEmbeddedStorage({ directory })
  await storage.commit({ put: [putJob('j1', 1)], enqueue: [item('i1')] })
  await storage.sync()
  expect(storage.integrityCheck()).toEqual([])
  const db = new DatabaseSync(join(directory, 'impresario.db'))
  db.exec(`UPDATE records SET data = '{'; UPDATE items SET payload = 'x'`)
  db.close()
  expect(storage.integrityCheck()).toEqual([
    'The record job j1 is not JSON.',
    'The payload of the item turns i1 is not JSON.',
  ])
  await storage.close()
})

test('[G-01] a write that the file refuses breaks the storage', async () => {
  const directory = temporaryDirectory()
  const failures: Error[] = []
  const storage = openEmbeddedStorage({ directory, onFailure: (error) => failures.push(error) })
  await storage.commit({ put: [putJob('j1', 1)] })
  await storage.sync()
  const db = new DatabaseSync(join(directory, 'impresario.db'))
  db.exec('DROP TABLE items')
  db.close()
  await storage.commit({ enqueue: [item('i1')] })
  await expect(storage.sync()).rejects.toThrow('no such table')
  await expect(storage.commit({})).rejects.toThrow('no such table')
  expect(failures).toHaveLength(1)
  await expect(storage.close()).rejects.toThrow('no such table')
})

test('[G-01] a copy of the files in full flight holds everything that was durable', async () => {
  const directory = temporaryDirectory()
  const copies = temporaryDirectory()
  const storage = openEmbeddedStorage({ directory })
  const durable: string[] = []
  const write = async (lane: number): Promise<void> => {
    for (let number = 0; number < 40; number++) {
      const id = `${lane}-${number}`
      await storage.commit({ put: [putJob(id, 1)], enqueue: [item(id)] })
      await storage.sync()
      durable.push(id)
    }
  }
  const writing = Promise.all([write(1), write(2), write(3)])
  while (durable.length < 30) await Promise.resolve(storage.sync()).then(() => new Promise(setImmediate))
  const promised = [...durable]
  // The log only grows before its first checkpoint, so that this copy is what a crash would leave.
  for (const name of ['impresario.db', 'impresario.db-wal']) copyFileSync(join(directory, name), join(copies, name))
  await writing
  await storage.close()

  const copy = openEmbeddedStorage({ directory: copies })
  expect(copy.integrityCheck()).toEqual([])
  for (const id of promised) expect((await copy.read('job', id))?.version).toBe(1)
  expect((await copy.peek('turns', promised)).map((view) => view?.id)).toEqual(promised)
  const all = await copy.list('job', { limit: 1_000 })
  expect(
    await copy.peek(
      'turns',
      all.map(({ id }) => id),
    ),
  ).not.toContain(undefined)
  await copy.close()
})

/** Runs the writer until it has reported so many durable jobs, kills it, and gives back all that it reported. */
function runAndKill(directory: string, reports: number): Promise<readonly string[]> {
  const loader = createRequire(import.meta.url).resolve('tsx')
  const program = fileURLToPath(new URL('crash-writer.fixture.ts', import.meta.url))
  const child = spawn(process.execPath, ['--conditions=source', '--import', loader, program, directory])
  return new Promise((resolve, reject) => {
    let output = ''
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString()
    })
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      if (output.split('\n').length > reports) child.kill('SIGKILL')
    })
    child.on('close', (code, signal) => {
      if (signal === 'SIGKILL') resolve(output.split('\n').slice(0, -1))
      else reject(new Error(`The writer ended by itself with ${code}: ${errors}`))
    })
  })
}

test('[G-01] a process that is killed loses nothing that it called durable', { timeout: 120_000 }, async () => {
  const directory = temporaryDirectory()
  const reported: string[] = []
  for (const reports of [3, 40, 150, 90, 20]) {
    reported.push(...(await runAndKill(directory, reports)))
    const storage = openEmbeddedStorage({ directory })
    expect(storage.integrityCheck()).toEqual([])
    const stored = (await storage.list('job', { limit: 100_000 })).map(({ id }) => id).toReversed()
    const missing = reported.filter((id) => !stored.includes(id))
    expect(missing).toEqual([])
    // The newest may be lost, but none in the middle.
    expect(stored).toEqual(stored.map((_, index) => String(index).padStart(8, '0')))
    expect(await storage.peek('turns', stored)).not.toContain(undefined)
    await storage.close()
  }
  expect(reported.length).toBeGreaterThanOrEqual(303)
})
