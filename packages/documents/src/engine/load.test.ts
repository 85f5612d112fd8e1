import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { documentsConfig } from '../config/config.ts'
import { ParseFailure } from '../parsing/parser.ts'
import { newDirectory, pathsFor, QUICK, startDocuments, TextParser } from './documents.fixture.ts'

async function fill(folder: string, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const place = join(folder, `part${index % 10}`)
    if (index < 10) await mkdir(place, { recursive: true })
    await writeFile(join(place, `file${index}.txt`), `Общий текст, редкое слово${index}, и общий конец.`)
  }
}

test('[L-06] load: 1,000 files are read and found, each once', async () => {
  const folder = await newDirectory('folder')
  await fill(folder, 1_000)
  const documents = await startDocuments({ directory: await newDirectory() })
  expect(await documents.add(folder)).toEqual({ found: 1_000, skipped: 0, unreadable: [] })
  await documents.idle()
  const { files, progress, documents: found } = await documents.stats()
  expect({ files: files['completed'], progress, found }).toEqual({
    files: 1_000,
    progress: { total: 1_000, done: 1_000 },
    found: 1_000,
  })
  expect(await pathsFor(documents, 'слово777')).toEqual([join(folder, 'part7', 'file777.txt')])
  // A busy machine may try one of them again; none is done twice.
  expect(documents.figures().processed).toMatchObject({ 'parse completed': 1_000, 'index completed': 1_000 })
}, 600_000)

test('[L-06] parallel: several folders at once, while searches are answered', async () => {
  const folders = await Promise.all([1, 2, 3, 4].map(() => newDirectory('folder')))
  for (const folder of folders) await fill(folder, 50)
  const documents = await startDocuments({ directory: await newDirectory(), parser: new TextParser() })
  const [added] = await Promise.all([
    Promise.all(folders.map((folder) => documents.add(folder))),
    Promise.all(Array.from({ length: 50 }, () => documents.search('общий'))),
  ])
  await documents.idle()
  expect(added).toHaveLength(4)
  expect((await documents.stats()).documents).toBe(200)
})

test('[L-06] peak: far more files than the queue holds come at once, and some of them fail', async () => {
  const folder = await newDirectory('folder')
  await fill(folder, 300)
  const parser = new TextParser()
  parser.before = (path) => {
    if (path.endsWith('7.txt')) throw new ParseFailure('BROKEN', 'cut off')
  }
  const config = documentsConfig({ ...quickInput(), engine: { queue: { max_size: 20 }, workers: { count: 5 } } })
  const documents = await startDocuments({ directory: await newDirectory(), parser, config })
  let most = 0
  const watching = setInterval(() => (most = Math.max(most, documents.status().queue_size)), 1)
  await documents.add(folder)
  await documents.idle()
  clearInterval(watching)
  expect(most).toBeLessThanOrEqual(20)
  const { files } = await documents.stats()
  expect(files).toMatchObject({ completed: 270, failed: 30 })
})

function quickInput(): object {
  return { watch: { quiet: '20ms' } }
}

test('[L-01, L-06] under load: files come, change and go while others are read, and in the end the index is what the folder is', async () => {
  const folder = await newDirectory('folder')
  const documents = await startDocuments({
    directory: await newDirectory(),
    folders: [folder],
    parser: new TextParser(),
    config: QUICK,
  })
  const path = (index: number): string => join(folder, `file${index}.txt`)
  for (let index = 0; index < 120; index += 1) {
    await writeFile(path(index), `черновик${index}`)
    if (index % 3 === 0) await writeFile(path(index), `чистовик${index}`)
    if (index % 4 === 0) await rm(path(index))
  }
  const left = Array.from({ length: 120 }, (_, index) => index).filter((index) => index % 4 !== 0)
  await vi.waitFor(async () => expect((await documents.stats()).documents).toBe(left.length), 60_000)
  await documents.idle()
  for (const index of [1, 2, 3, 117, 119]) {
    const word = index % 3 === 0 ? 'чистовик' : 'черновик'
    await vi.waitFor(async () => expect(await pathsFor(documents, `${word}${index}`)).toEqual([path(index)]), 60_000)
  }
  expect(await pathsFor(documents, 'чистовик12')).toEqual([])
})
