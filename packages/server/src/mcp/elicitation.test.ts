import { blueprint } from '@impresario/core'
import type { CallToolResult } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import { startTenantServer, TENANTS } from '../tenants.fixture.ts'
import { connectClient } from './mcp-client.fixture.ts'

/** Asks twice, so that a call has to put one question after the other. */
const deploy = blueprint('deploy', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Deploy?', transitions: { approved: 'sure', rejected: 'failed' } }),
  ),
  sure: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Sure?', transitions: { yes: 'done', no: 'failed' } }),
  ),
  done: state.end({ result: () => ({ deployed: true }) }),
  failed: state.end({ outcome: 'failed' }),
}))

const greet = blueprint(
  'greet',
  {
    input: z
      .object({ name: z.string().min(2), loud: z.boolean().default(false) })
      .meta({ 'x-mcp': { ask: [{ key: 'who', message: 'Who are you?', fields: ['name', 'loud'] }] } }),
    start: 'say',
  },
  (state) => ({
    say: state.handler((_context, actions) => actions.transitionTo('said')),
    said: state.end({
      result: ({ initialData }) => ({ said: `Hello, ${initialData.name}${initialData.loud ? '!' : '.'}` }),
    }),
  }),
)

const wrong = blueprint(
  'wrong',
  { input: z.object({}).meta({ 'x-mcp': { requires: ['telepathy'] } }), start: 'say' },
  (state) => ({
    say: state.handler((_context, actions) => actions.transitionTo('said')),
    said: state.end(),
  }),
)

let server: TestServer

async function start(): Promise<TestServer> {
  server = await startTestServer({ blueprints: [deploy, greet, wrong] })
  return server
}

afterEach(() => server.server.stop())

const FORMS = { capabilities: { elicitation: { form: {} } } } as const

function structured(result: CallToolResult): Readonly<Record<string, unknown>> {
  return (result.structuredContent ?? {}) as Readonly<Record<string, unknown>>
}

function textIn(result: CallToolResult): string {
  return JSON.stringify(result.content)
}

describe('approvals by elicitation, revision 2025-11-25', () => {
  test('[K-12] a client that shows forms is asked on the stream of its call, one question after the other', async () => {
    const client = await connectClient(await start(), '2025-11-25', FORMS)
    const asked: string[] = []
    client.setRequestHandler('elicitation/create', ({ params }) => {
      asked.push(params.message)
      return { action: 'accept', content: { decision: params.message === 'Deploy?' ? 'approved' : 'yes' } }
    })
    const result = await client.callTool({ name: 'deploy', arguments: {} })
    expect(asked).toEqual(['Deploy?', 'Sure?'])
    expect(structured(result)).toMatchObject({ status: 'finished', result: { deployed: true } })
    await client.close()
  })

  test('[K-12] a person who declines decides nothing: the call ends with a link, and the question stays open', async () => {
    const client = await connectClient(await start(), '2025-11-25', FORMS)
    client.setRequestHandler('elicitation/create', () => ({ action: 'decline' }))
    const result = await client.callTool({ name: 'deploy', arguments: {} })
    expect(structured(result)).toMatchObject({ status: 'waiting_for_human' })
    expect(textIn(result)).toContain('capability=')
    await client.close()
  })

  test('[K-12] a client that opens pages is led to the signed page, and told when the decision is made', async () => {
    const client = await connectClient(await start(), '2025-11-25', { capabilities: { elicitation: { url: {} } } })
    const completed: string[] = []
    const ids: string[] = []
    client.setNotificationHandler('notifications/elicitation/complete', ({ params }) => {
      completed.push(params.elicitationId)
    })
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      if (params.mode !== 'url') throw new Error('A link was expected.')
      ids.push(params.elicitationId)
      const page = await fetch(params.url)
      expect(await page.text()).toContain(params.message)
      const [, job = ''] = /approval\/([^/?]+)/.exec(params.url) ?? []
      const decision = params.message === 'Deploy?' ? 'approved' : 'yes'
      const made = await server.client('POST', `/_public/webhooks/approval/${job}`, { decision })
      expect(made.status).toBe(200)
      return { action: 'accept' }
    })
    const result = await client.callTool({ name: 'deploy', arguments: {} })
    expect(structured(result)).toMatchObject({ status: 'finished' })
    expect(ids).toHaveLength(2)
    expect(completed).toEqual(ids)
    await client.close()
  })

  test('[K-12] a question that is decided elsewhere ends the wait, and the client is told to close its form', async () => {
    const client = await connectClient(await start(), '2025-11-25', FORMS)
    let closed = 0
    client.setRequestHandler('elicitation/create', async ({ params }, { mcpReq }) => {
      const { body } = await server.client('GET', '/api/v1/jobs?status=waiting_for_human')
      const [job] = body as unknown as readonly { readonly job_id: string }[]
      const cancelled = new Promise<void>((resolve) => {
        mcpReq.signal.addEventListener('abort', () => resolve(), { once: true })
      })
      const decision = params.message === 'Deploy?' ? 'approved' : 'yes'
      await server.client('POST', `/_public/webhooks/approval/${job?.job_id}`, { decision })
      await cancelled
      closed += 1
      return { action: 'cancel' }
    })
    const result = await client.callTool({ name: 'deploy', arguments: {} })
    expect(structured(result)).toMatchObject({ status: 'finished' })
    await expect.poll(() => closed).toBe(2)
    await client.close()
  })

  test('[K-12] an answer counts after its call is gone, from whichever request brings it, and only from its caller', async () => {
    const tenants = await startTenantServer()
    server = tenants
    const session = await greeting(TENANTS.alpha)
    const cut = new AbortController()
    const open = await post(TENANTS.alpha, session, ASK, cut.signal)
    const id = await questionIn(open)
    cut.abort()
    const told = { jsonrpc: '2.0', id, result: { action: 'accept', content: { decision: 'approved' } } }
    const beta = await post(TENANTS.beta, await greeting(TENANTS.beta), told)
    expect(beta.status).toBe(202)
    const waiting = await server.call('GET', '/api/v1/jobs?status=waiting_for_human', {
      headers: { 'x-client-token': TENANTS.alpha },
    })
    const [job] = waiting.body as unknown as readonly { readonly job_id: string }[]
    expect(job).toBeDefined()
    expect((await post(TENANTS.alpha, session, told)).status).toBe(202)
    const ended = await server.call('GET', `/api/v1/jobs/${job?.job_id}?wait=20&until=end`, {
      headers: { 'x-client-token': TENANTS.alpha },
    })
    expect(ended.body).toMatchObject({ status: 'finished' })
    // A session belongs to its caller.
    expect((await post(TENANTS.beta, session, ASK)).status).toBe(404)
  })
})

