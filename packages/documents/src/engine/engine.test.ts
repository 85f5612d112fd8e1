import { mkdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { documentsConfig } from '../config/config.ts'
import { createDocuments } from '../documents.ts'
import { SqliteIndex } from '../index/sqlite-index.ts'
import { requestFrom } from '../outside.ts'
import { ParseFailure } from '../parsing/parser.ts'
import { memoryLog, newDirectory, pathsFor, QUICK, startDocuments, TextParser } from './documents.fixture.ts'

async function filesIn(
  folder: string,
  count: number,
  text = (index: number) => `документ номер${index}`,
): Promise<readonly string[]> {
  const paths = Array.from({ length: count }, (_, index) => join(folder, `file${String(index).padStart(4, '0')}.txt`))
  for (const [index, path] of paths.entries()) await writeFile(path, text(index))
  return paths
}

test('[L-03] the queue is bounded: a caller is refused with QUEUE_FULL, and a folder waits for room', async () => {
  const folder = await newDirectory('folder')
  const paths = await filesIn(folder, 6)
  const parser = new TextParser()
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  parser.before = () => held
  const config = documentsConfig({ engine: { workers: { count: 2 }, queue: { max_size: 3 } } })
  const documents = await startDocuments({ directory: await newDirectory(), parser, config })
  for (const path of paths.slice(0, 3)) await documents.add(path)
  expect(documents.status().queue_size).toBe(3)
  await expect(documents.add(paths[3]!)).rejects.toThrow(/failed to enqueue parse task: the queue is full/)
  await expect(documents.add(paths[3]!)).rejects.toMatchObject({ code: 'QUEUE_FULL', status: 429 })
  let isIn = false
  const whole = documents.add(folder).then(() => (isIn = true))
  await vi.waitFor(() => expect(parser.underWay).toBe(2))
  expect(isIn).toBe(false)
  expect(documents.status().queue_size).toBe(3)
  release()
  await whole
  await documents.idle()
  expect(await pathsFor(documents, 'документ')).toEqual([...paths])
})

test('[L-03] files of higher priority are read first: by rule, else by size and age', async () => {
  const folder = await newDirectory('folder')
  const parser = new TextParser()
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  parser.before = () => held
  const config = documentsConfig({
    priorities: { high: ['urgent/**'], low: ['*.log'] },
    engine: { workers: { count: 1 } },
  })
  const documents = await startDocuments({ directory: await newDirectory(), parser, config })
  await mkdir(join(folder, 'urgent'))
  const old = new Date(Date.now() - 30 * 86_400_000)
  const names = ['first.txt', 'a.log', 'old.txt', 'urgent/b.txt']
  for (const name of names) await writeFile(join(folder, name), 'слово')
  await utimes(join(folder, 'old.txt'), old, old)
  await utimes(join(folder, 'urgent/b.txt'), old, old)
  await documents.add(join(folder, 'first.txt'))
  await vi.waitFor(() => expect(parser.underWay).toBe(1))
  for (const name of names.slice(1)) await documents.add(join(folder, name))
  expect((await documents.stats()).queue.byPriority).toEqual([1, 1, 2])
  release()
  await documents.idle()
  expect(parser.parsed.map((path) => path.slice(folder.length + 1))).toEqual([
    'first.txt',
    'urgent/b.txt',
    'old.txt',
    'a.log',
  ])
})

test('[L-03] as many files are read at a time as the pool has workers', async () => {
  const folder = await newDirectory('folder')
  await filesIn(folder, 30)
  const parser = new TextParser()
  let arrived = (): void => undefined
  const four = new Promise<void>((resolve) => (arrived = resolve))
  parser.before = async () => {
    if (parser.underWay === 4) arrived()
    await four
  }
  const config = documentsConfig({ engine: { workers: { count: 4 } } })
  const documents = await startDocuments({ directory: await newDirectory(), parser, config })
  await documents.add(folder)
  await documents.idle()
  expect(parser.mostUnderWay).toBe(4)
  expect(documents.status()).toMatchObject({
    status: 'running',
    tasks_total: 30,
    tasks_done: 30,
    tasks_failed: 0,
    queue_size: 0,
  })
})

test('[L-03] a task that fails is tried again with a growing wait, and then its file has failed with the reason', async () => {
  const folder = await newDirectory('folder')
  const [bad = '', good = ''] = await filesIn(folder, 2)
  const parser = new TextParser()
  const seen: (string | undefined)[] = []
  parser.before = async (path) => {
    if (path !== bad) return
    seen.push((await documents.file(bad))?.status)
    throw new ParseFailure('IO', 'The disk does not answer.')
  }
  const { log, lines } = memoryLog()
  const documents = await startDocuments({ directory: await newDirectory(), parser, log })
  await documents.add(folder)
  await documents.idle()
  await vi.waitFor(async () => expect((await documents.file(bad))?.status).toBe('failed'))
  expect(seen).toHaveLength(3)
  expect(await documents.file(bad)).toMatchObject({ attempts: 3, code: 'IO', error: 'The disk does not answer.' })
  expect((await documents.file(good))?.status).toBe('completed')
  expect(
    lines.filter(({ message }) => message === 'document task failed').map(({ fields }) => fields['reason']),
  ).toEqual(Array.from({ length: 3 }, () => 'parse failed: The disk does not answer.'))
  parser.before = () => undefined
  expect(await documents.retry()).toBe(1)
  await documents.idle()
  expect((await documents.file(bad))?.status).toBe('completed')
})

test('[L-05] it is idle when the last failure is written down, and not before', async () => {
  const [bad = ''] = await filesIn(await newDirectory('folder'), 1)
  const parser = new TextParser()
  parser.before = () => {
    throw new ParseFailure('IO', 'The disk does not answer.')
  }
  const directory = await newDirectory()
  let isNoted = false
  class SlowIndex extends SqliteIndex {
    override async fail(...args: Parameters<SqliteIndex['fail']>): Promise<void> {
      for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate)
      await super.fail(...args)
      isNoted = true
    }
  }
  const documents = await startDocuments({ directory, parser, indexer: new SlowIndex(directory) })
  await documents.add(bad)
  await documents.idle()
  expect(isNoted).toBe(true)
  expect((await documents.stats()).files).toMatchObject({ failed: 1, retry: 0 })
})

