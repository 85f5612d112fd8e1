import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
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
  // A file that names limits and no folders, as the one of the specification.
  await writeFile(join(base, 'limits.yaml'), 'engine:\n  workers:\n    count: 10\n    timeout: 5m\n')
  expect(await documents('add', 'folder', '--config', 'limits.yaml', '--json')).toMatchObject({ code: 0 })
  expect(JSON.parse((await documents('search', 'deliver', '--json')).stdout)).toEqual({ hits: [], has_more: false })
})

test('[L-04] [L-05] what stands in documents and names cannot rule a terminal; pages follow one another', async () => {
  const name = 'стр\nока\u001B[31m.txt'
  await writeFile(join(base, 'folder', name), 'Сигнал \u001B]0;x\u0007 и \u009B2J договоры')
  await writeFile(join(base, 'folder', 'film.mp4'), 'x')
  await symlink(join(base, 'folder'), join(base, 'link'))
  // A link that is named by hand is followed.
  const added = JSON.parse((await documents('add', 'link', '--json')).stdout) as object
  expect(added).toMatchObject({ found: 5, skipped: 1, unreadable: [], completed: 3, failed: 1 })
  const found = await documents('search', 'сигналы')
  expect(found.stdout).toContain('стр\uFFFDока\uFFFD[31m.txt')
  expect(found.stdout).toContain('Сигнал \uFFFD]0;x\uFFFD и \uFFFD2J договоры')
  const page = async (offset: string): Promise<unknown> =>
    JSON.parse((await documents('search', 'договор', '--limit', '1', '--offset', offset, '--json')).stdout)
  expect(await page('0')).toMatchObject({ hits: [{ name: 'договор.txt' }], has_more: true })
  expect(await page('1')).toMatchObject({ hits: [{ name }], has_more: false })
  const more = await documents('search', 'договор', '--limit', '1')
  expect(more.stderr).toContain('There are more: --offset 1')
  expect((await documents('search', 'x', '--offset', '-1')).code).toBe(2)
  expect((await documents('search', 'x', '--offset', '10001')).stderr).toContain('from 0 to 10000')
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
  const nothing = await documents('watch')
  expect(nothing).toMatchObject({ code: 2 })
  expect(nothing.stderr).toContain('There are no folders to watch.')
  await writeFile(join(base, 'documents.yaml'), 'engine:\n  workers:\n    count: many\n')
  const wrong = await documents('watch', 'folder', '--config', 'documents.yaml')
  expect(wrong).toMatchObject({ code: 78 })
  expect(wrong.stderr).toContain('engine.workers.count')
})
