import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { ClientOptions } from '@modelcontextprotocol/client'
import { CLIENT_TOKEN } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

export type Revision = '2025-11-25' | '2026-07-28'

/** A client of the official library, connected to a server of the tests. */
export async function connectClient(
  { address }: Pick<TestServer, 'address'>,
  revision: Revision,
  options: { readonly token?: string; readonly capabilities?: ClientOptions['capabilities'] } = {},
): Promise<Client> {
  const { token = CLIENT_TOKEN, capabilities } = options
  const client = new Client(
    { name: 'tests', version: '1.0.0' },
    {
      ...(capabilities === undefined ? {} : { capabilities }),
      ...(revision === '2026-07-28' ? { versionNegotiation: { mode: 'auto' as const } } : {}),
    },
  )
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${address}/mcp`), { requestInit }))
  return client
}

const EXTENSIONS = { 'io.modelcontextprotocol/tasks': {} }
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1.0.0' },
}

/** A request of 2026-07-28 from a client that knows tasks, as it goes over the wire. Rejects with the error of the answer. */
export async function taskCall(
  { address }: Pick<TestServer, 'address'>,
  method: string,
  params: Readonly<Record<string, unknown>>,
  token: string = CLIENT_TOKEN,
): Promise<Readonly<Record<string, unknown>>> {
  const meta = { ...META, 'io.modelcontextprotocol/clientCapabilities': { extensions: EXTENSIONS } }
  const text = await post(address, '2026-07-28', method, JSON.stringify({ ...params, _meta: meta }), token)
  const { result, error } = JSON.parse(text) as { result?: Record<string, unknown>; error?: object }
  if (error !== undefined) throw new Error(JSON.stringify(error))
  return result ?? {}
}

/** The text of the answer to a request whose params are this text. */
export function rawMcp(
  { address }: Pick<TestServer, 'address'>,
  revision: Revision,
  method: string,
  params: string,
): Promise<string> {
  const meta = JSON.stringify({ ...META, 'io.modelcontextprotocol/clientCapabilities': {} })
  const whole = revision === '2025-11-25' ? params : params.replace(/\}$/, `,"_meta":${meta}}`)
  return post(address, revision, method, whole, CLIENT_TOKEN)
}

async function post(
  address: string,
  revision: Revision,
  method: string,
  params: string,
  token: string,
): Promise<string> {
  const { name, taskId } = JSON.parse(params) as { readonly name?: string; readonly taskId?: string }
  const named = taskId ?? name
  const response = await fetch(`${address}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': revision,
      'mcp-method': method,
      ...(named === undefined ? {} : { 'mcp-name': named }),
    },
    body: `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${params}}`,
  })
  const text = await response.text()
  const [, event] = /^data: (\{.*\})$/m.exec(text) ?? []
  return event ?? text
}
