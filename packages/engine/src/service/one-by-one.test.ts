import { expect, test } from 'vitest'
import { OneByOne } from './one-by-one.ts'

test('[H-04] work of one key follows in the order of the calls, also after a failure; other keys do not wait', async () => {
  const queue = new OneByOne()
  const said: string[] = []
  let release: () => void = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const first = queue.run('a', async () => {
    await held
    said.push('first')
    throw new Error('no')
  })
  const second = queue.run('a', async () => said.push('second'))
  await queue.run('b', async () => said.push('other'))
  release()
  await expect(first).rejects.toThrow('no')
  await second
  expect(said).toEqual(['other', 'first', 'second'])
})