test('[L-03] content that cannot be read is not tried again', async () => {
  const folder = await newDirectory('folder')
  const [bad = ''] = await filesIn(folder, 1)
  const parser = new TextParser()
  let tries = 0
  parser.before = () => {
    tries += 1
    throw new ParseFailure('BROKEN', 'cut off')
  }
  const documents = await startDocuments({ directory: await newDirectory(), parser })
  await documents.add(bad)
  await documents.idle()
  expect(tries).toBe(1)
  expect(await documents.file(bad)).toMatchObject({ status: 'failed', code: 'BROKEN' })
})

test('[L-05] a stop takes nothing new, waits for what is under way, and says so', async () => {
  const folder = await newDirectory('folder')
  const [path = ''] = await filesIn(folder, 1)
  const parser = new TextParser()
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  parser.before = () => held
  const { log, lines } = memoryLog()
  const directory = await newDirectory()
  const documents = await startDocuments({ directory, parser, log })
  await documents.add(path)
  await vi.waitFor(() => expect(parser.underWay).toBe(1))
  const stopped = documents.stop()
  expect(documents.status().status).toBe('stopping')
  release()
  await stopped
  expect(documents.status().status).toBe('stopped')
  expect(lines.map(({ message }) => message)).toContain('All workers stopped gracefully')
})

test('[L-05, L-06] at the deadline what is under way is cut, and the next start goes on with it', async () => {
  const folder = await newDirectory('folder')
  const [path = ''] = await filesIn(folder, 1)
  const parser = new TextParser()
  parser.before = () => new Promise(() => undefined)
  const { log, lines } = memoryLog()
  const directory = await newDirectory()
  const first = await startDocuments({ directory, parser, log, shutdownTimeoutMs: 50 })
  await first.add(path)
  await vi.waitFor(() => expect(parser.underWay).toBe(1))
  await first.stop()
  expect(lines.map(({ message }) => message)).toContain('Shutdown timeout reached, forcing stop')
  const second = await startDocuments({ directory, parser: new TextParser() })
  await second.idle()
  expect(await pathsFor(second, 'документ')).toEqual([path])
})

