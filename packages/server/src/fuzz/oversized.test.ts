import { blueprint } from '@impresario/core'
import type { Kind, Storage } from '@impresario/core'
import { ERROR_CODES, LIMITS } from '@impresario/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { CLIENT_TOKEN, startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'
import { least, sizedFieldsOf, put } from './oversized.fixture.ts'
import type { SizedField, Reading } from './oversized.fixture.ts'
import type { SchemaNode } from './schema-sampler.fixture.ts'

/*
 * Every field of every body of the API's own document gets something that is larger than anything may be, and then something
 * that is just within what all bodies may have. The first is always refused. Of the second each field has a bound of its own, or
 * stands in the list below with what bounds it.
 */

const HEADERS = { 'x-client-token': CLIENT_TOKEN, 'x-worker-token': WORKER_TOKEN, 'x-worker-id': 'w1' }
/** Smaller than the largest text, map and list of a body, and larger than anything but data. */
const LARGE_BYTES = 200_000

const CODES: ReadonlySet<string> = new Set(ERROR_CODES)

/** Fields that keep as much as a body may have, and what bounds them. Whoever adds one says so here. */
const DATA: Readonly<Record<string, string>> = {
  'POST /api/v1/jobs initial_data (map)': 'MAX_OPEN_JOBS_BYTES_PER_CLIENT',
  'POST /api/v1/jobs metadata (map)': 'MAX_OPEN_JOBS_BYTES_PER_CLIENT',
  'POST /api/v1/jobs/{job_id}/rerun initial_data (map)': 'MAX_OPEN_JOBS_BYTES_PER_CLIENT',
  'POST /api/v1/automations params (map)': 'AUTOMATIONS_BYTES_MAX',
  'PUT /api/v1/automations/{automation_id} params (map)': 'AUTOMATIONS_BYTES_MAX',
  'POST /api/v1/automations/{automation_id}/run params (map)': 'MAX_OPEN_JOBS_BYTES_PER_CLIENT, waitingRunsBytesMax',
  ...ofEndpoint('{endpoint}'),
  ...ofEndpoint('form'),
}

/** The whole body is data, unless it has `initial_data`. */
function ofEndpoint(name: string): Readonly<Record<string, string>> {
  const texts = ['idempotency_key', 'job_id', 'tracing_context.traceparent', 'tracing_context.tracestate']
  const fields = [...texts.map((field) => `${field} (text)`), 'initial_data (map)', 'metadata (map)']
  return Object.fromEntries(fields.map((field) => [`POST /api/v1/${name} ${field}`, 'MAX_OPEN_JOBS_BYTES_PER_CLIENT']))
}

/** Keeps what it began with, and makes no copy of it that would be counted with the next request. */
const form = blueprint('form', { start: 'wait', endpoint: '/form' }, (state) => ({
  wait: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Go on?', transitions: { approved: 'done' } }),
  ),
  done: state.end(),
}))

let app: TestServer
let storage: Storage
let operations: readonly Operation[] = []
let reading: Reading

interface Operation {
  readonly method: string
  readonly path: string
  readonly schema: SchemaNode
}

interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, SchemaNode>> }
}
interface OperationObject {
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema?: SchemaNode }>> }
}

beforeAll(async () => {
  storage = testStorage({ now: () => Date.now() })
  app = await startTestServer({ storage, blueprints: [form], settings: { rateLimitingEnabled: false } })
  const { text } = await app.call('GET', '/_public/openapi.json')
  // The boundary at which our own document is believed.
  const api = JSON.parse(text) as ApiDocument
  operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { requestBody }]) => {
      const schema = requestBody?.content?.['application/json']?.schema
      return schema === undefined ? [] : [{ method: method.toUpperCase(), path, schema }]
    }),
  )
  reading = {
    resolve: (ref) => api.components?.schemas?.[ref.slice(ref.lastIndexOf('/') + 1)] ?? {},
    known: await populate(),
  }
})

afterAll(() => app.server.stop())

