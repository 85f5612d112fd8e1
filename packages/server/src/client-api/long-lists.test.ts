import { LIMITS } from '@impresario/protocol'
import { createClient } from '@impresario/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Answer } from '../server.fixture.ts'
import { listIn, startTenantServer, TENANTS } from '../tenants.fixture.ts'
import type { Tenant, TenantServer } from '../tenants.fixture.ts'

const LONG = 'x'.repeat(250_000)
const DATA = { a: LONG, b: LONG, c: LONG }
const JOBS = 12

let app: TenantServer
let waiting: readonly string[]
let broken: readonly string[]

beforeAll(async () => {
  app = await startTenantServer()
  const made = async (tenant: Tenant, name: string, status: string): Promise<readonly string[]> => {
    const ids: string[] = []
    for (let index = 0; index < JOBS; index += 1) {
      ids.unshift(await app.jobIn(tenant, name, status, { initial_data: DATA, metadata: { city: 'Paris' } }))
    }
    return ids
  }
  waiting = await made('alpha', 'ask', 'waiting_for_human')
  broken = await made('beta', 'broken', 'quarantined')
})
afterAll(() => app.close())

async function pages(tenant: Tenant, path: string): Promise<readonly Answer[]> {
  const found: Answer[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const answer = await app.as(tenant, 'GET', `${path}${cursor === '' ? '' : `&cursor=${cursor}`}`)
    expect(answer.status).toBe(200)
    found.push(answer)
    cursor = answer.headers.get('x-next-cursor')
  }
  return found
}

const idsIn = (found: readonly Answer[]): readonly unknown[] => found.flatMap(listIn).map((job) => job['id'])

function lastIdOf(answer: Answer | undefined): unknown {
  return answer === undefined ? undefined : listIn(answer).at(-1)?.['id']
}

