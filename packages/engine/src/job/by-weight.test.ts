import { expect, test } from 'vitest'
import { byWeight } from './by-weight.ts'

test('[C-10] light ones are all done, and of heavy ones as many as are allowed', async () => {
  const asked = Array.from({ length: 500 }, (_, index) => index)
  const begun: number[] = []
  const work = async (one: number): Promise<number | undefined> => {
    begun.push(one)
    return one % 100 === 7 ? undefined : one
  }
  const light = await byWeight(asked, 1_000_000, work, () => 1)
  expect(light.answers).toHaveLength(495)
  expect(light.left).toEqual([])
  begun.length = 0
  const heavy = await byWeight(asked, 1_000, work, () => 100)
  expect(heavy.answers).toEqual([...asked.slice(0, 7), ...asked.slice(8, 16)])
  expect(heavy.left).toEqual(asked.slice(16))
  expect(begun).toEqual(asked.slice(0, 16))
  expect(await byWeight([], 1, work, () => 1)).toEqual({ answers: [], left: [] })
})
