import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const PROGRAM = join(import.meta.dirname, 'programs/allocations.mjs')

/** About 55,000 on Node 20. The collector takes a third of the CPU of a busy engine, so that this is a measure of speed. */
const BYTES_MAX = 64_000

test('[G-01] a job of one task allocates no more than it did', async () => {
  // A young generation that holds everything: nothing is collected while it is measured.
  const flags = ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, PROGRAM])
  const bytes = Number(stdout)
  expect(bytes).toBeGreaterThan(10_000)
  expect(bytes).toBeLessThan(BYTES_MAX)
})
