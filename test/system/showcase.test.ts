import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'

const MAIN = join(import.meta.dirname, '../../examples/dist/05-showcase/main.js')

/** Where the program runs, and where it may put temporary files. */
let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'impresario-showcase-test-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

test('[E-07] the showcase runs with one command, tells its story, ends by itself and leaves nothing behind', async () => {
  // As `npm run showcase` runs it. An exit code other than 0 rejects.
  const env = { PATH: process.env['PATH'] ?? '', TMPDIR: folder }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [MAIN], { cwd: folder, env })
  expect(stderr).toBe('')
  for (const line of [
    '  lena        checks poster.pdf: 150 dpi are too coarse',
    'The customer says yes (200). The same link a second time changes nothing (200).',
    '  one job of hourly_stock_count: finished with {"store":"cellar","paper":12000}',
    '  refused 1 that somebody had forged',
  ]) {
    expect(stdout.split('\n')).toContain(line)
  }
  expect(stdout).not.toContain('\u001B')
  expect(await readdir(folder)).toEqual([])
})
