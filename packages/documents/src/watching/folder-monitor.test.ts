import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { mkdir, rename, rm, symlink, unlink, writeFile, appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { documentsConfig } from '../config/config.ts'
import { newDirectory, pathsFor, QUICK, startDocuments, TextParser } from '../engine/documents.fixture.ts'
import { nativePath, pathOf, shownPath } from '../paths.ts'
import { ignoreRule } from './ignored.ts'

const SOON = { timeout: 60_000 }

test('[L-01] a restart notices what came, changed and went meanwhile, and leaves the rest alone', async () => {
  const folder = await newDirectory('folder')
  const directory = await newDirectory()
  for (const name of ['same', 'changed', 'removed']) await writeFile(join(folder, `${name}.txt`), `прежнее ${name}`)
  const first = await startDocuments({ directory, folders: [folder], parser: new TextParser() })
  await vi.waitFor(async () => expect(await pathsFor(first, 'прежнее')).toHaveLength(3), SOON)
  await first.stop()
  await writeFile(join(folder, 'changed.txt'), 'новое содержание')
  await writeFile(join(folder, 'added.txt'), 'новое содержание')
  await rm(join(folder, 'removed.txt'))
  const parser = new TextParser()
  const second = await startDocuments({ directory, folders: [folder], parser })
  await vi.waitFor(async () => expect(await pathsFor(second, 'новое')).toHaveLength(2), SOON)
  await vi.waitFor(async () => expect(await pathsFor(second, 'прежнее')).toEqual([join(folder, 'same.txt')]), SOON)
  expect(parser.parsed).not.toContain(join(folder, 'same.txt'))
})

test('[L-01] a file that is written slowly is taken once, when it is quiet', async () => {
  const folder = await newDirectory('folder')
  const parser = new TextParser()
  const config = documentsConfig({ watch: { quiet: '1s' } })
  const documents = await startDocuments({ directory: await newDirectory(), folders: [folder], parser, config })
  const path = join(folder, 'slow.txt')
  for (let part = 0; part < 8; part += 1) {
    await appendFile(path, `часть${part} `)
    await new Promise((resolve) => setTimeout(resolve, 60))
  }
  await vi.waitFor(async () => expect(await pathsFor(documents, 'часть7')).toEqual([path]), SOON)
  expect(parser.parsed).toEqual([path])
})

test('[L-01] [L-05] a file that keeps changing is shown as pending until it is quiet', async () => {
  const folder = await newDirectory('folder')
  const parser = new TextParser()
  const config = documentsConfig({ watch: { quiet: '500ms' } })
  const documents = await startDocuments({ directory: await newDirectory(), folders: [folder], parser, config })
  const path = join(folder, 'growing.txt')
  let isHeld = false
  for (let part = 0; !isHeld; part += 1) {
    await appendFile(path, `часть${part} `)
    await new Promise((resolve) => setTimeout(resolve, 10))
    const { files } = await documents.stats()
    isHeld = (await documents.file(path))?.status === 'pending' && files['pending'] === 1
  }
  await vi.waitFor(async () => expect((await documents.file(path))?.status).toBe('completed'), SOON)
  expect(await pathsFor(documents, 'часть0')).toEqual([path])
})

test('[L-01] unchanged content costs nothing, whatever its time says', async () => {
  const folder = await newDirectory('folder')
  const parser = new TextParser()
  const documents = await startDocuments({ directory: await newDirectory(), folders: [folder], parser })
  const path = join(folder, 'a.txt')
  await writeFile(path, 'одно и то же')
  await vi.waitFor(async () => expect(await pathsFor(documents, 'одно')).toEqual([path]), SOON)
  await documents.idle()
  await writeFile(path, 'одно и то же')
  const marker = join(folder, 'marker.txt')
  await writeFile(marker, 'метка')
  await vi.waitFor(async () => expect(await pathsFor(documents, 'метка')).toEqual([marker]), SOON)
  await documents.idle()
  expect(parser.parsed.filter((one) => one === path)).toHaveLength(1)
})

test('[L-01] names of any bytes are kept exactly', async () => {
  const folder = await newDirectory('folder')
  const names = [
    'with\nnewline.txt',
    `quotes'"\`$.txt`,
    'a..dots...txt',
    `${'д'.repeat(125)}.txt`,
    'tab\t*?.txt',
    '\uF7AB.txt',
  ]
  const bytes = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xc3, 0x28]), Buffer.from('.txt')])
  for (const name of names) await writeFile(join(folder, name), 'необычное имя')
  await writeFile(bytes, 'необычное имя')
  const documents = await startDocuments({ directory: await newDirectory(), folders: [folder] })
  await vi.waitFor(async () => expect(await pathsFor(documents, 'необычное')).toHaveLength(names.length + 1), SOON)
  const odd = pathOf(bytes)
  expect(await pathsFor(documents, 'необычное')).toContain(odd)
  expect(Buffer.from(nativePath(odd))).toEqual(bytes)
  await unlink(bytes)
  await vi.waitFor(async () => expect(await pathsFor(documents, 'необычное')).toHaveLength(names.length), SOON)
})

