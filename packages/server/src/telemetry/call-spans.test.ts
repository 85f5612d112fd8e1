import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer as createReceiver } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blueprint } from '@impresario/core'
import { expect, onTestFinished, test } from 'vitest'
import { attributesIn, Collector } from '../../../../test/servers/collector.ts'
import type { OtlpSpan } from '../../../../test/servers/collector.ts'
import { connectClient } from '../mcp/mcp-client.fixture.ts'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import type { Settings } from '../config/config.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'
const traceparent = `00-${TRACE}-${CALLER}-01`

const quick = blueprint('quick', { start: 'begin' }, (state) => ({
  begin: state.handler((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

/** An MCP server of others with one tool, which says what it was told of the trace. */
const OUTSIDE = `
process.stdin.on('data', (piece) => {
  for (const line of String(piece).split('\\n').filter(Boolean)) {
    const { id, method, params } = JSON.parse(line)
    const say = (result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
    if (method === 'initialize') say({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'small', version: '1' } })
    else if (method === 'tools/list') say({ tools: [{ name: 'told', description: 'Says.', inputSchema: { type: 'object' } }] })
    else if (method === 'tools/call') say({ content: [], structuredContent: { traceparent: params._meta?.traceparent ?? null } })
    else if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'No.' } }) + '\\n')
  }
})
`

async function start(
  settings: Partial<Settings> = {},
): Promise<{ readonly app: TestServer; readonly collector: Collector }> {
  const collector = await new Collector().listen()
  const app = await startTestServer({
    blueprints: [quick],
    settings: { otelTracesEndpoint: collector.url, otelTraceDelayMs: 10, ...settings },
  })
  onTestFinished(() => app.server.stop())
  return { app, collector }
}

test('[I-04] a request has a span between its caller and the job that it starts', async () => {
  const { app, collector } = await start()
  const named = (name: string, index = 0): Promise<OtlpSpan> => collector.until(() => collector.named(name)[index])
  await app.client('POST', '/api/v1/jobs', { blueprint: 'quick' }, { traceparent })
  const request = await named('POST /api/v1/jobs')
  const job = await named('Job:quick')
  expect(request).toMatchObject({ traceId: TRACE, parentSpanId: CALLER, kind: 2, status: { code: 1 } })
  expect(attributesIn(request.attributes)).toMatchObject({
    'http.route': '/api/v1/jobs',
    'http.response.status_code': 202,
  })
  expect([job.traceId, job.parentSpanId]).toEqual([TRACE, request.spanId])

  // The SDK names the trace in the body.
  await app.client('POST', '/api/v1/jobs', { blueprint: 'quick', tracing_context: { traceparent } })
  const [second, its] = [await named('POST /api/v1/jobs', 1), await named('Job:quick', 1)]
  expect([second.traceId, second.parentSpanId, its.parentSpanId]).toEqual([TRACE, CALLER, second.spanId])

  // Without a trace, one begins with a request that changes something, and not with one that reads.
  await app.client('GET', '/api/v1/jobs')
  await app.client('POST', '/api/v1/jobs', { blueprint: 'quick' })
  const [third, new_] = [await named('POST /api/v1/jobs', 2), await named('Job:quick', 2)]
  expect(third.traceId).not.toBe(TRACE)
  expect(third.parentSpanId).toBeUndefined()
  expect([new_.traceId, new_.parentSpanId]).toEqual([third.traceId, third.spanId])
  expect(collector.named('GET /api/v1/jobs')).toEqual([])

  // What the caller does not record is not recorded, and stays as it is.
  const off = traceparent.replace(/01$/, '00')
  const { body } = await app.client('POST', '/api/v1/jobs', { blueprint: 'quick' }, { traceparent: off })
  await app.ended(body.job_id ?? '')
  await app.client('GET', '/api/v1/jobs', undefined, { traceparent })
  await named('GET /api/v1/jobs')
  expect(collector.named('POST /api/v1/jobs')).toHaveLength(3)
})

test('[I-04] [K-12] a message of an assistant has a span, and what its tool does belongs to it', async () => {
  const { app, collector } = await start()
  const client = await connectClient(app, '2026-07-28')
  onTestFinished(() => client.close())
  await client.callTool({ name: 'start_job', arguments: { blueprint: 'quick' }, _meta: { traceparent } })
  const message = await collector.until(() => collector.named('tools/call start_job')[0])
  const request = await collector.until(() => collector.named('POST /api/v1/jobs')[0])
  const job = await collector.until(() => collector.named('Job:quick')[0])
  expect([message.traceId, message.parentSpanId]).toEqual([TRACE, CALLER])
  expect(attributesIn(message.attributes)).toEqual({
    'mcp.method.name': 'tools/call',
    'gen_ai.tool.name': 'start_job',
  })
  expect(request.parentSpanId).toBe(message.spanId)
  expect([job.traceId, job.parentSpanId]).toEqual([TRACE, request.spanId])
})

test('[I-04] [K-10] a tool of a pipeline has a span, and those whom it asks are told of it', async () => {
  const told: (string | undefined)[] = []
  const receiver = createReceiver((request, reply) => {
    told.push(String(request.headers['traceparent']))
    reply.end('{}')
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  onTestFinished(() => {
    receiver.close()
  })
  const { port } = receiver.address() as AddressInfo
  const path = join(mkdtempSync(join(tmpdir(), 'impresario-spans-')), 'servers.json')
  const small = { command: process.execPath, args: ['-e', OUTSIDE] }
  writeFileSync(path, JSON.stringify({ mcpServers: { small } }))
  const { app, collector } = await start({
    mcpServersConfigPath: path,
    webhookAllowHttp: true,
    webhookAllowPrivate: true,
    webhookAllowedPorts: String(port),
  })
  await expect.poll(async () => (await app.client('GET', '/api/v1/tools')).text).toContain('mcp.small.told')
  const pipeline = [
    { id: 'get', uses: 'http.request', with: { url: `http://127.0.0.1:${port}/` } },
    { id: 'ask', uses: 'mcp.small.told' },
    { id: 'bad', uses: 'http.request', with: { url: 'http://127.0.0.1:1/' }, retry: { max_attempts: 1 } },
  ]
  const { body: made } = await app.client('POST', '/api/v1/automations', { title: 'Ask', pipeline })
  const runPath = `/api/v1/automations/${String(made['id'])}/run`
  const { body: run } = await app.client('POST', runPath, {}, { traceparent })
  await app.ended(String(run['run_id']))
  const bad = await collector.until(() => collector.named('Tool:http.request')[1])
  const [get] = collector.named('Tool:http.request')
  const [ask] = collector.named('Tool:mcp.small.told')
  const automation = await collector.until(() => collector.named('Automation')[0])
  const seen = (span: OtlpSpan | undefined): string => `00-${String(span?.traceId)}-${String(span?.spanId)}-01`
  expect(told).toEqual([seen(get)])
  const { body } = await app.client('GET', `/api/v1/runs/${String(run['run_id'])}`)
  expect(body).toMatchObject({ steps: [{}, { output: { traceparent: seen(ask) } }, { status: 'failed' }] })
  expect([get?.status.code, ask?.status.code, bad.status.code]).toEqual([1, 1, 2])
  const tries = ['Task:tool:http.request', 'Task:tool:mcp.small.told'].flatMap((name) => collector.named(name))
  expect(tries.map(({ spanId }) => spanId)).toEqual(expect.arrayContaining([get?.parentSpanId, ask?.parentSpanId]))
  expect(new Set([get, ask, bad].map((span) => span?.traceId))).toEqual(new Set([automation.traceId]))
  const request = collector.spans.find(({ parentSpanId }) => parentSpanId === CALLER)
  expect([automation.traceId, automation.parentSpanId]).toEqual([TRACE, request?.spanId])

  // What the caller does not record is not recorded here, and those whom the tools ask are told so.
  const off = traceparent.replace(/01$/, '00')
  const { body: quiet } = await app.client('POST', runPath, {}, { traceparent: off })
  await app.ended(String(quiet['run_id']))
  expect(told).toEqual([seen(get), off])
})
