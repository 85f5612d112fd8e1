import { hostname } from 'node:os'
import { createClient } from '@impresario/client'
import { blueprint, newWorkerRecord } from '@impresario/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createClock } from '../runtime/clock.ts'
import { listIn, startTenantServer, TENANTS } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

let app: TenantServer

beforeEach(async () => {
  app = await startTenantServer({ settings: { reputationMinThreshold: 0.5 } })
})
afterEach(() => app.close())

test('[M-02] an admin reads what the server is: versions, storage and its promise, leads, limits', async () => {
  await expect
    .poll(async () => (await app.as('admin', 'GET', '/api/v1/admin/system')).body['leads'])
    .toContainEqual({ process: 'health-checker', led_by: 'this_instance', instance_id: hostname() })
  const { status, body, text } = await app.as('admin', 'GET', '/api/v1/admin/system')
  expect(status).toBe(200)
  expect(body).toMatchObject({
    node_version: process.versions.node,
    time_zone_data: process.versions['tz'],
    storage: { promise: expect.stringMatching(/^(?:always|everysec|none)$/) as unknown },
    instances: [{ instance_id: hostname(), status: 'running', is_this: true, version: body['version'] }],
    history: { is_away: false, dropped: 0 },
    limits: { attempts: expect.any(Number) as unknown, worker_silence_seconds: expect.any(Number) as unknown },
  })
  expect(body['started_at']).toBeLessThanOrEqual(Date.now() / 1_000)
  expect(text).not.toMatch(/:[^/"@]+@/)
  expect(await app.server.client({ role: 'admin' }).admin.system()).toMatchObject({
    nodeVersion: process.versions.node,
  })
  for (const tenant of ['alpha', 'viewer'] as const) {
    expect((await app.as(tenant, 'GET', '/api/v1/admin/system')).status).toBe(403)
    expect((await app.as(tenant, 'GET', '/api/v1/admin/clients')).status).toBe(403)
  }
})

test('[M-02] [H-08] clients of the configuration are listed by id, without their tokens', async () => {
  const answer = await app.as('admin', 'GET', '/api/v1/admin/clients')
  expect(listIn(answer)).toMatchObject([
    { client_id: 'admin', role: 'admin', plan: null, monthly_attempts: null, tokens: 1 },
    { client_id: 'alpha', role: 'client' },
    { client_id: 'beta', role: 'client' },
    { client_id: 'viewer', role: 'viewer' },
  ])
  expect(answer.text).not.toContain('token-of')
  const local = await app.server.client({ role: 'admin' }).admin.clients()
  expect(local.map(({ clientId }) => clientId)).toEqual(['admin', 'alpha', 'beta', 'viewer'])
  const remote = createClient({ url: app.address, token: TENANTS.admin })
  expect(await remote.admin.clients()).toEqual(local)
  expect(await remote.admin.system()).toMatchObject({ storage: { isShared: expect.any(Boolean) as unknown } })
  expect(await remote.queues()).toEqual([])
})

const reasonsOf = async (id: string): Promise<readonly string[]> => {
  const { body } = await app.as('admin', 'GET', `/api/v1/workers/${id}/explain`)
  return (body['reasons'] as readonly { readonly code: string }[]).map(({ code }) => code)
}

test('[M-02] [D-05] a worker that gets nothing says why: nothing waits, no skill, draining, full', async () => {
  await app.register('w1', { supported_skills: ['paint'] })
  expect(await reasonsOf('w1')).toEqual(['no_tasks'])
  await app.jobIn('alpha', 'echo', 'waiting_for_worker')
  await expect.poll(async () => (await app.server.client({ role: 'admin' }).queues()).length).toBe(1)
  expect(await reasonsOf('w1')).toEqual(['skills'])
  const { body } = await app.as('admin', 'GET', '/api/v1/workers/w1/explain')
  expect(body).toMatchObject({
    gets_tasks: false,
    reasons: [{ code: 'skills', values: {} }],
    waiting: [
      {
        waiting: 1,
        is_exact: true,
        fits: false,
        reasons: ["It lacks the skill 'echo'."],
        mismatches: [{ reason: 'skill', needed: 'echo' }],
      },
    ],
  })
  // Which tasks wait is a matter of all clients.
  expect((await app.as('alpha', 'GET', '/api/v1/workers/w1/explain')).body).toMatchObject({ waiting: null })
  await app.worker('PATCH', '/_worker/workers/w1', { status: 'draining' })
  expect(await reasonsOf('w1')).toEqual(['draining'])
  expect(await app.server.client().explainWorker('w1')).toMatchObject({ getsTasks: false })
  await app.register('w2', { supported_skills: ['echo'], resources: { max_concurrent_tasks: 1 } })
  expect((await app.poll('w2')).status).toBe(200)
  expect(await reasonsOf('w2')).toEqual(['full'])
  const { body: full } = await app.as('admin', 'GET', '/api/v1/workers/w2/explain')
  expect(full).toMatchObject({ reasons: [{ code: 'full', values: { load: 1, slots: 1 } }] })
  expect((await app.as('admin', 'GET', '/api/v1/workers/none/explain')).status).toBe(404)
})

test('[M-02] a queue says what came and went in the last minute, also when nothing waits in it', async () => {
  await app.jobIn('alpha', 'echo', 'waiting_for_worker')
  const queues = () => app.server.client({ role: 'admin' }).queues()
  await expect.poll(queues).toMatchObject([{ taskType: 'echo', waiting: 1, placedPerMinute: 1, takenPerMinute: 0 }])
  await app.register('w1')
  expect((await app.poll('w1')).status).toBe(200)
  expect(await queues()).toMatchObject([{ taskType: 'echo', waiting: 0, placedPerMinute: 1, takenPerMinute: 1 }])
})

test('[M-02] [D-05] a worker that is little trusted, has signed off or lacks something says so', async () => {
  const heavy = blueprint('heavy', { start: 'lift' }, (state) => ({
    lift: state.handler((_context, actions) => {
      const resourceRequirements = { ramGb: 512 }
      return actions.dispatchTask({ type: 'echo', resourceRequirements, transitions: { success: 'done' } })
    }),
    done: state.end(),
  }))
  await app.close()
  app = await startTenantServer({ blueprints: [heavy], settings: { reputationMinThreshold: 0.5 } })
  const { desk } = app.server.engine
  await desk.register(newWorkerRecord({ id: 'w1', skills: ['echo'], reputation: 0.2 }, Date.now()))
  expect(await reasonsOf('w1')).toEqual(['reputation', 'no_tasks'])
  // It gets what no better worker has room for.
  expect(await app.server.client().explainWorker('w1')).toMatchObject({ getsTasks: true })
  await app.jobIn('alpha', 'heavy', 'waiting_for_worker')
  await expect.poll(() => reasonsOf('w1')).toEqual(['reputation', 'requirements'])
  const { waiting } = await app.server.client({ role: 'admin' }).explainWorker('w1')
  expect(waiting).toMatchObject([{ taskType: 'echo', fits: false, reasons: [expect.stringContaining('512')] }])
  expect(waiting).toMatchObject([{ mismatches: [{ reason: 'ram_gb', needed: 512 }] }])
  await app.worker('PATCH', '/_worker/workers/w1', { status: 'offline' })
  await expect.poll(() => reasonsOf('w1')).toContain('offline')
})

test('[M-02] [D-05] a worker that has sent nothing for long is silent', async () => {
  let aheadMs = 0
  const real = createClock()
  const clock = { now: () => real.now() + aheadMs, sleep: (ms: number, signal: AbortSignal) => real.sleep(ms, signal) }
  await app.close()
  app = await startTenantServer({ clock })
  await app.register('w1')
  expect(await reasonsOf('w1')).toEqual(['no_tasks'])
  aheadMs = 600_000
  expect(await reasonsOf('w1')).toEqual(['silent'])
})
