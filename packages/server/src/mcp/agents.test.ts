import { blueprint } from '@impresario/core'
import type { CallToolResult, Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import { connectClient, taskCall } from './mcp-client.fixture.ts'

/* What agents can do through /mcp: their own things, and only what their scopes allow. */

const deploy = blueprint('deploy', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Deploy?', transitions: { approved: 'done', rejected: 'failed' } }),
  ),
  done: state.end(),
  failed: state.end({ outcome: 'failed' }),
}))
const ALL = ['automations:*', 'runs:*', 'jobs:*', 'events:publish', 'approvals:decide', 'documents:search']
const DEFINITION = {
  title: 'Secret plan of Ada',
  pipeline: [{ id: 'ask', approval: { message: 'Go on?' } }],
}

let server: TestServer
const clients: Client[] = []

beforeAll(async () => {
  server = await startTestServer({ blueprints: [deploy] })
})
afterAll(async () => {
  for (const client of clients) await client.close()
  await server.server.stop()
})

async function agent(name: string, scopes: readonly string[]): Promise<{ token: string; client: Client }> {
  const made = await server.client('POST', '/api/v1/agents', { name, scopes })
  const path = `/api/v1/agents/${String(made.body['id'])}/tokens`
  const token = String((await server.client('POST', path, { name: 'only' })).body['token'])
  const client = await connectClient(server, '2026-07-28', { token })
  clients.push(client)
  return { token, client }
}

type Structured = Readonly<Record<string, unknown>>

async function called(client: Client, name: string, args: object = {}): Promise<CallToolResult> {
  return client.callTool({ name, arguments: { ...args } })
}

async function answered(client: Client, name: string, args: object = {}): Promise<Structured> {
  const result = await called(client, name, args)
  expect({ name, error: result.isError === true ? result.content : undefined }).toEqual({ name, error: undefined })
  return (result.structuredContent ?? {}) as Structured
}

async function refused(client: Client, name: string, args: object): Promise<string> {
  const result = await called(client, name, args)
  expect({ name, isError: result.isError }).toEqual({ name, isError: true })
  return JSON.stringify(result.content)
}

test('[K-01] [K-12] through /mcp an agent finds and changes only what is its own', async () => {
  const { client: ada, token: adasToken } = await agent('ada', ALL)
  const { client: eve, token: evesToken } = await agent('eve', ALL)
  const { id } = await answered(ada, 'create_automation', { definition: DEFINITION })
  const { run_id: run } = await answered(ada, 'manage_automation', { automation_id: id, action: 'run' })
  const { job_id: job } = await answered(ada, 'start_job', { blueprint: 'deploy', data: { secret: 'plan' } })
  const { taskId } = await taskCall(server, 'tools/call', { name: 'deploy', arguments: {} }, adasToken)

  expect(await answered(eve, 'list_automations')).toMatchObject({ automations: [] })
  expect(await answered(eve, 'list_runs')).toMatchObject({ runs: [] })
  expect(await answered(eve, 'list_jobs')).toMatchObject({ jobs: [] })
  expect(await answered(eve, 'list_approvals')).toMatchObject({ approvals: [] })
  expect(await answered(eve, 'search', { query: 'Secret plan' })).toMatchObject({ results: [] })
  for (const [name, args] of [
    ['get_automation', { automation_id: id }],
    ['update_automation', { automation_id: id, definition: DEFINITION }],
    ...['run', 'pause', 'cancel'].map((action) => ['manage_automation', { automation_id: id, action }] as const),
    ['get_run', { run_id: run }],
    ['cancel_run', { run_id: run }],
    ['get_job', { job_id: job }],
    ['wait_job', { job_id: job }],
    ['manage_job', { job_id: job, action: 'cancel' }],
    ['decide_approval', { job_id: job, decision: 'approved' }],
    ['fetch', { id: `automation:${String(id)}` }],
    ['fetch', { id: `run:${String(run)}` }],
    ['fetch', { id: `job:${String(job)}` }],
  ] as const) {
    expect(await refused(eve, name, args)).toMatch(/NOT_FOUND/)
  }
  const { resources } = await eve.listResources()
  expect(JSON.stringify(resources)).not.toContain(String(run))
  for (const uri of [`automation/${String(id)}`, `run/${String(run)}`, `job/${String(job)}`]) {
    await expect(eve.readResource({ uri: `impresario://${uri}` })).rejects.toThrow('There is no such resource.')
  }
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    await expect(taskCall(server, method, { taskId, inputResponses: {} }, evesToken)).rejects.toThrow('-32602')
  }

  // Nothing of all this has changed anything, and its owner finds it all.
  expect(await answered(ada, 'get_automation', { automation_id: id })).toMatchObject({ status: 'active', revision: 1 })
  expect(await answered(ada, 'get_run', { run_id: run })).toMatchObject({ status: 'running' })
  expect(await answered(ada, 'get_job', { job_id: job })).toMatchObject({ status: 'waiting_for_human' })
  expect(await taskCall(server, 'tasks/get', { taskId }, adasToken)).toMatchObject({ status: 'input_required' })
})

test.each([
  [
    'automations:read',
    ['search', 'fetch', 'list_automations', 'get_automation', 'list_tools'],
    'create_automation',
    { definition: DEFINITION },
  ],
  ['automations:write', ['create_automation', 'update_automation', 'manage_automation'], 'list_runs', {}],
  ['runs:read', ['list_runs', 'get_run'], 'list_automations', {}],
  [
    'jobs:read',
    ['search', 'fetch', 'list_jobs', 'get_job', 'wait_job', 'list_approvals', 'list_blueprints'],
    'start_job',
    { blueprint: 'deploy' },
  ],
  ['jobs:write', ['start_job', 'manage_job'], 'list_jobs', {}],
  ['events:publish', ['manage_job', 'publish_event'], 'list_jobs', {}],
  ['approvals:decide', ['decide_approval'], 'list_approvals', {}],
])(
  '[K-01] [K-12] an agent with %s sees the tools for it, and is refused by the others',
  async (scope, names, other, args) => {
    const { client } = await agent(`only ${scope}`, [scope])
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(names)
    expect(await refused(client, other, args)).toContain('FORBIDDEN')
    await client.listResources()
  },
)

test('[K-01] [K-12] a token that was revoked opens nothing', async () => {
  const made = await server.client('POST', '/api/v1/agents', { name: 'leaver', scopes: ALL })
  const path = `/api/v1/agents/${String(made.body['id'])}/tokens`
  const { body } = await server.client('POST', path, { name: 'only' })
  const token = String(body['token'])
  await taskCall(server, 'tools/list', {}, token)
  await server.client('DELETE', `${path}/${String(body['id'])}`)
  await expect(connectClient(server, '2026-07-28', { token })).rejects.toThrow(
    /401|Unauthorized|UNAUTHENTICATED|token/i,
  )
})

test('[K-01] [K-10] a tool that an agent may not use is refused with the scope that it lacks', async () => {
  const { client } = await agent('planner', ['automations:read', 'automations:write'])
  const create = (uses: string): Promise<string> =>
    refused(client, 'create_automation', { definition: { title: 'Plan', pipeline: [{ id: 'a', uses, with: {} }] } })
  for (const uses of ['job.start', 'task.transcode', 'blueprint.deploy']) {
    expect(await create(uses)).toContain('needs the scope jobs:write, which you do not have')
  }
  expect(await create('nothing.like.it')).toContain('There is no tool')
})
