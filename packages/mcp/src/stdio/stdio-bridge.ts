import type { Readable } from 'node:stream'
import { isJsonObject } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import { endpoint } from './assistant-configs.ts'
import { eventData } from './event-lines.ts'
import { inputLines } from './input-lines.ts'

export interface BridgeOptions {
  /** The address of the server. */
  readonly url: string
  readonly token: string | undefined
  readonly input: Readable
  /** One message as one line. */
  readonly write: (line: string) => void
  /** For people: assistants show it in their logs. */
  readonly warn: (text: string) => void
}

/** One message, in either direction. */
const MESSAGE_BYTES_MAX = 4_194_304
/** Requests under way at once; more wait in the input. */
const REQUESTS_MAX = 64

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'

/**
 * Lets an assistant that talks to a program over its input and output reach a server over HTTP. Messages pass as they are
 * written, in both revisions of the protocol; only the headers that HTTP needs are made from them.
 *
 * Runs until the input ends, and then cuts what is under way.
 */
export async function bridgeStdio(options: BridgeOptions): Promise<void> {
  const bridge = new Bridge(options)
  for await (const line of inputLines(options.input, MESSAGE_BYTES_MAX)) {
    if (line === undefined) bridge.refuse(null, -32_600, `A message has more than ${MESSAGE_BYTES_MAX} bytes.`)
    else await bridge.take(line)
  }
  bridge.close()
}

class Bridge {
  readonly #options: BridgeOptions
  readonly #address: string
  readonly #open = new Map<string, AbortController>()
  #freed: (() => void) | undefined
  #version: string | undefined
  #session: string | undefined

  constructor(options: BridgeOptions) {
    this.#options = options
    this.#address = endpoint(options)
  }

  /** Sends one message on its way. Resolves when there is room for the next one. */
  async take(line: string): Promise<void> {
    let message: Json
    try {
      message = JSON.parse(line) as Json
    } catch {
      this.refuse(null, -32_700, 'This line is no JSON.')
      return
    }
    const cancelled = cancelledId(message)
    if (cancelled !== undefined) this.#open.get(cancelled)?.abort()
    while (this.#open.size >= REQUESTS_MAX) {
      await new Promise<void>((resolve) => {
        this.#freed = resolve
      })
    }
    const sent = this.#send(line, message)
    // What comes after the greeting needs what the greeting brought.
    if (methodOf(message) === 'initialize') await sent
  }

  close(): void {
    for (const controller of this.#open.values()) controller.abort()
  }

  refuse(id: Json, code: number, message: string): void {
    this.#options.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }))
  }

  async #send(line: string, message: Json): Promise<void> {
    const controller = new AbortController()
    const key = keyOf(idOf(message)) ?? `notification-${nextNumber()}`
    this.#open.set(key, controller)
    try {
      const response = await fetch(this.#address, {
        method: 'POST',
        headers: this.#headers(message),
        body: line,
        signal: controller.signal,
      })
      await this.#receive(response, message)
    } catch (error) {
      if (!controller.signal.aborted) this.#fail(message, `No server answers at ${this.#address}: ${reasonOf(error)}.`)
    } finally {
      this.#open.delete(key)
      this.#freed?.()
    }
  }

  #headers(message: Json): Record<string, string> {
    const { token } = this.#options
    const version = versionIn(message)
    const name = nameIn(message)
    return {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(version === undefined
        ? legacyHeaders(this.#version, this.#session)
        : { 'mcp-protocol-version': version, 'mcp-method': methodOf(message) ?? '' }),
      ...(version === undefined || name === undefined ? {} : { 'mcp-name': headerText(name) }),
    }
  }

  async #receive(response: Response, message: Json): Promise<void> {
    this.#session = response.headers.get('mcp-session-id') ?? this.#session
    if (response.headers.get('content-type')?.startsWith('text/event-stream') === true && response.body !== null) {
      for await (const data of eventData(response.body, MESSAGE_BYTES_MAX)) this.#pass(data, message)
      return
    }
    const text = await response.text()
    if (text.trim() === '') {
      if (!response.ok) this.#fail(message, `The server answered with status ${response.status}.`)
      return
    }
    const body = parsed(text)
    const error = isJsonObject(body) ? body['error'] : undefined
    if (!response.ok && isJsonObject(body) && (body['id'] ?? null) === null) {
      const said = isJsonObject(error) && typeof error['message'] === 'string' ? error['message'] : text.slice(0, 500)
      this.#fail(message, `${said} (status ${response.status})`)
    } else {
      this.#pass(text, message)
    }
  }

  #pass(text: string, message: Json): void {
    if (methodOf(message) === 'initialize') this.#version = negotiatedIn(parsed(text)) ?? this.#version
    this.#options.write(text.replaceAll(/[\r\n]+/g, ' '))
  }

  /** A request is always answered; what goes wrong with a notification can only be told to people. */
  #fail(message: Json, text: string): void {
    this.#options.warn(text)
    const id = idOf(message)
    if (id !== undefined && methodOf(message) !== undefined) this.refuse(id, -32_603, text)
  }
}

let number = 0

function nextNumber(): number {
  number += 1
  return number
}

function legacyHeaders(version: string | undefined, session: string | undefined): Record<string, string> {
  return {
    ...(version === undefined ? {} : { 'mcp-protocol-version': version }),
    ...(session === undefined ? {} : { 'mcp-session-id': session }),
  }
}

function paramsOf(message: Json): JsonObject {
  return isJsonObject(message) && isJsonObject(message['params']) ? message['params'] : {}
}

function methodOf(message: Json): string | undefined {
  return isJsonObject(message) && typeof message['method'] === 'string' ? message['method'] : undefined
}

function idOf(message: Json): string | number | undefined {
  const id = isJsonObject(message) ? message['id'] : undefined
  return typeof id === 'string' || typeof id === 'number' ? id : undefined
}

function keyOf(id: string | number | undefined): string | undefined {
  return id === undefined ? undefined : `${typeof id}:${id}`
}

function cancelledId(message: Json): string | undefined {
  if (methodOf(message) !== 'notifications/cancelled') return undefined
  const id = paramsOf(message)['requestId']
  return typeof id === 'string' || typeof id === 'number' ? keyOf(id) : undefined
}

/** Since 2026-07-28 every message says its revision. */
function versionIn(message: Json): string | undefined {
  const meta = paramsOf(message)['_meta']
  const version = isJsonObject(meta) ? meta[VERSION_KEY] : undefined
  return typeof version === 'string' ? version : undefined
}

function nameIn(message: Json): string | undefined {
  const { name, uri, taskId } = paramsOf(message)
  const method = methodOf(message) ?? ''
  const value = method.startsWith('tasks/')
    ? taskId
    : method === 'resources/read'
      ? uri
      : NAMED.has(method)
        ? name
        : undefined
  return typeof value === 'string' ? value : undefined
}

const NAMED: ReadonlySet<string> = new Set(['tools/call', 'prompts/get'])

/** What a header cannot carry as it is goes in base64, as the protocol has it. */
function headerText(text: string): string {
  const isPlain = /^[!-~](?:[ -~]*[!-~])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

function negotiatedIn(body: Json): string | undefined {
  const result = isJsonObject(body) ? body['result'] : undefined
  return isJsonObject(result) && typeof result['protocolVersion'] === 'string' ? result['protocolVersion'] : undefined
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return null
  }
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return cause instanceof Error ? cause.message : String(cause)
}
