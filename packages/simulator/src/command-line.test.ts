import { expect, test } from 'vitest'
import { readCommand } from './command-line.ts'

test('[C-09] the command line names seeds, one seed, a bug or everything', () => {
  const run = { type: 'run', bug: undefined }
  expect(readCommand([])).toEqual({ ...run, ranges: [{ from: 1, count: 200 }] })
  expect(readCommand(['--seeds', '20', '--from', '7'])).toEqual({ ...run, ranges: [{ from: 7, count: 20 }] })
  expect(readCommand(['--seeds', '20', '--from', '7', '--from', '500'])).toEqual({
    ...run,
    ranges: [
      { from: 7, count: 20 },
      { from: 500, count: 20 },
    ],
  })
  expect(readCommand(['--seed', '3', '--bug', 'ack-first'])).toEqual({ type: 'replay', seed: 3, bug: 'ack-first' })
  expect(readCommand(['--exhaustive', '--pairs'])).toEqual({ type: 'exhaustive', pairs: true, only: undefined })
  expect(readCommand(['--help'])).toEqual({ type: 'help' })
})

test('[C-09] what it does not understand it says', () => {
  expect(readCommand(['--seed', 'x'])).toMatchObject({ type: 'wrong' })
  expect(readCommand(['--bug', 'none'])).toMatchObject({ type: 'wrong' })
  expect(readCommand(['--nonsense'])).toMatchObject({ type: 'wrong' })
})
