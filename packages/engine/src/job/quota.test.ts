import type { JobRequest, Storage } from '@impresario/core'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Engine } from '../engine.ts'
import type { Quota } from './quota.ts'
import { guarded, oneTask, registryOf, Stage } from '../stage.fixture.ts'

const NOVEMBER: Quota = { limit: 3, period: '2026-11', renewsInMs: 90_500 }
const REQUEST: JobRequest = { blueprint: 'one', client: { id: 'a' }, initialData: {} }
const BLUEPRINTS = [oneTask()]

const usedOf = async (storage: Storage): Promise<number | undefined> => (await storage.read('quota', 'a'))?.value.used
const jobsOf = async (storage: Storage): Promise<number> => (await storage.list('job', { limit: 1_000 })).length

test('[H-04] every job that is started costs one; then the answer is a refusal that says when there is more', async () => {
  const stage = new Stage(BLUEPRINTS)
  for (let job = 0; job < 3; job += 1) await stage.engine.createJob({ ...REQUEST, quota: NOVEMBER })
  await expect(stage.engine.createJob({ ...REQUEST, quota: NOVEMBER })).rejects.toMatchObject({
    code: 'QUOTA_EXCEEDED',
    status: 429,
    details: { retry_after_s: 91 },
  })
  expect(await stage.engine.quotaUse('a', NOVEMBER)).toEqual({ period: '2026-11', used: 3 })
  expect(await jobsOf(stage.storage)).toBe(3)
  // Others have their own.
  await stage.engine.createJob({ ...REQUEST, client: { id: 'b' }, quota: NOVEMBER })
})

test('[H-04] what is refused or asked for again costs nothing, also when nothing is left', async () => {
  const stage = new Stage(BLUEPRINTS)
  const quota = { ...NOVEMBER, limit: 2 }
  const at = stage.clock.now().toString(16).padStart(12, '0')
  const jobId = `${at.slice(0, 8)}-${at.slice(8)}-7000-8000-000000000001`
  await expect(stage.engine.createJob({ ...REQUEST, blueprint: 'none', quota })).rejects.toThrow('none')
  const first = await stage.engine.createJob({ ...REQUEST, quota, idempotencyKey: 'k' })
  expect(await stage.engine.createJob({ ...REQUEST, quota, idempotencyKey: 'k' })).toEqual({ ...first, isNew: false })
  await stage.engine.createJob({ ...REQUEST, quota, jobId })
  expect(await stage.engine.createJob({ ...REQUEST, quota, jobId })).toEqual({ jobId, isNew: false })
  expect(await stage.engine.createJob({ ...REQUEST, quota, idempotencyKey: 'k' })).toEqual({ ...first, isNew: false })
  await expect(stage.engine.createJob({ ...REQUEST, quota })).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' })
  expect(await usedOf(stage.storage)).toBe(2)
})

test('[H-04] a new month begins at nothing, and a slow clock does not bring the old one back', async () => {
  const stage = new Stage(BLUEPRINTS)
  const december = { ...NOVEMBER, period: '2026-12' }
  for (let job = 0; job < 3; job += 1) await stage.engine.createJob({ ...REQUEST, quota: NOVEMBER })
  await stage.engine.createJob({ ...REQUEST, quota: december })
  await stage.engine.createJob({ ...REQUEST, quota: NOVEMBER })
  await stage.engine.createJob({ ...REQUEST, quota: december })
  expect(await stage.engine.quotaUse('a', december)).toEqual({ period: '2026-12', used: 3 })
  await expect(stage.engine.createJob({ ...REQUEST, quota: NOVEMBER })).rejects.toMatchObject({
    code: 'QUOTA_EXCEEDED',
  })
})

test('[H-04] a batch is counted job by job: as many as are left are started', async () => {
  const stage = new Stage(BLUEPRINTS)
  const batch = Array.from({ length: 10 }, () => ({ ...REQUEST, quota: { ...NOVEMBER, limit: 7 } }))
  const results = await stage.engine.createJobs(batch)
  expect(results.map((result) => 'jobId' in result)).toEqual(batch.map((_, index) => index < 7))
  expect(results[7]).toMatchObject({ error: { code: 'QUOTA_EXCEEDED' } })
  expect(await jobsOf(stage.storage)).toBe(7)
})

test('[H-04] several engines on one storage start together exactly as many as the quota has', async () => {
  const turn = async (): Promise<void> => {
    // Between reading and writing there is always somebody else.
    for (let ticks = 0; ticks < 3; ticks += 1) await Promise.resolve()
  }
  const stage = new Stage(BLUEPRINTS, {
    storage: (clock) => guarded(testStorage({ now: clock.now }), turn, turn),
  })
  const { storage, clock, random, log } = stage
  const source = registryOf(BLUEPRINTS)
  const engines = Array.from({ length: 4 }, () => new Engine({ storage, clock, random, log, blueprints: source }))
  const quota = { ...NOVEMBER, limit: 25 }
  const wanted = engines.flatMap((engine) => Array.from({ length: 15 }, () => engine.createJob({ ...REQUEST, quota })))
  const results = await Promise.allSettled(wanted)
  const refused = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []))
  expect(refused).toHaveLength(35)
  for (const reason of refused) expect(reason).toMatchObject({ code: 'QUOTA_EXCEEDED' })
  expect(await jobsOf(storage)).toBe(25)
  expect(await usedOf(storage)).toBe(25)
})

test('[H-04] whoever has no quota is not counted and costs no read', async () => {
  const verbs: string[] = []
  const note = (verb: string): void => {
    verbs.push(verb)
  }
  const stage = new Stage(BLUEPRINTS, { storage: (clock) => guarded(testStorage({ now: clock.now }), note) })
  await stage.engine.createJob(REQUEST)
  expect(verbs).toEqual(['commit', 'sync'])
  expect(await usedOf(stage.storage)).toBeUndefined()
})
