import type { Client } from '@modelcontextprotocol/client'
import { isJsonObject } from '@impresario/protocol'
import type { Json, JsonObject, TraceContext } from '@impresario/protocol'
import { boundedFetch } from './bounded-fetch.ts'
import type { OutsideConfig, ToldTool } from './outside-config.ts'

/** What one answer may have. A longer one fails the call and ends the connection. */
const ANSWER_BYTES_MAX = 262_144
/** What may come over one connection in one piece, lists of tools included. */
const MESSAGE_BYTES_MAX = 4_194_304
const TOOLS_MAX = 200
const SCHEMA_BYTES_MAX = 32_768
const DESCRIPTION_CHARS_MAX = 500
const CONNECT_MS = 30_000
const PAUSE_MS = 1_000
const PAUSE_MS_MAX = 60_000

export interface OutsideServerOptions {
  readonly config: OutsideConfig
  readonly version: string
  /** Called with the tools whenever the server has said which it has. */
  readonly onTools: (tools: readonly ToldTool[]) => void
  readonly onProblem: (problem: string) => void
}

/** A failure of a call. `isLasting`: trying again with the same input will not help. */
export class OutsideError extends Error {
  override readonly name = 'OutsideError'
  readonly isLasting: boolean

  constructor(message: string, isLasting: boolean) {
    super(message)
    this.isLasting = isLasting
  }
}

/**
 * One server of others.
 *
 * Stopped → (start) → connecting → connected → (it dies, or cannot be reached) → pausing → connecting …; (stop) → stopped. A
 * pause lasts twice as long after each failure, up to a minute. Calls while it is not connected fail, and may be tried again.
 */
export class OutsideServer {
  readonly #options: OutsideServerOptions
  #client: Client | undefined
  #timer: NodeJS.Timeout | undefined
  #pauseMs = PAUSE_MS
  #isStopped = true

  constructor(options: OutsideServerOptions) {
    this.#options = options
  }

  /** Resolves when the first attempt to connect is over, whatever came of it. */
  async start(): Promise<void> {
    this.#isStopped = false
    await this.#connect()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = undefined
    await client?.close().catch(() => undefined)
  }

  async call(tool: string, args: JsonObject, { signal, onUsage, tracing }: OutsideCall): Promise<Json> {
    const { name, timeoutSeconds } = this.#options.config
    const client = this.#client
    if (client === undefined) throw new OutsideError(`The MCP server ${name} is not connected.`, false)
    let result: Readonly<Record<string, unknown>>
    try {
      const limits = { signal, timeout: timeoutSeconds * 1_000, maxTotalTimeout: timeoutSeconds * 1_000 }
      result = await client.callTool(
        { name: tool, arguments: args, ...(tracing === undefined ? {} : { _meta: { ...tracing } }) },
        limits,
      )
    } catch (error) {
      throw new OutsideError(`${tool} of ${name} failed: ${textOf(error)}`, false)
    }
    const used = usageIn(result)
    if (used !== undefined) await onUsage(used)
    return answerOf(name, tool, result)
  }

  async #connect(): Promise<void> {
    const { config, onTools, onProblem } = this.#options
    try {
      const client = await open(this.#options)
      if (this.#isStopped) {
        await client.close()
        return
      }
      this.#client = client
      listen(client, () => this.#lost(client))
      onTools(await toolsOf(client))
      this.#pauseMs = PAUSE_MS
    } catch (error) {
      onProblem(`The MCP server ${config.name} cannot be used: ${textOf(error)}`)
      await this.#drop()
      this.#again()
    }
  }

  async #drop(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    if (client === undefined) return
    listen(client, () => undefined)
    await client.close().catch(() => undefined)
  }

  #lost(client: Client): void {
    if (this.#client !== client || this.#isStopped) return
    this.#client = undefined
    this.#options.onProblem(`The MCP server ${this.#options.config.name} has ended; it is started again.`)
    this.#again()
  }

  #again(): void {
    if (this.#isStopped) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      void this.#connect()
    }, this.#pauseMs)
    this.#timer.unref()
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MS_MAX)
  }
}

