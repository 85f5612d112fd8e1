import { blueprint, child } from '@impresario/core'
import type { CallToolResult } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { CLIENT_TOKEN, startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import { startTenantServer, TENANTS } from '../tenants.fixture.ts'
import { connectClient, rawMcp, taskCall } from './mcp-client.fixture.ts'

const double = blueprint(
  'double',
  { input: z.object({ number: z.number() }).describe('Doubles a number.'), start: 'count' },
  (state) => ({
    count: state.handler((_context, actions) => actions.transitionTo('done')),
    done: state.end({ result: ({ initialData }) => ({ twice: initialData.number * 2 }) }),
  }),
)

const deploy = blueprint('deploy', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Deploy?', transitions: { approved: 'done', rejected: 'failed' } }),
  ),
  done: state.end({ result: () => ({ deployed: true }) }),
  failed: state.end({ outcome: 'failed' }),
}))

const both = blueprint('both', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.dispatchParallel([child(deploy, {}), child(deploy, {})], { into: 'gather' }),
  ),
  gather: state.aggregator((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

const panic = blueprint('panic', { start: 'panic', handlerAttemptsMax: 1 }, (state) => ({
  panic: state.handler(({ jobId }, actions) => {
    if (jobId !== '') throw new Error('It broke.')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

let server: TestServer

async function start(): Promise<TestServer> {
  server = await startTestServer({ blueprints: [double, deploy, both, panic] })
  return server
}

afterEach(() => server.server.stop())

function structured(result: CallToolResult): Readonly<Record<string, unknown>> {
  return (result.structuredContent ?? {}) as Readonly<Record<string, unknown>>
}

describe.each(['2025-11-25', '2026-07-28'] as const)('MCP over HTTP, revision %s', (revision) => {
  test('[K-12] an assistant starts a job, waits for it, and passes a decision on', async () => {
    const client = await connectClient(await start(), revision)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['search', 'fetch', 'start_job', 'double']))
    const started = await client.callTool({ name: 'start_job', arguments: { blueprint: 'deploy' } })
    const id = String(structured(started)['job_id'])
    const waited = await client.callTool({ name: 'wait_job', arguments: { job_id: id } })
    expect(structured(waited)).toMatchObject({ job_id: id, status: 'waiting_for_human', is_ended: false })
    const decided = await client.callTool({ name: 'decide_approval', arguments: { job_id: id, decision: 'approved' } })
    expect(decided.isError).toBeUndefined()
    const ended = await client.callTool({ name: 'wait_job', arguments: { job_id: id } })
    expect(structured(ended)).toMatchObject({ status: 'finished', is_ended: true })
    await client.close()
  })

  test('[K-12] a blueprint is a tool: its input is described, its result is the answer, its failure is one too', async () => {
    const client = await connectClient(await start(), revision)
    const { tools } = await client.listTools()
    const tool = tools.find(({ name }) => name === 'double')
    expect(tool?.description).toContain('Doubles a number.')
    expect(tool?.inputSchema).toMatchObject({ properties: { number: { type: 'number' } } })
    const result = await client.callTool({ name: 'double', arguments: { number: 21 } })
    expect(structured(result)).toMatchObject({ status: 'finished', result: { twice: 42 } })
    const refused = await client.callTool({ name: 'double', arguments: { number: 'many' } })
    expect(refused.isError).toBe(true)
    expect(JSON.stringify(refused.content)).toContain('INPUT_REFUSED')
    const broken = await client.callTool({ name: 'panic', arguments: {} })
    expect(broken.isError).toBe(true)
    await client.close()
  })

  test('[K-12] a question reaches a client without forms as a link to the page', async () => {
    const client = await connectClient(await start(), revision)
    const result = await client.callTool({ name: 'deploy', arguments: {} })
    const [, link = ''] = /(http:\S+capability=[\w.-]+)/.exec(JSON.stringify(result.content)) ?? []
    const page = await fetch(link)
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('Deploy?')
    await client.close()
  })

  test('[K-12] [K-17] defect 16: a client of the protocol makes, lists, runs, snoozes, pauses and reads automations', async () => {
    const client = await connectClient(await start(), revision)
    const call = async (name: string, args: object): Promise<Readonly<Record<string, unknown>>> => {
      const result = await client.callTool({ name, arguments: { ...args } })
      expect({ name, error: result.isError === true ? result.content : undefined }).toEqual({ name, error: undefined })
      return structured(result)
    }
    const definition = {
      title: 'Weekday briefing',
      triggers: [{ cron: '0 9 * * 1-5' }],
      pipeline: [{ id: 'tell', uses: 'log', with: { message: 'Good morning' } }],
    }
    const preview = await call('create_automation', { definition, preview: true })
    expect(preview['firings']).toHaveLength(5)
    expect((await call('list_automations', {}))['automations']).toEqual([])
    const { id } = await call('create_automation', { definition })
    const of = { automation_id: id }
    expect((await call('list_automations', { text: 'brief' }))['automations']).toMatchObject([{ id, status: 'active' }])
    expect(await call('manage_automation', { ...of, action: 'snooze', seconds: 600 })).toMatchObject({ id })
    expect(await call('manage_automation', { ...of, action: 'pause' })).toMatchObject({ status: 'paused' })
    const { run_id: run } = await call('manage_automation', { ...of, action: 'run' })
    await call('wait_job', { job_id: run })
    expect(await call('get_run', { run_id: run })).toMatchObject({ id: run, status: 'succeeded' })
    expect((await call('list_runs', of))['runs']).toMatchObject([{ id: run }])
    expect(await call('get_automation', of)).toMatchObject({ id, status: 'paused' })
    const found = (await call('search', { query: 'Weekday' }))['results'] as readonly { readonly id: string }[]
    expect(found.map((one) => one.id)).toContain(`automation:${String(id)}`)
    expect(await call('fetch', { id: `automation:${String(id)}` })).toMatchObject({ title: 'Weekday briefing' })
    expect(await call('publish_event', { topic: 'github.push', payload: {} })).toMatchObject({ topic: 'github.push' })
    await client.close()
  })

  test('[K-12] numbers that a double would alter pass through tools as they were written', async () => {
    await start()
    const id = '12345678901234567890'
    const reply = await rawMcp(
      server,
      revision,
      'tools/call',
      `{"name":"start_job","arguments":{"blueprint":"deploy","data":{"id":${id}}}}`,
    )
    const [, job = ''] = /"job_id":"([^"]+)"/.exec(reply) ?? []
    const read = await rawMcp(
      server,
      revision,
      'tools/call',
      `{"name":"get_job","arguments":{"job_id":"${job}","include":"data"}}`,
    )
    expect(read).toContain(`"initial_data":{"id":${id}}`)
  })
})

describe('jobs as tasks', () => {
  test('[K-12] a task is a job: asks, is answered through tasks/update, and completes', async () => {
    await start()
    const created = await taskCall(server, 'tools/call', { name: 'deploy', arguments: {} })
    expect(created).toMatchObject({ resultType: 'task', status: 'working', ttlMs: null })
    const taskId = String(created['taskId'])
    const asking = await taskCall(server, 'tasks/get', { taskId })
    expect(asking).toMatchObject({ status: 'input_required' })
    const [key = ''] = Object.keys(asking['inputRequests'] as object)
    const update = (response: object) =>
      taskCall(server, 'tasks/update', { taskId, inputResponses: { [key]: response } })
    const whatever = update({ action: 'accept', content: { decision: 'whatever' } })
    await expect(whatever).rejects.toThrow(/-32602.*has the decision .*whatever.*approved/)
    await expect(update({ action: 'accept', content: {} })).rejects.toThrow(/-32602.*has no decision/)
    await update({ action: 'decline' })
    expect(await taskCall(server, 'tasks/get', { taskId })).toMatchObject({ status: 'input_required' })
    const right = { [key]: { action: 'accept', content: { decision: 'approved' } } }
    await taskCall(server, 'tasks/update', { taskId, inputResponses: right })
    await server.ended(taskId)
    const done = await taskCall(server, 'tasks/get', { taskId })
    expect(done).toMatchObject({ status: 'completed', result: { structuredContent: { result: { deployed: true } } } })
  })

  test('[K-12] a failure of the work completes the task with isError; what breaks fails it; cancelling is idempotent', async () => {
    await start()
    const rejected = String((await taskCall(server, 'tools/call', { name: 'deploy', arguments: {} }))['taskId'])
    await server.client('POST', `/_public/webhooks/approval/${rejected}`, { decision: 'rejected' })
    await server.ended(rejected)
    const failed = await taskCall(server, 'tasks/get', { taskId: rejected })
    expect(failed).toMatchObject({ status: 'completed', result: { isError: true } })
    const broken = await server.createJob('panic')
    await server.ended(broken)
    expect(await taskCall(server, 'tasks/get', { taskId: broken })).toMatchObject({
      status: 'failed',
      error: { code: -32_603 },
    })
    const open = String((await taskCall(server, 'tools/call', { name: 'deploy', arguments: {} }))['taskId'])
    for (const _ of [1, 2]) await taskCall(server, 'tasks/cancel', { taskId: open })
    expect(await taskCall(server, 'tasks/get', { taskId: open })).toMatchObject({ status: 'cancelled' })
  })

  test('[K-12] questions of children are asked too, each under a key of its own', async () => {
    await start()
    const taskId = String((await taskCall(server, 'tools/call', { name: 'both', arguments: {} }))['taskId'])
    await expect
      .poll(async () => Object.keys((await taskCall(server, 'tasks/get', { taskId }))['inputRequests'] ?? {}))
      .toHaveLength(2)
    const asked = (await taskCall(server, 'tasks/get', { taskId }))['inputRequests'] as object
    const [first = '', second = ''] = Object.keys(asked)
    const yes = { action: 'accept', content: { decision: 'approved' } }
    await taskCall(server, 'tasks/update', { taskId, inputResponses: { [first]: yes } })
    const left = await taskCall(server, 'tasks/get', { taskId })
    expect(Object.keys(left['inputRequests'] as object)).toEqual([second])
    await taskCall(server, 'tasks/update', { taskId, inputResponses: { [second]: yes } })
    await server.ended(taskId)
    expect(await taskCall(server, 'tasks/get', { taskId })).toMatchObject({ status: 'completed' })
  })

  test('[K-12] clients of 2025-11-25 have tasks too: get, result, list and cancel', async () => {
    await start()
    const call = async (method: string, params: object): Promise<Readonly<Record<string, unknown>>> => {
      const text = await rawMcp(server, '2025-11-25', method, JSON.stringify(params))
      return (JSON.parse(text) as { readonly result: Readonly<Record<string, unknown>> }).result
    }
    const made = await call('tools/call', { name: 'double', arguments: { number: 4 }, task: { ttl: 60_000 } })
    const { taskId } = made['task'] as { readonly taskId: string }
    expect(await call('tasks/result', { taskId })).toMatchObject({ structuredContent: { result: { twice: 8 } } })
    expect(await call('tasks/get', { taskId })).toMatchObject({ taskId, status: 'completed' })
    expect(await call('tasks/list', {})).toMatchObject({ tasks: [{ taskId }] })
    const open = await call('tools/call', { name: 'deploy', arguments: {}, task: {} })
    const cancelled = await call('tasks/cancel', open['task'] as object)
    expect(cancelled).toMatchObject({ status: 'cancelled' })
  })

  test('[K-12] the task of another client is no task', async () => {
    const tenants = await startTenantServer()
    server = tenants
    const taskId = await tenants.jobIn('alpha', 'ask', 'waiting_for_human')
    expect(await taskCall(server, 'tasks/get', { taskId }, TENANTS.alpha)).toMatchObject({ status: 'input_required' })
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const params = { taskId, inputResponses: {} }
      await expect(taskCall(server, method, params, TENANTS.beta)).rejects.toThrow('-32602')
    }
    await expect(taskCall(server, 'tasks/cancel', { taskId }, TENANTS.viewer)).rejects.toThrow('-32602')
  })

  test('[K-12] a client that shows forms is asked in the call itself, over two requests that any instance can answer', async () => {
    await start()
    const client = await connectClient(server, '2026-07-28', { capabilities: { elicitation: { form: {} } } })
    client.setRequestHandler('elicitation/create', ({ params }) => {
      expect(params.message).toBe('Deploy?')
      return { action: 'accept', content: { decision: 'approved' } }
    })
    const result = await client.callTool({ name: 'deploy', arguments: {} })
    expect(structured(result)).toMatchObject({ status: 'finished', result: { deployed: true } })
    await client.close()
  })
})

describe('the door of /mcp', () => {
  test('[K-12] whoever may only read sees the tools that read, and is refused by the others', async () => {
    server = await startTenantServer()
    const client = await connectClient(server, '2026-07-28', { token: TENANTS.viewer })
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['list_jobs', 'get_job', 'search']))
    expect(names).not.toContain('start_job')
    const refused = await client.callTool({ name: 'start_job', arguments: { blueprint: 'ask' } })
    expect(refused.isError).toBe(true)
    expect(JSON.stringify(refused.content)).toContain('FORBIDDEN')
    await client.close()
  })

  test('[K-12] [H-03] without a token nobody comes in, and is told where OAuth clients look', async () => {
    await start()
    const reply = await server.call('POST', '/mcp', { body: { jsonrpc: '2.0', id: 1, method: 'ping' } })
    expect(reply.status).toBe(401)
    expect(reply.text).toContain('Authorization: Bearer')
    const [, url = ''] = /resource_metadata="([^"]+)"/.exec(reply.headers.get('www-authenticate') ?? '') ?? []
    expect(await (await fetch(url)).json()).toMatchObject({ resource: `${server.address}/mcp` })
  })

  test('[K-12] a job that is longer than a short answer is read too', async () => {
    const client = await connectClient(await start(), '2025-11-25')
    const initialData = { text: 'x'.repeat(200_000) }
    const { body } = await server.client('POST', '/api/v1/jobs', { blueprint: 'deploy', initial_data: initialData })
    const result = await client.callTool({ name: 'fetch', arguments: { id: `job:${body.job_id}` } })
    expect(structured(result)).toMatchObject({ title: 'deploy' })
    await client.close()
  })

  test('[K-12] web pages are kept out: names that are not ours, and origins of others', async () => {
    await start()
    const body = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const auth = { 'x-client-token': CLIENT_TOKEN, accept: 'application/json, text/event-stream' }
    const from = async (headers: Readonly<Record<string, string>>): Promise<number> =>
      (await server.call('POST', '/mcp', { body, headers: { ...auth, ...headers } })).status
    expect(await from({})).toBe(200)
    expect(await from({ origin: server.address })).toBe(200)
    expect(await from({ origin: 'https://evil.example.com' })).toBe(403)
  })

  test('[K-12] a message that is no JSON is answered in the words of the protocol', async () => {
    await start()
    const headers = { 'x-client-token': CLIENT_TOKEN, 'content-type': 'application/json' }
    const reply = await server.call('POST', '/mcp', { body: '{"jsonrpc"', headers })
    expect(reply.body).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32_700 } })
  })
})
