import { join } from 'node:path'
import { ConnectionError, createClient, ImpresarioError, isImpresarioError } from '@impresario/client'
import type { Client } from '@impresario/client'
import { DATA_DIRECTORY, readDevState } from './dev-state.ts'
import { COMMAND, Failure, usage } from './failure.ts'
import { createScreen } from './screen.ts'
import type { Screen } from './screen.ts'

/** The options that every command takes. */
export interface GlobalOptions {
  readonly url?: string
  readonly token?: string
  readonly json?: boolean
}

/** A server to talk to, and a screen to show what it says. */
export interface Session {
  readonly url: string
  readonly token: string | undefined
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
  const client = createClient(token === undefined ? { url } : { url, token })
  try {
    return await command({ url, token, client, screen: screenFor(options) })
  } catch (error) {
    if (error instanceof ConnectionError) throw unreachable(url, error)
    if (isImpresarioError(error)) throw refusal(error, url, token)
    throw error
  }
}

/** For the few calls that the client SDK does not have. */
export async function post({ url, token }: Session, path: string, body: object): Promise<void> {
  const response = await fetch(new URL(path, url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token === undefined ? {} : { 'x-client-token': token }) },
    body: JSON.stringify(body),
  }).catch((cause: unknown) => {
    throw new ConnectionError('The server could not be reached.', { cause })
  })
  if (!response.ok) throw refusalIn(await response.text(), response.status)
}

/** Boundary: every refusal of the server has a sentence and a code. */
function refusalIn(text: string, status: number): ImpresarioError {
  const { error, code } = JSON.parse(text) as { readonly error?: string; readonly code?: ImpresarioError['code'] }
  return new ImpresarioError(code ?? 'INTERNAL', error ?? `The server answered ${status}.`)
}

/** Options go before the environment, and the environment before a development server in this directory. */
async function addressOf(
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
  throw usage(`"${url}" is no address of a server.`, `It looks like ${DEFAULT_URL}.`)
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
  JOB_NOT_FOUND: `See what there is with "${COMMAND} jobs list". A job is only seen with the token that it was started with.`,
  BLUEPRINT_NOT_FOUND: `See what there is with "${COMMAND} blueprint list".`,
  NOT_WAITING: `See what it is doing with "${COMMAND} jobs show".`,
}

function refusal(error: ImpresarioError, url: string, token: string | undefined): Failure {
  const { code, message } = error
  if (code === 'UNAUTHENTICATED') return wrongToken(url, token, error)
  const hint = HINTS[code]
  return new Failure(code, message, { cause: error, ...(hint === undefined ? {} : { hint }) })
}

function wrongToken(url: string, token: string | undefined, cause: Error): Failure {
  const where = 'with --token or IMPRESARIO_TOKEN'
  if (token === undefined) {
    const hint = `Give a client's token ${where}. The token of a development server is found in ./${DATA_DIRECTORY}.`
    return new Failure('UNAUTHENTICATED', `The server at ${url} wants a token.`, { hint, cause })
  }
  const hint = `Give another one ${where}. It has to be a client's token: a worker's is refused.`
  return new Failure('UNAUTHENTICATED', `The server at ${url} does not accept this token.`, { hint, cause })
}