/** Where a server of others says what a call has used: `{usd, tokens, seconds}` under this name in `_meta`. */
const USAGE = 'impresario/usage'

/** Not checked: it comes from outside. */
type OnUsage = (usage: Readonly<Record<string, unknown>>) => Promise<void>

/** What comes with a call of a tool. */
export interface OutsideCall {
  readonly signal: AbortSignal
  /** Hears what the server says that the call has used, before the answer is looked at. */
  readonly onUsage: OnUsage
  /** The trace that the call belongs to. The server is told of it in `_meta`. */
  readonly tracing?: TraceContext | undefined
}

function usageIn({ _meta: meta }: Readonly<Record<string, unknown>>): Parameters<OnUsage>[0] | undefined {
  const used = isRecord(meta) ? meta[USAGE] : undefined
  return isRecord(used) ? used : undefined
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** The library takes one listener, and has no other way to set it. */
function listen(client: Client, closed: () => void): void {
  // oxlint-disable-next-line unicorn/prefer-add-event-listener
  client.onclose = closed
}

/** The library is loaded only where servers are configured. */
async function open({ config, version }: OutsideServerOptions): Promise<Client> {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  const { target } = config
  const client = new Client({ name: 'impresario', version }, { versionNegotiation: { mode: 'auto' } })
  if (target.kind === 'http') {
    const options = { requestInit: { headers: target.headers }, fetch: boundedFetch(MESSAGE_BYTES_MAX) }
    await client.connect(new StreamableHTTPClientTransport(new URL(target.url), options), { timeout: CONNECT_MS })
    return client
  }
  const { getDefaultEnvironment, StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
  const { command, args, env, cwd } = target
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    // Nothing of this process but what every program needs: no tokens, no addresses.
    env: { ...getDefaultEnvironment(), ...env },
    stderr: 'ignore',
    maxBufferSize: MESSAGE_BYTES_MAX,
    ...(cwd === undefined ? {} : { cwd }),
  })
  await client.connect(transport, { timeout: CONNECT_MS })
  return client
}

/** What it says that it has, within bounds. What is beyond them is left out. */
async function toolsOf(client: Client): Promise<readonly ToldTool[]> {
  const { tools } = await client.listTools(undefined, { timeout: CONNECT_MS })
  return tools.slice(0, TOOLS_MAX).flatMap(({ name, description = '', inputSchema, outputSchema }) => {
    // Boundary: schemas came as JSON.
    const input = inputSchema as unknown as JsonObject
    const output = outputSchema as unknown as JsonObject | undefined
    const bytes = Buffer.byteLength(JSON.stringify([input, output ?? null]))
    if (bytes > SCHEMA_BYTES_MAX) return []
    return [{ name, description: plain(description), input, output }]
  })
}

/** Written by others: without control characters, and short. */
function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, DESCRIPTION_CHARS_MAX)
}

function answerOf(server: string, tool: string, result: Readonly<Record<string, unknown>>): Json {
  const { structuredContent, content, isError } = result
  const bytes = Buffer.byteLength(JSON.stringify([structuredContent ?? null, content ?? null]))
  if (bytes > ANSWER_BYTES_MAX) {
    throw new OutsideError(`${tool} of ${server} answered with ${bytes} bytes; ${ANSWER_BYTES_MAX} are allowed.`, true)
  }
  const text = textIn(content)
  if (isError === true) throw new OutsideError(`${tool} of ${server} refused: ${plain(text)}`, true)
  // Boundary: it came as JSON.
  const told = structuredContent as Json
  return isJsonObject(told) ? told : { text }
}

function textIn(content: unknown): string {
  if (!Array.isArray(content)) return ''
  return content
    .flatMap((block: unknown) =>
      typeof block === 'object' && block !== null && 'text' in block && typeof block.text === 'string'
        ? [block.text]
        : [],
    )
    .join('\n')
}

function textOf(error: unknown): string {
  return plain(error instanceof Error ? error.message : String(error))
}
