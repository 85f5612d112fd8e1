import { join } from 'node:path'
import type { Client, ImpresarioError } from '@impresario/client'
import { DATA_DIRECTORY, readDevState } from './dev-state.ts'
import { COMMAND, EXIT, Failure, usage } from './failure.ts'
import { createScreen, printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { span } from './time.ts'

/** The options that every command takes. */
export interface GlobalOptions {
  readonly url?: string
  readonly token?: string
  readonly json?: boolean
}

/** A server to talk to, and a screen to show what it says. */
export interface Session {
  readonly client: Client
  readonly screen: Screen
}

const DEFAULT_URL = 'http://127.0.0.1:8080'

export function screenFor(options: GlobalOptions): Screen {
  const { stdout, stderr, env } = process
  return createScreen({ stdout, stderr, env, isJson: options.json === true })
}

/** Runs a command that talks to a server; what goes wrong there is said in the words of this program. */
export async function withServer<T>(options: GlobalOptions, command: (session: Session) => Promise<T>): Promise<T> {
  const { url, token } = await addressOf(options)
  // A command that asks no server does not wait for it either.
  const { ConnectionError, createClient, isImpresarioError } = await import('@impresario/client')
  // A person who waits for longer wants to know why.
  const client = createClient({ url, token, retryAfterMsMax: 3_000 })
  try {
    return await command({ client, screen: screenFor(options) })
  } catch (error) {
    if (error instanceof ConnectionError) throw unreachable(url, error)
    if (isImpresarioError(error)) throw refusal(error, url, token)
    throw error
  }
}

/** Says that it worked; as JSON, what the server answered. */
export function done(screen: Screen, text: string, answer?: object): number {
  if (screen.isJson) printJson(screen, answer ?? { status: 'ok' })
  else screen.out(`${screen.paint('green', '✓')} ${text}`)
  return EXIT.ok
}

/** Options go before the environment, and the environment before a development server in this directory. */
export async function addressOf(
  options: GlobalOptions,
): Promise<{ readonly url: string; readonly token: string | undefined }> {
  const { IMPRESARIO_URL, IMPRESARIO_TOKEN } = process.env
  const url = options.url ?? IMPRESARIO_URL
  const token = options.token ?? IMPRESARIO_TOKEN
  const isKnown = url !== undefined && token !== undefined
  const dev = isKnown ? undefined : await readDevState(join(process.cwd(), DATA_DIRECTORY))
  // Its token is for its own address: another server must not get to see it.
  const isDev = dev !== undefined && (url === undefined || sameOrigin(url, dev.url))
  return { url: checkUrl(url ?? dev?.url ?? DEFAULT_URL), token: token ?? (isDev ? dev.clientToken : undefined) }
}

function sameOrigin(a: string, b: string): boolean {
  return URL.canParse(a) && URL.canParse(b) && new URL(a).origin === new URL(b).origin
}

function checkUrl(url: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url
  throw usage(`"${url}" is not the address of a server.`, `For example: ${DEFAULT_URL}`)
}

function unreachable(url: string, cause: Error): Failure {
  return new Failure('UNREACHABLE', `No server answers at ${url}${reasonOf(cause.cause)}.`, {
    hint: `Start one with "${COMMAND} dev", or name another address with --url or IMPRESARIO_URL.`,
    cause,
  })
}

/** `fetch` only says that it failed; the reason is in its cause. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  if (typeof cause !== 'object' || cause === null || !('code' in cause)) return ''
  return ` (${String(cause.code)})`
}

const HINTS: Readonly<Record<string, string>> = {
  FORBIDDEN: 'The token is valid, but it may not do this.',
  JOB_NOT_FOUND: `See what there is with "${COMMAND} jobs list". A job is visible only to the client that started it, and to admins.`,
  BLUEPRINT_NOT_FOUND: `See what there is with "${COMMAND} blueprint list".`,
  NOT_WAITING: `See what it is doing with "${COMMAND} jobs show <job>".`,
  STALE_DECISION: `See what it asks now with "${COMMAND} jobs approve <job>".`,
  WORKER_NOT_FOUND: `See who is here with "${COMMAND} workers list".`,
  QUOTA_EXCEEDED: `See what is left, and when it is renewed, with "${COMMAND} account".`,
}

function refusal(error: ImpresarioError, url: string, token: string | undefined): Failure {
  const { code, message } = error
  if (code === 'UNAUTHENTICATED') return wrongToken(url, token, error)
  const waitS = error.details['retry_after_s']
  const wait = code === 'TOO_MANY_REQUESTS' && typeof waitS === 'number' ? `Try again in ${span(waitS)}.` : undefined
  const hint = wait ?? HINTS[code]
  return new Failure(code, message, { cause: error, ...(hint === undefined ? {} : { hint }) })
}

function wrongToken(url: string, token: string | undefined, cause: Error): Failure {
  const where = 'with --token or IMPRESARIO_TOKEN'
  if (token === undefined) {
    const hint = `Give a client's token ${where}. The token of a development server is found in ./${DATA_DIRECTORY}.`
    return new Failure('UNAUTHENTICATED', `The server at ${url} requires a token.`, { hint, cause })
  }
  const hint = `Give another one ${where}. Use a client's token, not a worker's.`
  return new Failure('UNAUTHENTICATED', `The server at ${url} does not accept this token.`, { hint, cause })
}
