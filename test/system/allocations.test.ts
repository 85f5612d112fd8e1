import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const PROGRAM = join(import.meta.dirname, 'programs/allocations.mjs')

/** About 55,000 on Node 20. The collector takes a third of the CPU of a busy engine, so that this is a measure of speed. */
const BYTES_MAX = 64_000
/** About 11,900 on Node 20. It was 21,000 while maps whose entries come and go kept what had been in them. */
const OLD_BYTES_MAX = 15_000

test('[G-01] a job of one task allocates no more than it did', async () => {
  // A young generation that holds everything: nothing is collected while it is measured.
  const bytes = await measured(['--min-semi-space-size=256', '--max-semi-space-size=256'])
  expect(bytes).toBeGreaterThan(10_000)
  expect(bytes).toBeLessThan(BYTES_MAX)
})

test('[G-01] what is done with is collected while it is young', async () => {
  // An old generation with so much room that it is not collected.
  const bytes = await measured(['--initial-old-space-size=800'], 'old')
  expect(bytes).toBeGreaterThan(1_000)
  expect(bytes).toBeLessThan(OLD_BYTES_MAX)
})

async function measured(flags: readonly string[], ...words: readonly string[]): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', ...flags, PROGRAM, ...words])
  return Number(stdout)
}
