import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { boundHeapGrowth } from './heap-growth.ts'

/** Keeps 40 MB, and makes old garbage until 800 MB have come and gone. Prints the most that the heap held, in MB. */
const PROGRAM = `
const { getHeapStatistics } = require('node:v8')
const kept = Array.from({ length: 40 }, () => new Array(131_072).fill(1.5))
const passing = []
let most = 0
for (let round = 0; round < 800; round += 1) {
  passing[round % 8] = new Array(131_072).fill(round)
  most = Math.max(most, getHeapStatistics().used_heap_size)
}
console.log(Math.round(most / 1_048_576), kept.length)
`

test('[C-10] the flag that bounds the growth of the heap is one that this version of V8 has and obeys', async () => {
  const mostWith = async (...flags: readonly string[]): Promise<number> => {
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, '-e', PROGRAM])
    return Number(stdout.split(' ')[0])
  }
  const bounded = await mostWith('--heap-growing-percent=20')
  expect(bounded).toBeLessThan(await mostWith('--heap-growing-percent=400'))
})

test('[C-10] who has set the growth of the heap keeps it', () => {
  const set: string[] = []
  boundHeapGrowth(['--heap_growing_percent=40'], (flag) => set.push(flag))
  expect(set).toEqual([])
  boundHeapGrowth(['--trace-gc'], (flag) => set.push(flag))
  expect(set).toEqual(['--heap-growing-percent=100'])
})
