import { blueprint } from '@impresario/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CLIENT_TOKEN, startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import { startTenantServer, TENANTS } from '../tenants.fixture.ts'
import { connectClient } from './mcp-client.fixture.ts'

const talkative = blueprint('talkative', { start: 'begin' }, (state) => ({
  begin: state.handler((context, actions) => {
    context.log.debug('not for everybody')
    context.log.info('begun', { share: 0.5 })
    return actions.sleep('10ms', { to: 'end' })
  }),
  end: state.handler((context, actions) => {
    context.log.warn('nearly done')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

let server: TestServer

beforeAll(async () => {
  server = await startTestServer({ blueprints: [talkative] })
})
afterAll(() => server.server.stop())

test('[K-12] a client of 2025-11-25 hears what is written about the job that its call waits for, each line once', async () => {
  const client = await connectClient(server, '2025-11-25')
  const heard: [string, unknown][] = []
  client.setNotificationHandler('notifications/message', ({ params }) => {
    heard.push([params.level, params.data])
  })
  await client.callTool({ name: 'talkative', arguments: {} })
  // It has not asked for lines.
  expect(heard).toEqual([])
  // oxlint-disable-next-line typescript/no-deprecated -- clients of this revision have no other way
  await client.setLoggingLevel('info')
  await client.callTool({ name: 'talkative', arguments: {} })
  const job = { job_id: expect.any(String) as string }
  expect(heard).toEqual([
    ['info', { ...job, message: 'begun', fields: { share: 0.5 } }],
    ['warning', { ...job, message: 'nearly done' }],
  ])
  await client.close()
})

test('[K-12] a request of 2026-07-28 says itself which lines it wants', async () => {
  const ask = async (level?: string): Promise<readonly string[]> => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
      ...(level === undefined ? {} : { 'io.modelcontextprotocol/logLevel': level }),
    }
    const params = { name: 'talkative', arguments: {}, _meta: meta }
    const response = await fetch(`${server.address}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${CLIENT_TOKEN}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'talkative',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    })
    const messages = [...(await response.text()).matchAll(/^data: (\{.*\})$/gm)].map(
      ([, text = '']) => JSON.parse(text) as { readonly method?: string; readonly params?: { readonly level: string } },
    )
    return messages.flatMap(({ method, params: said }) =>
      method === 'notifications/message' ? (said?.level ?? '') : [],
    )
  }
  expect(await ask('debug')).toEqual(['debug', 'info', 'warning'])
  expect(await ask('warning')).toEqual(['warning'])
  expect(await ask()).toEqual([])
})

test.each(['2025-11-25', '2026-07-28'] as const)(
  '[K-12] what a person types is completed with names and ids of their own (%s)',
  async (revision) => {
    const client = await connectClient(server, revision)
    const names = { type: 'ref/resource', uri: 'impresario://blueprint/{name}' } as const
    const found = await client.complete({ ref: names, argument: { name: 'name', value: 'TALK' } })
    expect(found.completion).toMatchObject({ values: ['talkative'], total: 1, hasMore: false })
    const prompt = { type: 'ref/prompt', name: 'explain_job' } as const
    const all = await client.complete({ ref: prompt, argument: { name: 'job_id', value: '' } })
    const listed = await server.client('GET', '/api/v1/jobs?limit=100')
    expect(all.completion.values).toEqual(
      (listed.body as unknown as readonly { readonly job_id: string }[]).map((job) => job.job_id),
    )
    const wish = {
      ref: { type: 'ref/prompt', name: 'make_automation' },
      argument: { name: 'wish', value: 'x' },
    } as const
    expect((await client.complete(wish)).completion.values).toEqual([])
    await client.close()
  },
)

test('[K-12] a name that is not quite that of a tool or a blueprint is answered with the one that was perhaps meant', async () => {
  const client = await connectClient(server, '2026-07-28')
  await expect(client.callTool({ name: 'talkativ', arguments: {} })).rejects.toThrow('Did you mean "talkative"?')
  await expect(client.callTool({ name: 'strat_job', arguments: {} })).rejects.toThrow('Did you mean "start_job"?')
  const started = await client.callTool({ name: 'start_job', arguments: { blueprint: 'talktive' } })
  expect(JSON.stringify(started)).toContain('Did you mean')
  await client.close()
})

test('[K-12] nobody is offered the ids of others', async () => {
  const tenants = await startTenantServer()
  await tenants.as('alpha', 'POST', '/api/v1/automations', {
    title: 'secret plan',
    pipeline: [{ id: 'a', uses: 'transform', with: { value: 1 } }],
  })
  const client = await connectClient(tenants, '2026-07-28', { token: TENANTS.beta })
  const ref = { type: 'ref/resource', uri: 'impresario://automation/{automation_id}' } as const
  const found = await client.complete({ ref, argument: { name: 'automation_id', value: '' } })
  expect(found.completion.values).toEqual([])
  await client.close()
  await tenants.close()
})
