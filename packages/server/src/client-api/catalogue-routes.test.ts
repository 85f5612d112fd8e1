import { writeFile } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { containing, listIn, startTenantServer, TENANTS } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'
import { catalogueOf } from '../worker-protocol/skill-catalogue.ts'

let app: TenantServer

beforeEach(async () => {
  app = await startTenantServer()
})
afterEach(() => app.close())

describe('workers', () => {
  test('[H-01] [H-08] a worker is shown without anything that it signs in with', async () => {
    await app.register('w1', {
      worker_type: 'cpu',
      capabilities: { s3_config_hash: '0123456789abcdef', hostname: 'far-away' },
      skills_hash: 'feedbeef',
    })
    const { status, body, text } = await app.as('viewer', 'GET', '/api/v1/workers/w1')
    expect(status).toBe(200)
    expect(body).toMatchObject({ worker_id: 'w1', worker_type: 'cpu', load: 0, reputation: 1 })
    expect(text).not.toMatch(/hash|token|0123456789abcdef|feedbeef/)
    expect(listIn(await app.as('alpha', 'GET', '/api/v1/workers'))).toEqual([body])
    expect(await app.as('alpha', 'GET', '/api/v1/workers/none')).toMatchObject({
      status: 404,
      body: { code: 'WORKER_NOT_FOUND' },
    })
  })

  test('[J-18] the catalogue lists skills with their providers, and is not the dashboard', async () => {
    const skill = { name: 'draw', description: 'Draws.', input_schema: { type: 'object' }, price: 3 }
    await app.register('w1', { worker_type: 'cpu', supported_skills: [skill] })
    await app.register('w2', { worker_type: 'gpu', supported_skills: ['draw', 'echo'] })
    const { body } = await app.as('viewer', 'GET', '/api/v1/workers/catalog')
    expect(body).toEqual({
      draw: { contract: skill, providers_count: 2, worker_types: ['cpu', 'gpu'], average_reputation: 1 },
      echo: { contract: null, providers_count: 1, worker_types: ['gpu'], average_reputation: 1 },
    })
    const dashboard = await app.as('viewer', 'GET', '/api/v1/dashboard')
    expect(dashboard.body).toMatchObject({ workers: { total: 2, idle: 2 }, jobs: { queued: 0 } })
  })

  test('[J-18] a skill may be named like a property of every object', async () => {
    await app.register('w1', { supported_skills: ['__proto__', 'constructor'] })
    const { text } = await app.as('viewer', 'GET', '/api/v1/workers/catalog')
    expect(text).toContain('"constructor":{"contract":null')
    expect(await catalogueOf([])).toEqual([])
  })
})

test('[H-01] [H-05] the dashboard counts the own jobs, and everybody’s for an admin', async () => {
  await app.jobIn('alpha', 'broken', 'quarantined')
  await app.jobIn('alpha', 'ask', 'waiting_for_human')
  await app.jobIn('beta', 'ask', 'waiting_for_human')
  const jobs = async (tenant: 'alpha' | 'beta' | 'viewer' | 'admin') =>
    (await app.as(tenant, 'GET', '/api/v1/dashboard')).body['jobs']
  expect(await jobs('alpha')).toMatchObject({ queued: 0, quarantined: 1, waiting_for_human: 1 })
  expect(await jobs('beta')).toEqual({ queued: 0, waiting_for_human: 1 })
  expect(await jobs('viewer')).toEqual({ queued: 0 })
  expect(await jobs('admin')).toMatchObject({ quarantined: 1, waiting_for_human: 2 })
})

test('[H-01] [A-06] a blueprint is read and drawn by its version', async () => {
  const { body } = await app.as('viewer', 'GET', '/api/v1/blueprints/ask')
  expect(body).toMatchObject({ name: 'ask', version: 1, start: 'wait', endpoint: null, api_version: null })
  for (const path of ['/api/v1/blueprints/none', '/api/v1/blueprints/ask?version=2', '/api/v1/blueprints/none/graph']) {
    expect(await app.as('viewer', 'GET', path)).toMatchObject({ status: 404, body: { code: 'BLUEPRINT_NOT_FOUND' } })
  }
  expect((await app.as('viewer', 'GET', '/api/v1/blueprints/aks')).body['error']).toBe(
    'Blueprint not found. Did you mean "ask"?',
  )
  expect((await app.as('viewer', 'GET', '/api/v1/blueprints/ask?version=zero')).status).toBe(400)
  const svg = await app.as('viewer', 'GET', '/api/v1/blueprints/ask/graph?version=1&format=svg')
  expect(svg.text).toContain('<svg')
})

describe('reload', () => {
  test('[H-02] only an admin reloads, and a removed token stops working at once', async () => {
    const path = '/api/v1/admin/reload-clients'
    for (const tenant of ['viewer', 'alpha'] as const) expect((await app.as(tenant, 'POST', path)).status).toBe(403)
    expect((await app.call('POST', path)).status).toBe(401)
    const file = app.settings.clientsConfigPath ?? ''
    await writeFile(file, `[admin]\ntoken = "${TENANTS.admin}"\nrole = "admin"\n[alpha]\ntoken = "${TENANTS.alpha}"\n`)
    expect((await app.as('beta', 'GET', '/api/v1/jobs')).status).toBe(200)
    expect(await app.as('admin', 'POST', path)).toMatchObject({
      status: 200,
      body: { status: 'client_configs_reloaded', clients: 2 },
    })
    expect((await app.as('beta', 'GET', '/api/v1/jobs')).status).toBe(401)
    expect((await app.as('alpha', 'GET', '/api/v1/jobs')).status).toBe(200)
    expect((await app.as('admin', 'POST', '/api/v1/admin/reload-workers')).body).toMatchObject({
      status: 'worker_configs_reloaded',
    })
  })

  test('[H-02] a broken file is named, and what was in force stays', async () => {
    await writeFile(app.settings.clientsConfigPath ?? '', '[alpha]\nrole = "king"\n')
    const refused = await app.as('admin', 'POST', '/api/v1/admin/reload')
    expect(refused).toMatchObject({ status: 400, body: { error: containing('clients.toml') } })
    expect((await app.as('beta', 'GET', '/api/v1/jobs')).status).toBe(200)
  })
})