test('[L-01] paths of any bytes and texts are the same both ways', () => {
  for (const bytes of [
    [0x61],
    [0xff],
    [0xc3, 0x28],
    [0xef, 0x9e, 0xab],
    [0xed, 0xa0, 0x80],
    [0xf0, 0x9f, 0x98, 0x80, 0xff],
  ]) {
    const path = pathOf(Buffer.from(bytes))
    expect([...Buffer.from(nativePath(path))]).toEqual(bytes)
  }
  expect(shownPath(pathOf(Buffer.from([0x61, 0xff])))).toBe('a\uFFFD')
})

test('[L-01] temporary and hidden files, links and patterns are left out', async () => {
  const isIgnored = ignoreRule(['drafts/**', '*.bak'], '/data')
  const left = [
    '/f/.hidden',
    '/f/~$report.docx',
    '/f/a.part',
    '/f/a.crdownload',
    '/f/a.txt~',
    '/f/drafts/x.txt',
    '/f/a.bak',
    '/data/documents.db',
  ]
  expect(left.filter((path) => !isIgnored(path))).toEqual([])
  expect(isIgnored('/f/a.txt')).toBe(false)
  const folder = await newDirectory('folder')
  const outside = await newDirectory('outside')
  await writeFile(join(outside, 'secret.txt'), 'тайна')
  await symlink(outside, join(folder, 'link'))
  await symlink(join(outside, 'secret.txt'), join(folder, 'link.txt'))
  await writeFile(join(folder, 'open.txt'), 'явь')
  const documents = await startDocuments({ directory: await newDirectory(), parser: new TextParser() })
  await documents.add(folder)
  await documents.idle()
  expect(await pathsFor(documents, 'тайна')).toEqual([])
  expect(await pathsFor(documents, 'явь')).toHaveLength(1)
})

test('[L-01] a folder that is renamed takes its documents along', async () => {
  const folder = await newDirectory('folder')
  await mkdir(join(folder, 'old'))
  await writeFile(join(folder, 'old', 'a.txt'), 'переезд')
  const documents = await startDocuments({
    directory: await newDirectory(),
    folders: [folder],
    parser: new TextParser(),
  })
  await vi.waitFor(async () => expect(await pathsFor(documents, 'переезд')).toHaveLength(1), SOON)
  await documents.idle()
  await rename(join(folder, 'old'), join(folder, 'new'))
  await vi.waitFor(
    async () => expect(await pathsFor(documents, 'переезд')).toEqual([join(folder, 'new', 'a.txt')]),
    SOON,
  )
  await writeFile(join(folder, 'new', 'b.txt'), 'новосёл')
  await vi.waitFor(async () => expect(await pathsFor(documents, 'новосел')).toHaveLength(1), SOON)
})

