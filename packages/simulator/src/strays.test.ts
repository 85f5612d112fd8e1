import { expect, test } from 'vitest'
import { simulate } from './simulate.ts'
import { catchStrays } from './strays.ts'

test('[C-09] an error that ends a world is a finding of that world, and does not end the run', async () => {
  const report = await catchStrays(7, () => Promise.reject(new Error('The disk is full.')))
  expect(report.seed).toBe(7)
  expect(report.findings.map(({ rule }) => rule)).toEqual(['escaped'])
  expect(report.findings[0]?.problem).toContain('The disk is full.')
})

test('[C-09] a world in which nothing escapes is reported as it is', async () => {
  const plain = await simulate(1)
  expect(await catchStrays(1, () => simulate(1))).toEqual(plain)
})
