import type { ConfigKey } from './config-keys.ts'

/** Settings of the Model Context Protocol. */
export interface McpSettings {
  readonly mcpEnabled: boolean
  readonly mcpHosts: string
  readonly mcpAuthorizationServers: string
  readonly mcpServersConfigPath: string
}

export const MCP_KEYS: Readonly<Record<keyof McpSettings, ConfigKey>> = {
  mcpEnabled: {
    names: ['MCP_ENABLED'],
    type: 'switch',
    default: true,
    description: 'Serve assistants over the Model Context Protocol at /mcp.',
  },
  mcpHosts: {
    names: ['MCP_HOSTS'],
    type: 'text',
    check: hostsProblem,
    default: '',
    description:
      'Names under which assistants reach /mcp, separated by commas, beside localhost, addresses, and the name in PUBLIC_URL. ' +
      'Requests under other names are refused, because a web page could have made its own name point here.',
  },
  mcpAuthorizationServers: {
    names: ['MCP_AUTHORIZATION_SERVERS'],
    type: 'text',
    check: issuersProblem,
    default: '',
    description:
      'Addresses of the OAuth authorization servers that clients of /mcp are told about, separated by commas. A gateway in ' +
      'front of this server has to turn their tokens into tokens of this server.',
  },
  mcpServersConfigPath: {
    names: ['MCP_SERVERS_CONFIG_PATH'],
    type: 'path',
    default: '',
    description:
      'JSON file with the MCP servers of others whose tools pipelines can use, as assistants have it: {"mcpServers": {…}}.',
  },
}

export function listIn(text: string): readonly string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
}

function hostsProblem(text: string): string | undefined {
  const wrong = listIn(text).find((one) => !/^[a-z0-9.-]+(?::\d{1,5})?$/i.test(one))
  return wrong === undefined
    ? undefined
    : `has ${JSON.stringify(wrong)}. It must be names such as impresario.example.com.`
}

function issuersProblem(text: string): string | undefined {
  const wrong = listIn(text).find((one) => !URL.canParse(one) || !/^https?:$/.test(new URL(one).protocol))
  return wrong === undefined
    ? undefined
    : `has ${JSON.stringify(wrong)}. It must be addresses such as https://login.example.com.`
}