test('[L-01] a watched folder that is gone keeps its documents until it is back', async () => {
  const parent = await newDirectory('folder')
  const folder = join(parent, 'mounted')
  await mkdir(folder)
  await writeFile(join(folder, 'a.txt'), 'сохранность')
  const directory = await newDirectory()
  const first = await startDocuments({ directory, folders: [folder], parser: new TextParser(), config: QUICK })
  await vi.waitFor(async () => expect(await pathsFor(first, 'сохранность')).toHaveLength(1), SOON)
  await first.idle()
  await first.stop()
  await rename(folder, join(parent, 'away'))
  await expect(
    startDocuments({ directory, folders: [folder], parser: new TextParser(), config: QUICK }),
  ).rejects.toThrow('cannot be read')
  await rename(join(parent, 'away'), folder)
  const second = await startDocuments({ directory, folders: [folder], parser: new TextParser(), config: QUICK })
  expect(await pathsFor(second, 'сохранность')).toHaveLength(1)
})

test('[L-01] a folder that is put into the place of another takes its documents with it, without a comparison', async () => {
  const parent = await newDirectory('folder')
  const folder = join(parent, 'watched')
  for (const name of ['a', 'b']) await mkdir(join(folder, name), { recursive: true })
  await writeFile(join(folder, 'a', 'one.txt'), 'первое')
  await writeFile(join(folder, 'b', 'two.txt'), 'второе')
  await writeFile(join(folder, 'three'), 'третье')
  const parser = new TextParser()
  const documents = await startDocuments({ directory: await newDirectory(), folders: [folder], parser })
  const found = async (): Promise<readonly string[]> =>
    (await pathsFor(documents, 'первое OR второе OR третье OR новое')).map((path) => path.slice(folder.length + 1))
  await vi.waitFor(async () => expect(await found()).toHaveLength(3), SOON)
  await documents.idle()
  // What was in the first has no events of its own: it went away as a whole.
  await rename(join(folder, 'a'), join(parent, 'away'))
  await rename(join(folder, 'b'), join(folder, 'a'))
  await vi.waitFor(async () => expect(await found()).toEqual(['a/two.txt', 'three']), SOON)
  // A file becomes a directory, and a directory a file.
  await rm(join(folder, 'three'))
  await mkdir(join(folder, 'three'))
  await writeFile(join(folder, 'three', 'four.txt'), 'новое')
  await vi.waitFor(async () => expect(await found()).toEqual(['a/two.txt', 'three/four.txt']), SOON)
  await rename(join(folder, 'three'), join(parent, 'three'))
  await writeFile(join(folder, 'three'), 'новое')
  await vi.waitFor(async () => expect(await found()).toEqual(['a/two.txt', 'three']), SOON)
  // The watched folder itself.
  await rename(folder, join(parent, 'gone'))
  await mkdir(folder)
  await vi.waitFor(async () => expect(await found()).toEqual([]), SOON)
  await writeFile(join(folder, 'last.txt'), 'новое')
  await vi.waitFor(async () => expect(await found()).toEqual(['last.txt']), SOON)
})

test('[L-01] when the system drops events because too many came at once, what they told of is found all the same', async () => {
  const folder = await newDirectory('folder')
  const documents = await startDocuments({
    directory: await newDirectory(),
    folders: [folder],
    parser: new TextParser(),
  })
  await writeFile(join(folder, 'first.txt'), 'начало')
  await vi.waitFor(async () => expect(await pathsFor(documents, 'начало')).toHaveLength(1), SOON)
  const queued = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'latin1'))
  // Nobody reads events while this runs. Two files in turn: equal events after each other count as one.
  const [one, two] = ['one.tmp', 'two.tmp'].map((name) => openSync(join(folder, name), 'w'))
  for (let count = 0; count <= queued / 2; count += 1) {
    writeSync(one ?? 0, '.')
    writeSync(two ?? 0, '.')
  }
  writeFileSync(join(folder, 'last.txt'), 'конец')
  for (const file of [one, two]) closeSync(file ?? 0)
  await vi.waitFor(async () => expect(await pathsFor(documents, 'конец')).toEqual([join(folder, 'last.txt')]), SOON)
})
