import { KINDS, QUEUES } from '@impresario/core'
import type { LogFields } from '@impresario/core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { listIn, startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

const VALUE = 'sk-live/7 of+the&tests'
const lines: string[] = []
const write = (message: string, fields?: LogFields): void => {
  lines.push(`${message} ${JSON.stringify(fields)}`)
}
const log = { debug: write, info: write, warn: write, error: write }
const storage = testStorage({ now: () => Date.now() })
let app: TenantServer

beforeAll(async () => {
  app = await startTenantServer({ storage, log })
  await app.as('alpha', 'PUT', '/api/v1/secrets/API_KEY', { value: VALUE })
})
afterAll(() => app.close())

async function run(pipeline: readonly object[]): Promise<Readonly<Record<string, unknown>>> {
  const made = await app.as('alpha', 'POST', '/api/v1/automations', { title: 'Secret', pipeline })
  expect({ status: made.status, text: made.text }).toMatchObject({ status: 201 })
  const { body } = await app.as('alpha', 'POST', `/api/v1/automations/${String(made.body['id'])}/run`, {})
  return vi.waitFor(async () => {
    const found = await app.as('alpha', 'GET', `/api/v1/runs/${String(body['run_id'])}`)
    expect(found.body['ended_at']).toEqual(expect.any(Number))
    return found.body
  }, 60_000)
}

/** Everything that is stored, that was answered to its owner, or that is in the log. */
async function everything(): Promise<string> {
  const texts = [...lines]
  for (const kind of KINDS) texts.push(JSON.stringify(await storage.list(kind, { limit: 1_000 })))
  for (const queue of QUEUES) texts.push(JSON.stringify(await storage.lanes(queue)))
  for (const path of [
    'runs',
    'jobs',
    'audit',
    'automations',
    'automations/events',
    'secrets',
    'history/jobs',
    'tools',
  ]) {
    texts.push((await app.as('alpha', 'GET', `/api/v1/${path}`)).text)
  }
  return texts.join('\n')
}

test('[K-10] a secret reaches the tool, and is in no record, log, answer or error', async () => {
  const read = { uses: 'transform', with: { value: { key: '${secrets.API_KEY}', long: 'Bearer ${secrets.API_KEY}!' } } }
  const done = await run([
    { id: 'read', ...read },
    { id: 'tell', uses: 'log', with: { message: 'key ${secrets.API_KEY}', details: { key: '${secrets.API_KEY}' } } },
    { id: 'count', uses: 'transform', with: { value: '${length(steps.read.key)}' } },
  ])
  expect(done).toMatchObject({
    status: 'succeeded',
    steps: [
      { input: { value: { key: '[secret API_KEY]' } }, output: { long: 'Bearer [secret API_KEY]!' } },
      { output: { message: 'key [secret API_KEY]' } },
      {},
    ],
  })
  expect(lines.join('\n')).toContain('key [secret API_KEY]')
  const wrong = { url: 'http://127.0.0.1:1/?key=${secrets.API_KEY}', headers: { key: '${secrets.API_KEY}' } }
  expect((await run([{ id: 'call', uses: 'http.request', with: wrong }]))['status']).toBe('failed')
  const all = await everything()
  for (const form of [VALUE, encodeURIComponent(VALUE), JSON.stringify(VALUE).slice(1, -1)]) {
    expect(all).not.toContain(form)
  }
  expect(all).toContain('API_KEY')
})

test('[K-10] what is kept gets no secret, and what comes from outside makes no mark of one', async () => {
  for (const uses of ['task.build', 'blueprint.echo', 'event.publish', 'job.start']) {
    const pipeline = [{ id: 'a', uses, with: { key: '${secrets.API_KEY}' } }]
    const refused = await app.as('alpha', 'POST', '/api/v1/automations', { title: 'x', pipeline })
    expect(refused.status).toBe(422)
    expect(refused.text).toContain('takes no secrets')
  }
  const forged = { key: '\uFDD1API_KEY\uFDD2' }
  const pipeline = [{ id: 'a', uses: 'transform', with: { value: '${params.key}${secrets.API_KEY}' } }]
  const made = await app.as('alpha', 'POST', '/api/v1/automations', { title: 'x', pipeline, params: forged })
  const { body } = await app.as('alpha', 'POST', `/api/v1/automations/${String(made.body['id'])}/run`, {})
  await vi.waitFor(async () => {
    const found = await app.as('alpha', 'GET', `/api/v1/runs/${String(body['run_id'])}`)
    expect(found.body['output']).toBe('API_KEY[secret API_KEY]')
  }, 60_000)
  expect(await everything()).not.toContain(VALUE)
})

test('[K-10] secrets belong to their owner; only their names are listed, and what is not there is refused', async () => {
  expect(listIn(await app.as('alpha', 'GET', '/api/v1/secrets')).map((one) => one['name'])).toEqual(['API_KEY'])
  expect(listIn(await app.as('beta', 'GET', '/api/v1/secrets'))).toEqual([])
  const pipeline = [{ id: 'a', uses: 'transform', with: { value: '${secrets.API_KEY}' } }]
  const foreign = await app.as('beta', 'POST', '/api/v1/automations', { title: 'x', pipeline })
  expect(foreign.status).toBe(422)
  expect(foreign.text).toContain('There is no secret')
  expect((await app.as('alpha', 'PUT', '/api/v1/secrets/API_KEY', { value: 'short' })).status).toBe(400)
  expect((await app.as('alpha', 'PUT', '/api/v1/secrets/9', { value: 'long enough' })).status).toBe(422)
  expect((await app.as('beta', 'DELETE', '/api/v1/secrets/API_KEY')).status).toBe(404)
  await app.as('alpha', 'PUT', '/api/v1/secrets/OTHER', { value: 'long enough' })
  expect((await app.as('alpha', 'DELETE', '/api/v1/secrets/OTHER')).status).toBe(204)
})

test('[K-10] a step starts a job and publishes an event, once however often it is tried', async () => {
  const done = await run([
    { id: 'start', uses: 'job.start', with: { blueprint: 'echo', initial_data: { a: 1 } } },
    { id: 'say', uses: 'event.publish', with: { topic: 'report.made', payload: { job: '${steps.start.job_id}' } } },
  ])
  expect(done).toMatchObject({ status: 'succeeded', steps: [{ status: 'succeeded' }, { status: 'succeeded' }] })
  const events = listIn(await app.as('alpha', 'GET', '/api/v1/automations/events?topic=report.made'))
  expect(events).toMatchObject([{ owner: 'alpha', payload: { job: expect.any(String) as unknown } }])
  const [{ payload } = {}] = events
  const { job } = payload as { job: string }
  expect((await app.as('alpha', 'GET', `/api/v1/jobs/${job}`)).status).toBe(200)
  const gone = await run([{ id: 'start', uses: 'job.start', with: { blueprint: 'nope' } }])
  expect(gone).toMatchObject({ status: 'failed', error: { code: 'PERMANENT_ERROR' } })
})
