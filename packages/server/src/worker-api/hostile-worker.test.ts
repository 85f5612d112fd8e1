import { newWorkerRecord } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

let app: TestServer

beforeAll(async () => {
  app = await startTestServer({ settings: { rateLimitingEnabled: false } })
})
afterAll(async () => {
  await app.server.stop()
})

const names = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `s${at}`)
/** Nothing to do for it here. */
const IDLE = { supported_skills: ['none'] }
const longName = 'x'.repeat(LIMITS.identifierCharsMax + 1)

describe('what a worker may say of itself', () => {
  test('[E-01] [H-08] the longest list is taken, one more is refused, whatever it names', async () => {
    const most = names(LIMITS.workerNamesMax)
    expect(await app.register('w1', { supported_skills: most })).toMatchObject({ status: 200 })
    expect(await app.worker('PATCH', '/_worker/workers/w1', { available_skills: most })).toMatchObject({ status: 200 })
    const more = names(LIMITS.workerNamesMax + 1)
    const lists = ['supported_skills', 'supported_tasks', 'available_skills', 'hot_skills', 'hot_cache']
    for (const list of [...lists, 'installed_models', 'installed_artifacts']) {
      expect(await app.register('w2', { [list]: more })).toMatchObject({ status: 400 })
      expect(await app.register('w2', { [list]: [longName] })).toMatchObject({ status: 400 })
    }
    for (const list of lists) {
      expect(await app.worker('PATCH', '/_worker/workers/w1', { [list]: more })).toMatchObject({ status: 400 })
    }
    const tasks = names(LIMITS.workerTasksMax + 1)
    expect(await app.worker('PATCH', '/_worker/workers/w1', { current_tasks: tasks })).toMatchObject({ status: 400 })
  })

  test('[E-01] [H-08] all of it together has a bound, in registrations and in heartbeats', async () => {
    const text = 'x'.repeat(LIMITS.workerRecordCharsMax / 2)
    const large = { ...IDLE, metadata: { text } }
    expect(await app.register('w3', large)).toMatchObject({ status: 200 })
    for (const more of [{ metadata: { text: text + text } }, { resources: { properties: { text: text + text } } }]) {
      expect(await app.register('w4', more)).toMatchObject({ status: 422, body: { code: 'LIMIT_EXCEEDED' } })
    }
    const beat = { supported_skills: [{ name: 'none', description: text }] }
    expect(await app.worker('PATCH', '/_worker/workers/w3', beat)).toMatchObject({ status: 422 })
    expect(await app.worker('PATCH', '/_worker/workers/w3', {})).toMatchObject({ status: 200 })
    expect((await app.worker('PATCH', '/_worker/workers/w4', {})).status).toBe(404)
  })

  test('[E-01] [H-08] one token cannot register without end; those who are there go on, and one more fits when one leaves', async () => {
    const { dispatcher } = app.server.engine
    await app.register('there', IDLE)
    const others: string[] = []
    while (dispatcher.workerCount < LIMITS.workersMax) {
      const id = `other-${others.length}`
      others.push(id)
      dispatcher.put(newWorkerRecord({ id }, Date.now()))
    }
    const refused = await app.register('one-more', IDLE)
    expect(refused).toMatchObject({ status: 429, body: { code: 'TOO_MANY_REQUESTS' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await app.register('there', IDLE)).toMatchObject({ status: 200 })
    dispatcher.remove(others[0] ?? '')
    expect(await app.register('one-more', IDLE)).toMatchObject({ status: 200 })
    for (const id of others) dispatcher.remove(id)
  })
})

describe('how often', () => {
  const from = (address: string, more: object = {}) => ({ 'x-forwarded-for': address, ...more })

  test('[H-04] who only says that it is a worker is counted by its address, whatever it makes up', async () => {
    const limited = await startTestServer({ settings: { trustProxy: 'true', rateLimitPublic: 2 } })
    const refresh = (at: number) =>
      limited.call('POST', '/_worker/auth/token/refresh', {
        headers: from('203.0.113.7', { 'x-worker-token': `guess-${at}`, 'x-worker-id': `w${at}` }),
        body: { refresh_token: `guess-${at}` },
      })
    expect([(await refresh(1)).status, (await refresh(2)).status, (await refresh(3)).status]).toEqual([403, 403, 429])
    await limited.server.stop()
  })

  test('[H-04] workers that share a token and name no id in the head are counted by their addresses', async () => {
    const limited = await startTestServer({ settings: { trustProxy: 'true', rateLimitGeneral: 2 } })
    const send = async (address: string): Promise<number> =>
      (await limited.worker('POST', '/_worker/events', { worker_id: 'w', event_type: 'awake' }, from(address))).status
    const [one, other] = ['203.0.113.7', '203.0.113.8']
    expect([await send(one), await send(one), await send(one), await send(other)]).toEqual([200, 200, 429, 200])
    await limited.server.stop()
  })
})

describe('what a worker may say of a task', () => {
  test('[B-07] [H-08] a status is a word: a long one is refused and leaves nothing in the record of the job', async () => {
    await app.register('w5')
    const jobId = await app.createJob('echo')
    const { body: task } = await app.poll('w5')
    expect(task.job_id).toBe(jobId)
    const result = { job_id: jobId, task_id: task.task_id, worker_id: 'w5' }
    for (const more of [{ status: longName }, { result: { status: longName } }]) {
      expect(await app.worker('POST', '/_worker/tasks/result', { ...result, ...more })).toMatchObject({ status: 400 })
    }
    expect((await app.client('GET', `/api/v1/jobs/${jobId}`)).text).not.toContain(longName)
    expect(await app.worker('POST', '/_worker/tasks/result', result)).toMatchObject({ status: 200 })
    expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished' })
  })
})
