import { expect, onTestFinished, test } from 'vitest'
import { companyOf } from '../company.fixture.ts'
import { Stage, oneTask, settled } from '../stage.fixture.ts'
import type { Changes } from './change-feed.ts'

async function listening(stage: Stage): Promise<Changes[]> {
  const heard: Changes[] = []
  onTestFinished(stage.engine.onChanges((changes) => heard.push(changes)))
  await settled()
  return heard
}

const jobsIn = (heard: readonly Changes[]): readonly string[] =>
  heard.flatMap(({ jobs }) => jobs.map(({ jobId, status }) => `${jobId} ${status}`))

async function alone(): Promise<Stage> {
  const stage = new Stage([oneTask()])
  await stage.engine.start()
  onTestFinished(() => stage.engine.stop())
  return stage
}

test('[M-02] a change is told at once, those that follow together, and the newest of each job', async () => {
  const stage = await alone()
  const heard = await listening(stage)
  const first = await stage.create('one')
  await settled()
  expect(heard).toHaveLength(1)
  expect(heard[0]?.jobs[0]).toMatchObject({ jobId: first, owner: 'client', blueprint: 'one' })
  const second = await stage.create('one')
  await stage.engine.cancelJob(second, 'client')
  await settled()
  expect(heard).toHaveLength(1)
  await stage.clock.advance(200)
  expect(heard).toHaveLength(2)
  expect(jobsIn(heard.slice(1))).toContain(`${second} cancelled`)
  expect(jobsIn(heard.slice(1)).filter((one) => one.startsWith(second))).toHaveLength(1)
})

test('[M-02] of very many changes in one moment some are named, and of the others whose they are', async () => {
  const stage = await alone()
  const heard = await listening(stage)
  for (let count = 0; count < 300; count += 1) await stage.create('one')
  await stage.clock.advance(1_000)
  expect(Math.max(...heard.map(({ jobs }) => jobs.length))).toBeLessThanOrEqual(100)
  expect(heard.some(({ more }) => more.includes('client'))).toBe(true)
})

test('[M-02] who listens no more hears nothing, and nothing is kept for it', async () => {
  const stage = await alone()
  const heard: Changes[] = []
  stage.engine.onChanges((changes) => heard.push(changes))()
  await stage.create('one')
  await stage.clock.advance(10_000)
  expect(heard).toEqual([])
})

test('[M-02] [I-01] who listens at one instance hears what changes at another, also one that came later', async () => {
  const [one, two] = await companyOf(2, { settings: { relookMs: 3_600_000 } })
  const heard = await listening(one!)
  const jobId = await two!.create('one')
  await settled()
  expect(jobsIn(heard).some((text) => text.startsWith(jobId))).toBe(true)
  await two!.clock.advance(60_000)
  heard.length = 0
  const later = await two!.create('one')
  await two!.clock.advance(200)
  expect(jobsIn(heard).some((text) => text.startsWith(later))).toBe(true)
})

test('[M-02] [I-01] very many changes at another instance are told in few words', async () => {
  const [one, two] = await companyOf(2, { settings: { relookMs: 3_600_000 } })
  const heard = await listening(one!)
  for (let count = 0; count < 300; count += 1) await two!.create('one')
  await two!.clock.advance(1_000)
  expect(heard.some(({ more }) => more.includes('client'))).toBe(true)
  expect(heard.length).toBeLessThan(300)
})

test('[M-02] a worker that comes is told', async () => {
  const [one, two] = await companyOf(2)
  const heard = await listening(one!)
  await two!.worker('w')
  await settled()
  expect(heard.some(({ workers }) => workers)).toBe(true)
})
