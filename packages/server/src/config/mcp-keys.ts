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
      'Host names for /mcp, separated by commas, in addition to localhost, IP addresses, and the name in PUBLIC_URL. ' +
      'Requests with other names are refused, to prevent DNS rebinding by web pages.',
  },
  mcpAuthorizationServers: {
    names: ['MCP_AUTHORIZATION_SERVERS'],
    type: 'text',
    check: issuersProblem,
    default: '',
    description:
      'URLs of the OAuth authorization servers that /mcp announces to its clients, separated by commas. A gateway in ' +
      'front of this server must exchange their tokens for tokens of this server.',
  },
  mcpServersConfigPath: {
    names: ['MCP_SERVERS_CONFIG_PATH'],
    type: 'path',
    default: '',
    description:
      'JSON file with external MCP servers whose tools pipelines can use, in the format of assistants: {"mcpServers": {…}}.',
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
