/** What to paste into which file, for the usual assistants. */
export interface AssistantConfig {
  readonly assistant: string
  /** Where it goes: a file, or a shell. */
  readonly place: string
  readonly text: string
}

export const ASSISTANTS = [
  'claude-code',
  'claude-desktop',
  'codex',
  'cursor',
  'gemini',
  'vscode',
  'windsurf',
  'zed',
] as const
export type Assistant = (typeof ASSISTANTS)[number]

interface Target {
  /** The address of the server. */
  readonly url: string
  readonly token: string | undefined
}

export function assistantConfigs(
  target: Target,
  wanted: readonly Assistant[] = ASSISTANTS,
): readonly AssistantConfig[] {
  return wanted.map((assistant) => ({ assistant, ...WRITERS[assistant](target) }))
}

type Writer = (target: Target) => Omit<AssistantConfig, 'assistant'>

const WRITERS: Readonly<Record<Assistant, Writer>> = {
  'claude-code': (target) => ({
    place: 'in a shell',
    text: [
      `claude mcp add --transport http impresario ${quoted(endpoint(target))}`,
      ...(target.token === undefined ? [] : [`--header ${quoted(`Authorization: Bearer ${target.token}`)}`]),
    ].join(' '),
  }),
  'claude-desktop': (target) => ({
    place: 'claude_desktop_config.json (Settings, Developer, Edit Config)',
    text: json({ mcpServers: { impresario: started(target) } }),
  }),
  codex: (target) => ({ place: '~/.codex/config.toml', text: codexToml(target) }),
  cursor: (target) => ({
    place: '~/.cursor/mcp.json',
    text: json({ mcpServers: { impresario: { url: endpoint(target), ...headers(target) } } }),
  }),
  gemini: (target) => ({
    place: '~/.gemini/settings.json',
    text: json({ mcpServers: { impresario: { httpUrl: endpoint(target), ...headers(target) } } }),
  }),
  vscode: (target) => ({
    place: '.vscode/mcp.json',
    text: json({ servers: { impresario: { type: 'http', url: endpoint(target), ...headers(target) } } }),
  }),
  windsurf: (target) => ({
    place: '~/.codeium/windsurf/mcp_config.json',
    text: json({ mcpServers: { impresario: { serverUrl: endpoint(target), ...headers(target) } } }),
  }),
  zed: (target) => ({
    place: 'settings.json of Zed',
    text: json({ context_servers: { impresario: { url: endpoint(target), ...headers(target) } } }),
  }),
}

export function endpoint({ url }: Target): string {
  return `${url.replace(/\/+$/, '')}/mcp`
}

function headers({ token }: Target): object {
  return token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } }
}

/** For assistants that start a program and talk to it over its input and output. */
function started(target: Target): object {
  return { command: 'npx', args: ['-y', 'impresario', 'mcp'], env: environment(target) }
}

function environment({ url, token }: Target): Readonly<Record<string, string>> {
  return { IMPRESARIO_URL: url, ...(token === undefined ? {} : { IMPRESARIO_TOKEN: token }) }
}

function codexToml(target: Target): string {
  const lines = Object.entries(environment(target)).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
  return [
    '[mcp_servers.impresario]',
    'command = "npx"',
    'args = ["-y", "impresario", "mcp"]',
    '',
    '[mcp_servers.impresario.env]',
    ...lines,
  ].join('\n')
}

function json(value: object): string {
  return JSON.stringify(value, null, 2)
}

/** For a POSIX shell. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
