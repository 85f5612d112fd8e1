import { request as httpRequest } from 'node:http'
import { LIMITS } from '@impresario/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createHttp } from './http.ts'
import { SILENT } from '../runtime/log.ts'
import { startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

let app: TenantServer

beforeAll(async () => {
  app = await startTenantServer()
})
afterAll(() => app.close())

describe('[H-01] where there is nothing, or not by this method', () => {
  test.each([
    ['GET', '/nothing'],
    ['GET', '/api/v1/nothing'],
    ['POST', '/api/v1/nothing'],
    ['POST', '/_public/nothing'],
    ['GET', '/api/v9/jobs'],
  ])('%s %s is not found', async (method, path) => {
    expect(await app.as('alpha', method, path)).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
  })

  test.each([
    ['DELETE', '/api/v1/jobs', 'GET, POST'],
    ['POST', '/api/v1/jobs/some-id', 'GET'],
    ['POST', '/api/jobs/some-id/history', 'GET'],
    ['GET', '/api/v1/jobs/some-id/cancel', 'POST'],
    ['PUT', '/_public/status', 'GET'],
    ['HEAD', '/_public/status', 'GET'],
    ['GET', '/_worker/tasks/result', 'POST'],
  ])('%s %s is possible with %s only', async (method, path, allowed) => {
    const answer = await app.as('alpha', method, path)
    expect(answer.status).toBe(405)
    const found = (answer.headers.get('allow') ?? '').split(', ').toSorted().join(', ')
    expect(found).toBe(allowed)
  })
})

describe('bodies', () => {
  test.each([
    ['{', 'INVALID_JSON'],
    ['nonsense', 'INVALID_JSON'],
    ['{"blueprint":"ask",}', 'INVALID_JSON'],
    ['{"__proto__":{"a":1},"blueprint":"ask"}', 'INVALID_JSON'],
    ['[]', 'INVALID_REQUEST'],
    ['null', 'INVALID_REQUEST'],
    ['{"blueprint":5}', 'INVALID_REQUEST'],
  ])('[H-01] %s is refused as %s', async (body, code) => {
    expect(await app.as('alpha', 'POST', '/api/v1/jobs', body)).toMatchObject({ status: 400, body: { code } })
  })

  test.each(['text/plain', 'application/xml', 'multipart/form-data; boundary=x', 'application/x-www-form-urlencoded'])(
    '[H-01] a body of type %s is not read',
    async (type) => {
      const answer = await app.as('alpha', 'POST', '/api/v1/jobs', '{"blueprint":"ask"}', { 'content-type': type })
      expect(answer).toMatchObject({ status: 415, body: { code: 'UNSUPPORTED_MEDIA' } })
    },
  )

  test('[H-01] a body that is too large is refused before it is read', async () => {
    const answer = await app.as('alpha', 'POST', '/api/v1/jobs', `{"a":"${'x'.repeat(1_100_000)}"}`)
    expect(answer).toMatchObject({ status: 413, body: { code: 'BODY_TOO_LARGE' } })
  })

  test('[H-03] who is unknown is refused before the body is read', async () => {
    expect((await app.call('POST', '/api/v1/jobs', { body: '{' })).status).toBe(401)
  })
})

describe('refusals', () => {
  test('[H-01] every refusal has one shape, and comes as a problem for those who ask', async () => {
    const path = '/api/v1/jobs/none'
    const { body, headers } = await app.as('alpha', 'GET', path)
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(body).toEqual({
      error: 'Job not found',
      code: 'JOB_NOT_FOUND',
      type: 'urn:impresario:error:JOB_NOT_FOUND',
      title: 'Job not found',
      status: 404,
      detail: 'Job not found',
    })
    const problem = await app.as('alpha', 'GET', path, undefined, { accept: 'application/problem+json' })
    expect(problem.headers.get('content-type')).toContain('application/problem+json')
  })

  test('[H-08] no refusal shows where it came from', async () => {
    const hostile = ['/api/v1/jobs/%00', '/api/v1/jobs/%ff', '/api/v1/jobs/..%2f..%2fetc', '/api/v1/jobs?cursor=%00']
    for (const path of [...hostile, '/_public/docs/static/..%2f..%2fpackage.json', '/_public/docs/static/none.js']) {
      const { status, text } = await raw(path)
      expect([400, 404]).toContain(status)
      expect(text).not.toMatch(/\.ts|node_modules|\bat .*:\d+|\/work\//)
    }
  })
})

/** As it is written: no client of ours corrects the path. */
function raw(path: string): Promise<{ readonly status: number; readonly text: string }> {
  const { hostname, port } = new URL(app.address)
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      { hostname, port, path, headers: { 'x-client-token': 'token-of-alpha-4d1f' } },
      (answer) => {
        let text = ''
        answer.on('data', (chunk: Buffer) => {
          text += chunk.toString()
        })
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
      },
    )
    sent.on('error', reject)
    sent.end()
  })
}

test('[H-01] [H-08] who is late with its head or its body is looked for often enough for the bounds to hold', async () => {
  const http = createHttp({ bodyLimitBytes: 1_000, log: SILENT })
  const { headersTimeout } = http.server
  expect(headersTimeout).toBe(LIMITS.headersTimeoutMs)
  expect(Reflect.get(http.server, 'connectionsCheckingInterval')).toBeLessThanOrEqual(headersTimeout / 2)
  await http.close()
})
