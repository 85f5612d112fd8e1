import { expect, test } from 'vitest'
import { Stage, oneTask } from '../stage.fixture.ts'

const asks = (id: string) => ({ client: { id } })

test('[I-09] a client whose new jobs wait too long for their turn is refused until they do not; others are not', async () => {
  const stage = new Stage([oneTask()], { settings: { turnWaitMsMax: 10_000 } })
  await stage.create('one', asks('a'))
  await stage.clock.advance(9_000)
  const repeated = await stage.create('one', { ...asks('a'), idempotencyKey: 'k' })
  await stage.clock.advance(2_000)
  await expect(stage.create('one', asks('a'))).rejects.toMatchObject({
    code: 'OVERLOADED',
    details: { retry_after_s: 5 },
    message: 'Your jobs have been waiting 11 s for their first turn. Wait until they have had it.',
  })
  await stage.create('one', asks('b'))
  expect(await stage.create('one', { ...asks('a'), idempotencyKey: 'k' })).toBe(repeated)
  const { leases } = await stage.storage.claim('turns', { lanes: ['a'], limit: 1, leaseMs: 60_000 })
  expect(leases).toHaveLength(1)
  await stage.clock.advance(1_000)
  // Somebody has the turn that was followed. The next one is followed from its own creation on.
  await stage.create('one', asks('a'))
  await stage.create('one', asks('a'))
})

test('[I-09] a job that has had its turn says nothing, however long it lasts', async () => {
  const stage = new Stage([oneTask()], { settings: { turnWaitMsMax: 10_000 } })
  const jobId = await stage.create('one', asks('a'))
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  await stage.clock.advance(100_000)
  await stage.create('one', asks('a'))
})

test('[I-09] many requests at once after a quiet time are all taken: nobody is refused while the first looks', async () => {
  const stage = new Stage([oneTask()], { settings: { turnWaitMsMax: 10_000 } })
  await stage.create('one', asks('a'))
  await stage.run()
  await stage.clock.advance(100_000)
  const created = await Promise.all(Array.from({ length: 5 }, () => stage.create('one', asks('a'))))
  expect(new Set(created).size).toBe(5)
})
