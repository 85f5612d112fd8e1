import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runCli } from './run-cli.fixture.ts'

let base = ''
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'impresario-cli-documents-'))
  await mkdir(join(base, 'folder', 'deep'), { recursive: true })
  await writeFile(join(base, 'folder', 'договор.txt'), 'Договоры аренды были подписаны сторонами.')
  await writeFile(join(base, 'folder', 'deep', 'report.md'), '# Quarterly report\n\nThe agreements were delivered.')
  await writeFile(join(base, 'folder', 'broken.docx'), 'this is no archive')
})
afterEach(async () => {
  await rm(base, { recursive: true, force: true })
})

const documents = (...args: readonly string[]) => runCli(['documents', ...args, '--data', 'index'], { cwd: base })

test('[L-04, M-03] documents add indexes a folder and ends; documents search finds a word in another form', async () => {
  const added = await documents('add', 'folder', '--json')
  expect(added).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(added.stdout)).toMatchObject({
    found: 3,
    completed: 2,
    failed: 1,
    failures: [
      {
        path: join(base, 'folder', 'broken.docx'),
        code: 'BROKEN',
        error: 'The file is broken: its content is no docx.',
      },
    ],
  })
  const russian = await documents('search', 'договору', 'аренда', '--json')
  expect(JSON.parse(russian.stdout)).toMatchObject({
    hits: [
      {
        path: join(base, 'folder', 'договор.txt'),
        snippet: 'Договоры аренды были подписаны сторонами.',
        highlights: [
          [0, 8],
          [9, 15],
        ],
      },
    ],
    has_more: false,
  })
  const english = await documents('search', 'deliver agreement', '--json')
  expect(JSON.parse(english.stdout)).toMatchObject({
    hits: [{ title: 'Quarterly report', kind: 'md' }],
  })
  await rm(join(base, 'folder', 'deep'), { recursive: true })
  await documents('add', 'folder', '--json')
  expect(JSON.parse((await documents('search', 'deliver', '--json')).stdout)).toEqual({ hits: [], has_more: false })
})

test('[L-05] documents status says what failed and why; retry reads it once more', async () => {
  await documents('add', 'folder')
  const status = await documents('status')
  expect(status.stdout).toMatch(/completed +2\nfailed +1/)
  expect(status.stdout).toContain('The file is broken: its content is no docx.')
  await writeFile(join(base, 'folder', 'broken.docx'), '')
  const retried = await documents('retry', '--json')
  expect(JSON.parse(retried.stdout)).toEqual({ retried: 1, failed: 0 })
  expect(JSON.parse((await documents('reindex', '--json')).stdout)).toEqual({ reindexed: 3 })
})

test('[L-04] what cannot work is refused with a reason', async () => {
  const none = await documents('search', 'слово')
  expect(none).toMatchObject({ code: 1, stdout: '' })
  expect(none.stderr).toMatch(/There is no index in .*index\. Run "impresario documents add" first\./)
  const nowhere = await documents('add', 'nowhere.txt')
  expect(nowhere.stderr).toContain('file validation failed: nowhere.txt does not exist.')
  await writeFile(join(base, 'documents.yaml'), 'engine:\n  workers:\n    count: many\n')
  const wrong = await documents('watch', 'folder', '--config', 'documents.yaml')
  expect(wrong).toMatchObject({ code: 78 })
  expect(wrong.stderr).toContain('engine.workers.count')
})
