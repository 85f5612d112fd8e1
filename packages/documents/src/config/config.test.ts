import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newDirectory } from '../engine/documents.fixture.ts'
import { documentsConfig, loadDocumentsConfig } from './config.ts'
import { patternMatcher } from './patterns.ts'
import { sizeBytes, spanMs } from './quantities.ts'

const SPECIFIED = `engine:
  workers:
    count: 10
    timeout: 5m
  queue:
    max_size: 1000
    priority_levels: 3
  retry:
    max_attempts: 3
    initial_delay: 1s
    max_delay: 30s
    backoff_factor: 2.0
  limits:
    max_file_size: 100MB
    max_concurrent_files: 50
  health_check:
    interval: 30s
    timeout: 5s
`

async function load(text: string): Promise<ReturnType<typeof loadDocumentsConfig>> {
  const file = join(await newDirectory('config'), 'documents.yaml')
  await writeFile(file, text)
  return loadDocumentsConfig(file)
}

test('[L-03] the file of the specification loads unchanged, and its values are the defaults', async () => {
  const { engine } = await load(SPECIFIED)
  expect(engine).toMatchObject({
    workers: { count: 10, timeout: 300_000 },
    queue: { max_size: 1_000, priority_levels: 3 },
    retry: { max_attempts: 3, initial_delay: 1_000, max_delay: 30_000, backoff_factor: 2 },
    limits: { max_file_size: 100_000_000, max_concurrent_files: 50 },
    health_check: { interval: 30_000, timeout: 5_000 },
  })
  expect(documentsConfig().engine).toEqual(engine)
  expect((await load('')).engine).toEqual(engine)
})

test('[L-03] what is wrong is named with its place', async () => {
  await expect(load('engine:\n  workers:\n    count: 0')).rejects.toThrow(/engine\.workers\.count/)
  await expect(load('engine:\n  workers:\n    timeout: soon')).rejects.toThrow(
    /engine\.workers\.timeout: must be a span such as 30s/,
  )
  await expect(load('engine:\n  worker: {}')).rejects.toThrow(/worker/)
  await expect(load('engine: [')).rejects.toThrow(/cannot be read/)
  expect(() => loadDocumentsConfig('/nowhere.yaml')).toThrow(/nowhere\.yaml cannot be read/)
})

test('spans, sizes and patterns', () => {
  expect([spanMs('1m30s'), spanMs('250ms'), spanMs('5'), spanMs('-1s')]).toEqual([90_000, 250, undefined, undefined])
  expect([sizeBytes('100MB'), sizeBytes('64 KiB'), sizeBytes('7'), sizeBytes('x')]).toEqual([
    100_000_000,
    65_536,
    7,
    undefined,
  ])
  const isMatch = patternMatcher(['*.log', 'drafts/**', '/abs/*.txt', 'a/**/z.md'])
  expect(
    ['/x/y.log', '/p/drafts/q/r.txt', '/abs/b.txt', '/r/a/b/c/z.md', '/r/a/z.md'].filter((path) => !isMatch(path)),
  ).toEqual([])
  expect(['/x/y.logs', '/p/adrafts/q', '/abs/c/b.txt', '/abs.txt'].filter(isMatch)).toEqual([])
})