describe('[C-10] a list of long jobs', () => {
  test('leaves out what is long, names it, and is short', async () => {
    const found = await pages('alpha', '/api/v1/jobs?limit=100')
    expect(idsIn(found)).toEqual(waiting)
    for (const { text } of found) expect(text.length).toBeLessThan(100_000)
    const [first] = found.flatMap(listIn)
    expect(first).toMatchObject({ omitted_fields: ['initial_data'], metadata: { city: 'Paris' }, owner: 'alpha' })
    expect(first).not.toHaveProperty('initial_data')
    const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${waiting[0]}`)
    expect(body['initial_data']).toEqual(DATA)
    expect(body).not.toHaveProperty('omitted_fields')
  })

  test('[M-02] has what is asked for by name, on pages of a bounded length', async () => {
    const found = await pages('alpha', '/api/v1/jobs?limit=100&fields=id,initial_data')
    expect(idsIn(found)).toEqual(waiting)
    expect(found.length).toBeGreaterThan(2)
    for (const answer of found) {
      expect(answer.text.length).toBeLessThan(LIMITS.pageBytesMax + 1_000_000)
      for (const job of listIn(answer)) expect(job['initial_data']).toEqual(DATA)
    }
    // A page that ended early says how far it looked; the last one has looked through everything.
    expect(found.at(-1)?.headers.get('x-looked-back-to')).toBeNull()
    const [first] = found
    const { created_at: oldest } = (await app.as('alpha', 'GET', `/api/v1/jobs/${String(lastIdOf(first))}`)).body
    expect(Number(first?.headers.get('x-looked-back-to'))).toBeCloseTo(Number(oldest), 1)
    const full = await app.as('alpha', 'GET', '/api/v1/jobs?limit=2&fields=id')
    expect(full.headers.get('x-next-cursor')).not.toBeNull()
    expect(full.headers.get('x-looked-back-to')).toBeNull()
  })

  test('is the same with an offset, a search and a limit', async () => {
    expect(idsIn(await pages('alpha', '/api/v1/jobs?limit=5&fields=id'))).toEqual(waiting)
    expect(idsIn(await pages('alpha', '/api/v1/jobs?q=paris&fields=id'))).toEqual(waiting)
    expect(idsIn(await pages('alpha', '/api/v1/jobs?blueprint=ask&status=waiting_for_human,failed'))).toEqual(waiting)
    const skipped = await app.as('alpha', 'GET', '/api/v1/jobs?limit=3&offset=7')
    expect(idsIn([skipped])).toEqual(waiting.slice(7, 10))
    expect(skipped.headers.get('link')).toContain('rel="next"')
  })

  test('in quarantine goes the same way, with and without a filter', async () => {
    expect(idsIn(await pages('beta', '/api/v1/quarantine?limit=100'))).toEqual(broken)
    const found = await pages('beta', '/api/v1/quarantine?error_code=HANDLER_FAILED')
    expect(idsIn(found)).toEqual(broken)
    expect(found.flatMap(listIn)[0]).toMatchObject({ omitted_fields: ['initial_data'], error: { state: 'fall' } })
    const asked = await pages('beta', '/api/v1/quarantine?fields=id,initial_data,quarantined_at')
    expect(idsIn(asked)).toEqual(broken)
    for (const { text } of asked) expect(text.length).toBeLessThan(LIMITS.pageBytesMax + 1_000_000)
    expect((await app.as('beta', 'GET', '/api/v1/quarantine?fields=nonsense')).status).toBe(400)
  })

  test('is followed to its end by the client SDK', async () => {
    const client = createClient({ url: app.address, token: TENANTS.alpha })
    const listed = await client.list().all()
    expect(listed.map(({ id }) => id)).toEqual(waiting)
    expect(listed[0]?.omittedFields).toEqual(['initialData'])
    const whole = await client.list({ fields: ['id', 'initialData'] }).all()
    expect(whole.map(({ id }) => id)).toEqual(waiting)
    expect(whole.at(-1)?.initialData).toEqual(DATA)
  })

  test('can be retried and discarded in bulk by a filter', async () => {
    const { body } = await app.as('beta', 'POST', '/api/v1/quarantine/discard', { filter: {} })
    expect(body).toMatchObject({ has_more: false })
    expect(body['results']).toHaveLength(JOBS)
  })
})

test('[C-10] fields at the bound stay, one byte more goes', async () => {
  const sized = (bytes: number): object => ({ t: 'x'.repeat(bytes - '{"t":""}'.length) })
  const bound = LIMITS.listedFieldBytesMax
  const [at, beyond] = [sized(bound), sized(bound + 1)]
  for (const [data, omitted] of [
    [at, undefined],
    [beyond, ['metadata']],
  ] as const) {
    const { body } = await app.as('admin', 'POST', '/api/v1/jobs', { blueprint: 'ask', metadata: data })
    const [listed] = listIn(await app.as('admin', 'GET', '/api/v1/jobs?limit=1'))
    expect(listed).toMatchObject({ id: body.job_id })
    expect(listed?.['omitted_fields']).toEqual(omitted)
    expect(listed?.['metadata']).toEqual(omitted === undefined ? data : undefined)
  }
})

test('[C-10] the list of workers and of their skills goes on on the next page', async () => {
  const info = (skill: string): object => ({ name: skill, description: 'd'.repeat(1_000) })
  for (let index = 0; index < 60; index += 1) {
    const skills = Array.from({ length: 90 }, (_, number) => `skill ${index} ${number}`)
    const body = { supported_skills: skills.map(info), resources: { max_concurrent_tasks: 1 } }
    expect((await app.register(`w${String(index).padStart(2, '0')}`, body)).status).toBe(200)
  }
  const few = await pages('viewer', '/api/v1/workers?limit=25')
  expect(few.map((answer) => listIn(answer).length)).toEqual([25, 25, 10])
  const ids = few.flatMap(listIn).map((worker) => String(worker['worker_id']))
  expect(ids).toEqual(ids.toSorted())
  expect(new Set(ids).size).toBe(60)
  const catalogue = await pages('viewer', '/api/v1/workers/catalog?')
  expect(catalogue.length).toBeGreaterThan(1)
  for (const { text } of catalogue) expect(text.length).toBeLessThanOrEqual(LIMITS.pageBytesMax + 2)
  const client = createClient({ url: app.address, token: TENANTS.viewer })
  expect(await client.workers()).toHaveLength(60)
  expect(Object.keys(await client.catalogue())).toHaveLength(60 * 90)
  expect((await app.as('viewer', 'GET', '/api/v1/workers?cursor=nonsense')).status).toBe(400)
})