async function populate(): Promise<Readonly<Record<string, unknown>>> {
  const automation = { title: 'Ask', pipeline: [{ id: 'ask', approval: { message: 'Go on?' } }] }
  const idOf = async (path: string, body: object): Promise<string> =>
    String((await app.client('POST', `/api/v1/${path}`, body)).body['id'])
  await app.register('w1')
  return {
    ...automation,
    job_id: await app.createJob('form'),
    automation_id: await idOf('automations', automation),
    agent_id: await idOf('agents', { name: 'one', scopes: [] }),
    endpoint_id: await idOf('webhooks/endpoints', { url: 'https://example.com/hook' }),
    definition: automation,
    blueprint: 'form',
    endpoint: 'form',
    topic: 'a.b',
    key: 'k',
    value: 'a value of the tests',
    scopes: [],
    preset: 'github',
    worker_id: 'w1',
    workerId: 'w1',
    seconds: 1,
    url: 'https://example.com/hook',
    calendar: 'holidays',
    hook: 'github',
    secret: 'API_KEY',
    view: 'Failed',
  }
}

function send({ method, path }: Operation, body: unknown): Promise<Answer> {
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => textOf(reading.known[name]))
  return app.call(method, url, { headers: HEADERS, body })
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : 'none'
}

function oversized({ takes }: SizedField): unknown {
  if (takes === 'text') return 'x'.repeat(LIMITS.jsonStringBytesMax + 1)
  const list = Array.from({ length: LIMITS.jsonValuesMax + 1 }, () => 0)
  return takes === 'map' ? { list } : list
}

function large(field: SizedField): unknown {
  if (field.takes === 'text') return 'x'.repeat(LARGE_BYTES)
  const count = Math.floor(LARGE_BYTES / 25)
  if (field.takes === 'list') return Array.from({ length: count }, () => field.item)
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`a_key_of_many_${at}`, at]))
}

const nameOf = ({ method, path }: Operation, field: SizedField): string =>
  `${method} ${path} ${field.path.join('.')} (${field.takes})`

/** The code of a refusal. Some answers to workers are a success of HTTP that says what is wrong. */
function codeOf({ body }: Answer): string | undefined {
  const { code } = body
  return typeof code === 'string' ? code : undefined
}

const KINDS: readonly Kind[] = [
  'job',
  'worker',
  'key',
  'inbox',
  'endpoint',
  'automation',
  'event',
  'audit',
  'condition',
]
const MORE_KINDS: readonly Kind[] = ['calendar', 'hook', 'secret', 'view', 'agent', 'log']

async function storedBytes(): Promise<number> {
  let bytes = 0
  for (const kind of [...KINDS, ...MORE_KINDS]) {
    for (const { value } of await storage.list(kind, { limit: 10_000 })) bytes += JSON.stringify(value).length
  }
  return bytes
}

test('[C-10] what is larger than anything may be is refused in every field, with a code, and nothing of it is kept', async () => {
  expect(operations.length).toBeGreaterThan(30)
  const before = await storedBytes()
  const findings: string[] = []
  let sent = 0
  for (const operation of operations) {
    for (const field of sizedFieldsOf(operation.schema, reading)) {
      const answer = await send(operation, put(least(operation.schema, reading), field.path, oversized(field)))
      const isRefused = answer.status >= 400 && answer.status < 500 && CODES.has(codeOf(answer) ?? '')
      if (!isRefused) findings.push(`${nameOf(operation, field)}: ${answer.status} ${answer.text.slice(0, 100)}`)
      sent += 1
    }
  }
  expect(findings).toEqual([])
  expect(sent).toBeGreaterThan(200)
  expect((await storedBytes()) - before).toBeLessThan(LARGE_BYTES / 10)
}, 300_000)

test('[C-10] of what is merely large, only data is kept', async () => {
  const kept: string[] = []
  let before = await storedBytes()
  for (const operation of operations) {
    for (const field of sizedFieldsOf(operation.schema, reading)) {
      const answer = await send(operation, put(least(operation.schema, reading), field.path, large(field)))
      const name = nameOf(operation, field)
      expect({ name, isOurs: answer.status >= 500 }).toEqual({ name, isOurs: false })
      const after = await storedBytes()
      if (after - before > LARGE_BYTES / 4) kept.push(name)
      before = after
    }
  }
  expect(kept.toSorted()).toEqual(Object.keys(DATA).toSorted())
}, 300_000)
