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
