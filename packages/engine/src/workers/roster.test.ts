import { expect, test } from 'vitest'
import { Stage, oneTask } from '../stage.fixture.ts'

const SILENT_MS = 120_000
const BEAT_MS = 15_000

/** Every write of a worker's record gives it the next version. */
async function writesOf(stage: Stage, id: string): Promise<number> {
  return (await stage.storage.read('worker', id))?.version ?? 0
}

test('[E-03] heartbeats that say nothing new are written only as often as the worker would else count as silent', async () => {
  const stage = new Stage([oneTask()], { settings: { workerTtlMs: SILENT_MS } })
  const worker = await stage.worker('w')
  const before = await writesOf(stage, 'w')
  let oldestMs = 0
  for (let beats = 0; beats < 24; beats += 1) {
    await stage.after(BEAT_MS)
    await worker.heartbeat([])
    const now = stage.clock.now()
    expect(stage.engine.dispatcher.worker('w')?.seenAt).toBe(now)
    const stored = await stage.storage.read('worker', 'w')
    oldestMs = Math.max(oldestMs, now - (stored?.value.seenAt ?? 0))
  }
  expect((await writesOf(stage, 'w')) - before).toBe(8)
  expect(oldestMs).toBeLessThanOrEqual(SILENT_MS / 3)
})

test('[E-03] what a heartbeat says anew is written at once', async () => {
  const stage = new Stage([oneTask()], { settings: { workerTtlMs: SILENT_MS } })
  await stage.worker('w')
  const before = await writesOf(stage, 'w')
  await stage.engine.desk.heartbeat('w', { status: 'busy' }, [])
  await stage.engine.desk.heartbeat('w', { status: 'busy' }, [])
  expect((await writesOf(stage, 'w')) - before).toBe(1)
  expect((await stage.storage.read('worker', 'w'))?.value.status).toBe('busy')
})

test('[E-03] of many workers the signs of life that are due are written together, and none is left out', async () => {
  const stage = new Stage([oneTask()], { settings: { workerTtlMs: SILENT_MS } })
  const ids = Array.from({ length: 40 }, (_, index) => `w${index}`)
  for (const id of ids) await stage.worker(id)
  for (let round = 0; round < 8; round += 1) {
    await stage.after(BEAT_MS)
    for (const id of ids) await stage.engine.desk.heartbeat(id, {}, [])
  }
  const now = stage.clock.now()
  const stored = await Promise.all(ids.map((id) => stage.storage.read('worker', id)))
  expect(stored.filter((one) => now - (one?.value.seenAt ?? 0) >= SILENT_MS)).toEqual([])
})

test('[E-03] [J-22] another look at the stored workers does not forget a sign of life that was heard here', async () => {
  const stage = new Stage([oneTask()], { settings: { isShared: true, workerTtlMs: SILENT_MS } })
  const worker = await stage.worker('w')
  await stage.after(BEAT_MS)
  await worker.heartbeat([])
  const heardAt = stage.clock.now()
  await stage.after(BEAT_MS)
  await stage.engine.dispatcher.tick()
  expect(stage.engine.dispatcher.worker('w')?.seenAt).toBe(heardAt)
})

test('[C-10] workers may be many or say much of themselves, but not both', async () => {
  const stage = new Stage([oneTask()], { settings: { workerBytesMax: 200_000 } })
  const skills = Array.from({ length: 900 }, (_, index) => `a-skill-with-a-long-name-${index}`)
  await stage.worker('w1', { skills })
  await stage.worker('w2', { skills })
  await stage.worker('w3', { skills })
  await expect(stage.worker('w4', { skills: ['work'] })).rejects.toMatchObject({
    code: 'TOO_MANY_REQUESTS',
    details: { retry_after_s: 60 },
  })
  // Those who are here may come again, and say less.
  for (const id of ['w1', 'w2']) await stage.worker(id, { skills: ['work'] })
  await stage.worker('w4', { skills: ['work'] })
})
