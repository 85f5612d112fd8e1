import { afterAll, beforeAll, expect, test } from 'vitest'
import { listIn, startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'
import { AUTOMATION, createAutomation, endedRun } from './automations.fixture.ts'

let app: TenantServer

beforeAll(async () => {
  app = await startTenantServer()
})
afterAll(() => app.close())

const create = (more: object = {}): Promise<string> => createAutomation(app, more)
const ended = (runId: string): Promise<Readonly<Record<string, unknown>>> => endedRun(app, runId)

test('[K-11] a run is repeated from its beginning or from a step, with what the steps before it gave', async () => {
  const steps = [
    { id: 'make', uses: 'transform', with: { value: { at: '${now}', name: '${params.name}' } }, save_as: 'made' },
    { id: 'get', uses: 'http.request', with: { url: 'http://127.0.0.1:1/' } },
  ]
  const id = await create({ pipeline: steps, dedupe: { key: 'always', window_seconds: 3_600 } })
  const { body } = await app.as('alpha', 'POST', `/api/v1/automations/${id}/run`)
  const first = String(body['run_id'])
  const failed = await ended(first)
  expect(failed).toMatchObject({ status: 'failed', steps: [{ status: 'succeeded' }, { status: 'failed' }] })
  // Mended, and then from the step that failed.
  const mended = [steps[0], { id: 'get', uses: 'transform', with: { value: '${steps.made}' } }]
  await app.as('alpha', 'PUT', `/api/v1/automations/${id}`, { ...AUTOMATION, pipeline: mended })
  const path = `/api/v1/runs/${first}/rerun`
  const again = await app.as('alpha', 'POST', path, { from: 'get' })
  expect(again).toMatchObject({ status: 202, body: { status: 'started' } })
  const second = await ended(String(again.body['run_id']))
  const [made] = listOf(failed['steps'])
  expect(second).toMatchObject({
    status: 'succeeded',
    output: made?.['output'],
    trigger: { kind: 'rerun', by: 'alpha', rerun_of: first },
    steps: [made, { id: 'get', status: 'succeeded' }],
  })
  const whole = await app.as('alpha', 'POST', path, { params: { name: 'Bob' } })
  expect(await ended(String(whole.body['run_id']))).toMatchObject({ status: 'succeeded', output: { name: 'Bob' } })
  expect((await app.as('alpha', 'POST', path, { from: 'none' })).status).toBe(422)
  expect((await app.as('beta', 'POST', path, {})).status).toBe(404)
})

test('[K-11] runs are filtered by time and trigger, and counted', async () => {
  const id = await create()
  for (const name of ['Ada', 'Bob']) {
    const { body } = await app.as('alpha', 'POST', `/api/v1/automations/${id}/run`, { params: { name } })
    await ended(String(body['run_id']))
  }
  const count = async (query: string): Promise<number> =>
    listIn(await app.as('alpha', 'GET', `/api/v1/runs?automation_id=${id}&${query}`)).length
  const hence = Date.now() / 1_000 + 60
  expect(await count('trigger=manual')).toBe(2)
  expect(await count('trigger=time')).toBe(0)
  expect(await count(`created_after=${hence}`)).toBe(0)
  expect(await count(`created_before=${hence}&created_after=2020-01-01T00:00:00Z`)).toBe(2)
  expect((await app.as('alpha', 'GET', '/api/v1/runs?created_after=soon')).status).toBe(400)
  const { body } = await app.as('alpha', 'GET', `/api/v1/runs/statistics?automation_id=${id}&days=1`)
  expect(body).toMatchObject({
    total: 2,
    automations: 1,
    success_rate: 1,
    by_status: { succeeded: 2, failed: 0 },
    last_run_at: expect.any(Number) as unknown,
    last_failure_at: null,
    duration_seconds: { p50: expect.any(Number) as unknown },
    is_partial: false,
  })
  const others = await app.as('beta', 'GET', `/api/v1/runs/statistics?automation_id=${id}`)
  expect(others.body['total']).toBe(0)
})

function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? (value as Readonly<Record<string, unknown>>[]) : []
}
