import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const run = promisify(execFile)

/** The snippets of a page in one file, below the root so that packages are found. */
function programOf(page: string): { readonly directory: string; readonly count: number } {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const blocks = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code)
  const directory = mkdtempSync(join(ROOT, 'examples', '.snippets-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const ownImports = /^import .* from '\.{1,2}\/.*'\n/gm // all snippets are one file here
  writeFileSync(join(directory, 'page.ts'), blocks.join('\n').replaceAll(ownImports, ''))
  const compilerOptions = { noUnusedLocals: false, noEmit: true }
  writeFileSync(
    join(directory, 'tsconfig.json'),
    JSON.stringify({ extends: '../../tsconfig.check.json', compilerOptions, include: ['page.ts'] }),
  )
  return { directory, count: blocks.length }
}

function complaintsOf(directory: string): Promise<unknown> {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  return run(process.execPath, [compiler, '-p', directory]).catch((error: unknown) => error)
}

test('[M-04] the snippets of the guide to blueprints compile together, as it says', async () => {
  const { directory, count } = programOf('docs/guide/blueprints.md')
  expect(count).toBeGreaterThan(4)
  expect(await complaintsOf(directory)).toMatchObject({ stdout: '' })
})

test('[M-04] [M-05] the snippets of the guide to tests compile', async () => {
  const { directory, count } = programOf('docs/guide/testing.md')
  expect(count).toBe(2)
  expect(await complaintsOf(directory)).toMatchObject({ stdout: '' })
})

test('[M-04] the example of the README compiles', async () => {
  const { directory, count } = programOf('README.md')
  expect(count).toBe(3)
  expect(await complaintsOf(directory)).toMatchObject({ stdout: '' })
})

test('[M-04] [L-02] the snippets of the guide to the documents app compile', async () => {
  const { directory, count } = programOf('docs/guide/documents.md')
  expect(count).toBe(2)
  expect(await complaintsOf(directory)).toMatchObject({ stdout: '' })
})
