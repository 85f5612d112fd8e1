import type { RouteShorthandOptions } from 'fastify'
import { ERROR_CODES, JOB_STATUSES, WORKER_STATUSES } from '@impresario/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { guardRoutes } from '../http/access.ts'
import type { ApiDocument } from './api-document.ts'
import { createHttp } from '../http/http.ts'
import { SILENT } from '../runtime/log.ts'
import { startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly security: readonly object[]
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly description?: string }[]
  readonly requestBody?: unknown
  readonly responses: Readonly<Record<string, { readonly description: string }>>
  readonly 'x-access': string
}

let app: TenantServer
let document: ApiDocument
let operations: readonly (readonly [string, Operation])[] = []

beforeAll(async () => {
  app = await startTenantServer()
  const { text } = await app.call('GET', '/_public/openapi.json')
  document = JSON.parse(text) as ApiDocument
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, said]) => [`${method.toUpperCase()} ${path}`, said as unknown as Operation]),
  )
})
afterAll(() => app.close())

const WHO: ReadonlySet<string> = new Set(['public', 'worker', 'capability', 'viewer', 'client', 'admin'])

/** What a reader would miss. */
function problemsOf(name: string, operation: Operation): readonly string[] {
  const { summary, tags, security, responses, parameters = [], 'x-access': access } = operation
  const inPath = (name.match(/\{\w+\}/g) ?? []).map((part) => part.slice(1, -1))
  const described = parameters.filter((one) => one.in === 'path').map((one) => one.name)
  const checks: readonly (readonly [string, boolean])[] = [
    ['summary', /^\S.*[^.]$/.test(summary)],
    ['tag', tags.length === 1],
    ['access', WHO.has(access)],
    ['security', (security.length === 0) === (access === 'public')],
    ['answers', Object.values(responses).every(({ description }) => description !== 'Default Response')],
    ['parameters of its path', described.join(',') === inPath.join(',')],
    ['descriptions of its parameters', parameters.every(({ description }) => description !== undefined)],
  ]
  return checks.filter(([, holds]) => !holds).map(([what]) => `${name}: ${what}`)
}

