import { expect, test } from 'vitest'
import { Tally } from './tally.ts'

test('work that is done twice counts once', async () => {
  const tally = new Tally()
  const three = tally.until(3)
  for (const index of [0, 1, 1, 0, 2]) tally.add(index)
  await expect(three).resolves.toMatchObject({ distinct: 3, handled: 5 })
})

test('waiting for what has been done already ends at once', async () => {
  const tally = new Tally()
  tally.add(70_000)
  await expect(tally.until(1)).resolves.toMatchObject({ distinct: 1 })
})