test('[L-02, L-06] the full pipeline: files come, change, move and go, and the index follows', async () => {
  const folder = await newDirectory('folder')
  const documents = await startDocuments({ directory: await newDirectory(), folders: [folder] })
  const path = join(folder, 'a.txt')
  await writeFile(path, 'первая версия')
  await vi.waitFor(async () => expect(await pathsFor(documents, 'версия')).toEqual([path]), 60_000)
  await documents.idle()
  const { id } = (await documents.file(path))!
  await writeFile(path, 'вторая редакция')
  await vi.waitFor(async () => expect(await pathsFor(documents, 'редакция')).toEqual([path]), 60_000)
  expect(await pathsFor(documents, 'версия')).toEqual([])
  await documents.idle()
  const moved = join(folder, 'deep', 'er', 'b.txt')
  await mkdir(join(folder, 'deep', 'er'), { recursive: true })
  await rename(path, moved)
  await vi.waitFor(async () => expect(await pathsFor(documents, 'редакция')).toEqual([moved]), 60_000)
  expect((await documents.file(moved))?.id).toBe(id)
  await rm(join(folder, 'deep'), { recursive: true })
  await vi.waitFor(async () => expect(await pathsFor(documents, 'редакция')).toEqual([]), 60_000)
  const { processed } = documents.figures()
  for (const done of ['parse completed', 'index completed', 'update completed', 'delete completed']) {
    expect(processed[done]).toBeGreaterThan(0)
  }
})

test('[L-03] a file is validated before it gets a task', async () => {
  const folder = await newDirectory('folder')
  const config = documentsConfig({ engine: { limits: { max_file_size: '10' } } })
  const documents = await startDocuments({ directory: await newDirectory(), parser: new TextParser(), config })
  const refusal = /^file validation failed: /
  await writeFile(join(folder, 'large.txt'), 'больше десяти байт')
  await writeFile(join(folder, 'picture.jpg'), 'x')
  await expect(documents.add(join(folder, 'none.txt'))).rejects.toThrow(refusal)
  await expect(documents.add(join(folder, 'large.txt'))).rejects.toThrow(/the largest size is 10/)
  await expect(documents.add(join(folder, 'picture.jpg'))).rejects.toThrow(/a kind that has no text/)
  await documents.add(folder)
  await documents.idle()
  expect(await documents.file(join(folder, 'large.txt'))).toMatchObject({ status: 'failed', code: 'REFUSED' })
  expect(await documents.file(join(folder, 'picture.jpg'))).toBeUndefined()
})

test('[L-05] health checks name the part that does not work', async () => {
  const parser = new TextParser()
  const documents = await startDocuments({ directory: await newDirectory(), parser })
  await expect(documents.engine.healthCheck()).resolves.toBeUndefined()
  parser.check = () => Promise.reject(new Error('no process'))
  await expect(documents.engine.healthCheck()).rejects.toThrow('parser: no process')
  expect((await documents.stats()).components).toContainEqual({
    name: 'parser',
    isHealthy: false,
    problem: 'no process',
  })
})

test('[L-05] a part that does not start leaves the engine in error, and everything closed', async () => {
  const documents = createDocuments({
    directory: await newDirectory(),
    folders: ['/nowhere/at/all'],
    parser: new TextParser(),
    config: QUICK,
  })
  await expect(documents.start()).rejects.toThrow('The folder /nowhere/at/all cannot be read.')
  await documents.stop()
})

test('[L-05] another process asks the one that has the index open; a request that cannot be served stops no other', async () => {
  const [directory, folder] = [await newDirectory(), await newDirectory('elsewhere')]
  await mkdir(join(folder, 'deep'))
  await writeFile(join(folder, 'deep', 'one.txt'), 'письмо')
  await writeFile(join(folder, 'two.txt'), 'письмо')
  const parser = new TextParser()
  const documents = await startDocuments({ directory, parser })
  requestFrom(directory, [
    { kind: 'add', path: join(folder, 'nowhere.txt') },
    { kind: 'add', path: folder },
    { kind: 'retry', path: '' },
  ])
  await vi.waitFor(async () => expect(await pathsFor(documents, 'письмо')).toHaveLength(2), { timeout: 30_000 })
})