describe.each(['2025-11-25', '2026-07-28'] as const)(
  'what a person gives before the job starts, revision %s',
  (revision) => {
    test('[K-12] fields that the call lacks are asked for in a form, and checked like arguments', async () => {
      const client = await connectClient(await start(), revision, FORMS)
      const names = ['Ada', 'x']
      let asked = 0
      client.setRequestHandler('elicitation/create', ({ params }) => {
        asked += 1
        expect(params).toMatchObject({ message: 'Who are you?', requestedSchema: { required: ['name'] } })
        return { action: 'accept', content: { name: names.shift() ?? '', loud: true } }
      })
      const { tools } = await client.listTools()
      const shown = tools.find(({ name }) => name === 'greet')?.inputSchema
      expect(shown?.required).toEqual([])
      expect(shown).not.toHaveProperty('x-mcp')
      const greeted = await client.callTool({ name: 'greet', arguments: {} })
      expect(structured(greeted)).toMatchObject({ result: { said: 'Hello, Ada!' } })
      const short = await client.callTool({ name: 'greet', arguments: {} })
      expect(textIn(short)).toContain('INPUT_REFUSED')
      expect(asked).toBe(2)
      const given = await client.callTool({ name: 'greet', arguments: { name: 'Bob', loud: false } })
      expect(structured(given)).toMatchObject({ result: { said: 'Hello, Bob.' } })
      expect(asked).toBe(2)
      await client.close()
    })

    test('[K-12] a person who does not answer starts nothing', async () => {
      const client = await connectClient(await start(), revision, FORMS)
      client.setRequestHandler('elicitation/create', () => ({ action: 'cancel' }))
      const result = await client.callTool({ name: 'greet', arguments: {} })
      expect(result.isError).toBe(true)
      expect(textIn(result)).toContain('Nothing was started')
      expect((await server.client('GET', '/api/v1/jobs')).body).toEqual([])
      await client.close()
    })

    test('[K-12] a client without forms gets the refusal of the missing argument', async () => {
      const client = await connectClient(await start(), revision)
      const result = await client.callTool({ name: 'greet', arguments: {} })
      expect(textIn(result)).toContain('INPUT_REFUSED')
      const broken = await client.callTool({ name: 'wrong', arguments: {} })
      expect(textIn(broken)).toContain('x-mcp.requires.0')
      await client.close()
    })
  },
)

const ASK = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'ask', arguments: {} } }

async function post(token: string, session: string, message: object, signal?: AbortSignal): Promise<Response> {
  return fetch(`${server.address}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      ...(session === '' ? {} : { 'mcp-session-id': session }),
    },
    body: JSON.stringify(message),
    ...(signal === undefined ? {} : { signal }),
  })
}

/** Begins a session of a client that shows forms, and gives its id. */
async function greeting(token: string): Promise<string> {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: FORMS.capabilities,
    clientInfo: { name: 't', version: '1' },
  }
  const reply = await post(token, '', { jsonrpc: '2.0', id: 1, method: 'initialize', params })
  await reply.text()
  return reply.headers.get('mcp-session-id') ?? ''
}

/** The id of the first question on a stream. */
async function questionIn({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of body ?? []) {
    text += decoder.decode(piece)
    const [, id] = /"id":"([^"]+)"[^\n]*"method":"elicitation\/create"/.exec(text) ?? []
    const [, other] = /"method":"elicitation\/create"[^\n]*"id":"([^"]+)"/.exec(text) ?? []
    if ((id ?? other) !== undefined) return id ?? other ?? ''
  }
  throw new Error(`No question in: ${text}`)
}
