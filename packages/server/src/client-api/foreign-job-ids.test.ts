import { afterAll, beforeAll, expect, test } from 'vitest'
import { listIn, startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'
import type { Answer } from '../server.fixture.ts'

let app: TenantServer
beforeAll(async () => {
  app = await startTenantServer()
})
afterAll(() => app.close())

let made = 0
/** A UUIDv7 of this moment. */
function newId(): string {
  made += 1
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7abc-8def-${made.toString(16).padStart(12, '0')}`
}

const REQUEST = { blueprint: 'ask', initial_data: { a: 1 } }

/** An answer without what belongs to its moment. */
function shapeOf({ status, text }: Answer, id: string): unknown {
  const plain = text
    .replaceAll(id, '(id)')
    .replaceAll(/"(?<key>[a-z_]+_at|at|owner|timestamp)":(?:[\d.]+|"[a-z]+")/g, '"$<key>":0')
  return [status, plain.replaceAll(/capability=[\w.-]+/g, 'capability=x')]
}

test('[H-08] an id that another client has gives the same answers as a new one, and a job of its own', async () => {
  const taken = newId()
  await app.as('alpha', 'POST', '/api/v1/jobs', { ...REQUEST, job_id: taken, initial_data: { secret: 'of alpha' } })
  const fresh = newId()
  const paths = (id: string): readonly (readonly [string, string, unknown?])[] => [
    ['POST', '/api/v1/jobs', { ...REQUEST, job_id: id }],
    ['POST', '/api/v1/jobs', { ...REQUEST, job_id: id }],
    ['POST', '/api/v1/jobs', { ...REQUEST, job_id: id, initial_data: { a: 2 } }],
    ['POST', '/api/v1/jobs/batch', { jobs: [{ ...REQUEST, job_id: id }] }],
    ['GET', `/api/v1/jobs/${id}?wait=20&version=1`],
    ['GET', `/api/v1/jobs/${id}`],
    ['GET', `/api/v1/jobs/${id}/explain`],
    ['GET', `/api/v1/quarantine/${id}`],
    ['POST', `/api/v1/jobs/${id}/retry`],
    ['POST', `/_public/webhooks/approval/${id}`, { decision: 'nonsense' }],
    ['POST', `/api/v1/jobs/${id}/cancel`],
    ['POST', `/api/v1/jobs/${id}/retry`],
    ['GET', `/api/v1/jobs/${id}`],
  ]
  const answers = async (id: string): Promise<readonly unknown[]> => {
    const shapes: unknown[] = []
    for (const [method, path, body] of paths(id)) shapes.push(shapeOf(await app.as('beta', method, path, body), id))
    return shapes
  }
  const found = await answers(taken)
  const expected = await answers(fresh)
  expect(found).toEqual(expected)
  expect(found[0]).toEqual([202, '{"status":"accepted","job_id":"(id)"}'])

  const own = await app.as('alpha', 'GET', `/api/v1/jobs/${taken}`)
  expect(own.body).toMatchObject({
    id: taken,
    owner: 'alpha',
    status: 'waiting_for_human',
    initial_data: { secret: 'of alpha' },
  })
  const listed = listIn(await app.as('beta', 'GET', '/api/v1/jobs?fields=id,owner'))
  expect(listed.filter(({ id }) => id === taken)).toEqual([{ id: taken, owner: 'beta' }])
  expect((await app.as('viewer', 'GET', `/api/v1/jobs/${taken}`)).status).toBe(404)
})