describe('the document', () => {
  test('[H-01] it is OpenAPI 3.1, and has every route of the server', async () => {
    expect(document.openapi).toBe('3.1.0')
    const declared = new Set<string>()
    const hidden: string[] = []
    for (const { method, url, isAlias, isHidden } of await app.server.routes()) {
      // It is what GET is, without the body.
      if (method === 'HEAD') continue
      const path = url.replace(/\*$/, '{endpoint}').replaceAll(/:(?<name>\w+)/g, '{$<name>}')
      if (isHidden) hidden.push(path)
      else declared.add(`${method} ${isAlias ? path.replace(/^\/api/, '/api/v1') : path}`)
    }
    // Pages for people, the protocol of assistants, which describes itself, and the old interface, which has a page.
    const isApart =
      /^\/(tasks|runs|events|agents|health|tools|extensions|_public\/docs|dashboard|mcp|\.well-known\/oauth-protected-resource)(\/|$)/
    expect(hidden.filter((path) => !isApart.test(path))).toEqual([])
    const own = ['POST /api/v1/echo', 'POST /api/v2/echo']
    expect(operations.map(([name]) => name).toSorted()).toEqual([...declared, ...own].toSorted())
  })

  test('[H-01] every operation says who may call it, what it does and what it answers', () => {
    const ids = operations.map(([, { operationId }]) => operationId)
    expect(new Set(ids).size).toBe(ids.length)
    expect(operations.flatMap(([name, operation]) => problemsOf(name, operation))).toEqual([])
  })

  test('[H-01] every problem code is there with its meaning, and answers refer to one shape', () => {
    const info = document['info'] as { readonly description: string }
    for (const code of ERROR_CODES) expect(info.description).toContain(`\`${code}\``)
    const { schemas } = document['components'] as { readonly schemas: Readonly<Record<string, unknown>> }
    expect(schemas['Problem']).toMatchObject({ properties: { code: { enum: ERROR_CODES } } })
  })

  test('[H-01] what is answered has a name, every reference leads somewhere, and nothing that has a name is written out', () => {
    const { schemas } = document['components'] as { readonly schemas: Readonly<Record<string, object>> }
    const text = JSON.stringify(document)
    const used = new Set(
      [...text.matchAll(/"\$ref":"#\/components\/schemas\/(?<name>\w+)"/g)].map((one) => one.groups?.['name']),
    )
    expect(text).not.toMatch(/"\$ref":"(?!#\/components\/schemas\/)/)
    expect([...used].filter((name) => !(String(name) in schemas))).toEqual([])
    expect(Object.keys(schemas).filter((name) => !used.has(name))).toEqual([])
    const bodyOf = (name: string): unknown => {
      const responses = operations.find(([one]) => one === name)?.[1].responses as unknown as Record<
        string,
        { content?: Record<string, { schema?: unknown }> }
      >
      return responses['200']?.content?.['application/json']?.schema
    }
    expect(bodyOf('GET /api/v1/jobs/{job_id}')).toMatchObject({ $ref: '#/components/schemas/Job' })
    expect(bodyOf('GET /api/v1/jobs')).toMatchObject({
      type: 'array',
      items: { $ref: '#/components/schemas/ListedJob' },
    })
    expect(bodyOf('GET /api/v1/workers')).toMatchObject({ items: { $ref: '#/components/schemas/Worker' } })
    expect(bodyOf('GET /api/v1/webhooks/deliveries')).toMatchObject({
      items: { $ref: '#/components/schemas/Delivery' },
    })
  })

  test('[H-01] it names the server and the statuses that there are', () => {
    expect(document['servers']).toMatchObject([{ url: '/' }])
    const { schemas } = document['components'] as { readonly schemas: Readonly<Record<string, unknown>> }
    expect(schemas['Job']).toMatchObject({ properties: { status: { enum: JOB_STATUSES } } })
    expect(schemas['Worker']).toMatchObject({ properties: { status: { enum: WORKER_STATUSES } } })
  })

  test('[H-01] bodies are there, as they are checked', () => {
    const create = operations.find(([name]) => name === 'POST /api/v1/jobs')?.[1]
    expect(create?.requestBody).toMatchObject({
      content: { 'application/json': { schema: { $ref: '#/components/schemas/CreateJobRequest' } } },
    })
    const list = operations.find(([name]) => name === 'GET /api/v1/jobs')?.[1]
    expect(list?.parameters?.map(({ name }) => name)).toEqual([
      'status',
      'blueprint',
      'created_after',
      'created_before',
      'q',
      'order',
      'fields',
      'limit',
      'cursor',
      'owner',
      'offset',
    ])
  })
})

describe('the page', () => {
  test('[H-01] it comes with everything that it needs from here, under a strict policy', async () => {
    const page = await app.call('GET', '/_public/docs')
    expect(page.status).toBe(200)
    expect(page.text).toContain('name="viewport"')
    expect(page.text).not.toMatch(/(?:src|href)="https?:/)
    expect(page.text).not.toMatch(/<script(?![^>]* src=)/)
    expect(page.headers.get('content-security-policy')).toContain(
      "default-src 'none'; script-src 'self'; style-src 'self'",
    )
    const parts = [...page.text.matchAll(/(?:src|href)="(?<path>[^"]+)"/g)].map((found) => found.groups?.['path'] ?? '')
    expect(parts.length).toBeGreaterThan(5)
    for (const path of parts) {
      const { pathname } = new URL(path, 'http://here/_public/docs')
      expect(await app.call('GET', pathname)).toMatchObject({ status: 200 })
    }
    const shown = await app.call('GET', '/_public/docs/json')
    expect(shown.body).toEqual(document)
  })

  test('[M-02] [M-07] it follows the language of the browser', async () => {
    const page = await app.call('GET', '/_public/docs', { headers: { 'accept-language': 'es-ES, en;q=0.5' } })
    expect(page.text).toContain('<html lang="es">')
    expect(page.text).toContain('Documento OpenAPI')
    expect(page.headers.get('vary')).toContain('Accept-Language')
  })
})

describe('[H-01] a route that does not say enough stops the start', () => {
  test.each<readonly [RouteShorthandOptions, string]>([
    [{}, 'config.access and no schema.summary'],
    [{ schema: { summary: 'Something' } }, 'config.access'],
    [{ config: { access: 'viewer' } }, 'config.scope and no schema.summary'],
    [{ config: { access: 'viewer', scope: 'any' } }, 'schema.summary'],
    [{ config: { access: 'admin' }, schema: { summary: 'Something' } }, 'config.scope'],
  ])('%j', async (options, missing) => {
    const http = createHttp({ bodyLimitBytes: 1_000, log: SILENT })
    guardRoutes(http, { authenticate: () => ({ client: { id: 'a' }, role: 'client' }) })
    http.get('/thing', options, async () => 'thing')
    await expect(async () => http.ready()).rejects.toThrow(`The route GET /thing has no ${missing}.`)
  })
})
