import { expect, test } from 'vitest'
import { Stage, oneTask } from '../stage.fixture.ts'

function aStage(perClientMax: number, totalMax = 1_000): Stage {
  return new Stage([oneTask()], { settings: { backlog: { perClientMax, totalMax } } })
}

const asks = (id: string) => ({ client: { id } })

test('[H-04] a client with too many open jobs is refused until some have ended; others are not', async () => {
  const stage = aStage(2)
  const worker = await stage.worker('w', { concurrencyMax: 9 })
  await stage.create('one', asks('a'))
  await stage.create('one', asks('a'))
  const refused = stage.create('one', asks('a'))
  await expect(refused).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS', details: { retry_after_s: 5 } })
  await stage.create('one', asks('b'))
  await stage.run()
  for (const { taskId } of await worker.take(3)) await worker.report(taskId)
  await stage.after(1_000)
  await stage.create('one', asks('a'))
})

test('[H-04] there is a bound over all clients too', async () => {
  const stage = aStage(100, 3)
  for (const client of ['a', 'b', 'c']) await stage.create('one', asks(client))
  await expect(stage.create('one', asks('d'))).rejects.toThrow(
    'There are too many open jobs. Wait until some have ended.',
  )
})

test('[H-04] creations of one moment never exceed the bound', async () => {
  const stage = aStage(7)
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => stage.create('one', asks('a'))))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(7)
})

test('[H-04] [I-01] the bound holds over several instances, but for a sixteenth for each further one', async () => {
  const settings = { backlog: { perClientMax: 150, totalMax: 1_000 }, isShared: true }
  const first = new Stage([oneTask()], { settings })
  // Three engines on one storage, which know nothing of each other.
  const { clock, storage } = first
  const others = [1, 2].map(() => new Stage([oneTask()], { settings, clock, storage: () => storage }))
  const stages = [first, ...others]
  const asked = stages.flatMap((stage) => Array.from({ length: 80 }, () => stage.create('one', asks('a'))))
  const outcomes = await Promise.allSettled(asked)
  const admitted = outcomes.filter(({ status }) => status === 'fulfilled').length
  expect(admitted).toBeLessThanOrEqual(150 + 2 * Math.ceil(150 / 16))
  // Who is refused may have come too soon, and asks again: what is free can be had.
  for (;;) {
    const counts = await storage.counts('job', { owner: 'a' })
    if (Object.values(counts).reduce((sum, count) => sum + count, 0) >= 150) break
    await clock.advance(1_000)
    await Promise.allSettled(stages.map((stage) => stage.create('one', asks('a'))))
  }
  for (const stage of stages) {
    await clock.advance(1_000)
    await expect(stage.create('one', asks('a'))).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  }
})

test('[C-08] whoever asks again for a job that is there gets it, however many are open', async () => {
  const stage = aStage(1)
  const first = await stage.create('one', asks('a'), { idempotencyKey: 'k' })
  expect(await stage.create('one', asks('a'), { idempotencyKey: 'k' })).toBe(first)
  await expect(stage.create('one', asks('a'), { idempotencyKey: 'other' })).rejects.toThrow('You have 1 open jobs')
  const jobId = uuidAt(stage.clock.now())
  const named = await stage.create('one', asks('b'), { jobId })
  expect(await stage.create('one', asks('b'), { jobId })).toBe(named)
})

/** A UUIDv7 of this moment. */
function uuidAt(ms: number): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000001`
}
