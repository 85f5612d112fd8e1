import { expect, test } from 'vitest'
import { Stage, oneTask } from './stage.fixture.ts'

const LEASE_MS = 30_000

/** Lets the worker beat for longer than its lease, and says what another worker finds then. */
async function otherFinds(stage: Stage, beat: () => Promise<unknown>): Promise<number> {
  for (let beats = 0; beats < 5; beats += 1) {
    await stage.after(LEASE_MS / 4)
    await beat()
  }
  const other = await stage.worker('other')
  return (await other.take()).length
}

// The simulator found these: a lost task stood still until its result timeout (seed 2, embedded; seed 3 with `deadly`).

test('[E-03] a task whose delivery got lost goes to another, though its worker beats on', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  await stage.begin('one')
  await worker.takeOne()
  expect(await otherFinds(stage, () => worker.heartbeat([]))).toBe(1)
})

test('[E-03] a worker that has started anew does not keep alive what its earlier life held', async () => {
  const stage = new Stage([oneTask()])
  const before = await stage.worker('w')
  await stage.begin('one')
  await before.takeOne()
  const after = await stage.worker('w', { concurrencyMax: 1 })
  expect(await otherFinds(stage, () => after.heartbeat())).toBe(1)
})
