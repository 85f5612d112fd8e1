import { mkdir, mkdtemp, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SourceWatch } from './source-watch.ts'

let folder = ''
let root = ''
let sources: SourceWatch | undefined
let heard: () => void = () => undefined
let count = 0

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'impresario-sources-')))
  root = join(folder, 'blueprints')
  await mkdir(join(root, 'deep'), { recursive: true })
  await writeFile(join(root, 'one.ts'), '1')
  await writeFile(join(root, 'deep/two.ts'), '1')
  await writeFile(join(folder, 'contract.ts'), '1')
  count = 0
  sources = new SourceWatch(root, () => {
    count += 1
    heard()
  })
})
afterEach(async () => {
  sources?.close()
  await rm(folder, { recursive: true, force: true })
})

/** Does something, and resolves when the watch has said that something has changed. */
async function noticed(work: () => Promise<unknown>): Promise<void> {
  const told = new Promise<void>((resolve) => {
    heard = resolve
  })
  await work()
  await told
}

async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.tmp`, text)
  await rename(`${path}.tmp`, path)
}

test('[A-09] a file that was replaced by renaming is watched on, for every way to save it', async () => {
  for (const path of [join(root, 'one.ts'), join(root, 'deep/two.ts')]) {
    await noticed(() => writeFile(path, 'in place'))
    await noticed(() => replace(path, 'beside'))
    await noticed(() => writeFile(path, 'in place after that'))
    await noticed(() => replace(path, 'beside once more'))
    await noticed(() => rm(path))
    await noticed(() => writeFile(path, 'there again'))
    await noticed(() => writeFile(path, 'and changed'))
  }
  expect(count).toBeGreaterThanOrEqual(14)
})

test('[A-09] directories that come later, or are replaced, are watched too', async () => {
  await noticed(() => mkdir(join(root, 'new/below'), { recursive: true }))
  await noticed(() => writeFile(join(root, 'new/below/three.mjs'), '1'))
  await noticed(() => writeFile(join(root, 'new/below/three.mjs'), '2'))
  await mkdir(join(folder, 'other/deep'), { recursive: true })
  await writeFile(join(folder, 'other/one.ts'), '2')
  await rename(root, join(folder, 'away'))
  await noticed(() => rename(join(folder, 'other'), root))
  await noticed(() => writeFile(join(root, 'one.ts'), '3'))
  await noticed(() => writeFile(join(root, 'deep/two.ts'), '3'))
  expect(count).toBeGreaterThanOrEqual(6)
})

test('[A-09] what is imported from outside counts, and nothing else there does', async () => {
  const contract = join(folder, 'contract.ts')
  sources?.follow(contract)
  sources?.follow(join(folder, 'node_modules/zod/index.js'))
  await noticed(() => writeFile(contract, '2'))
  await noticed(() => replace(contract, '3'))
  await noticed(() => writeFile(contract, '4'))
  const before = count
  await writeFile(join(folder, 'notes.ts'), 'of nobody’s interest')
  await writeFile(join(root, 'impresario.db'), 'no source')
  await noticed(() => writeFile(contract, '5'))
  expect(count).toBe(before + 1)
})
