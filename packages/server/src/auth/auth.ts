import type { IncomingHttpHeaders } from 'node:http'
import type { ClientInfo } from '@impresario/core'
import { HEADERS, ImpresarioError } from '@impresario/protocol'
import { MISSING_HEADER } from '../http/access.ts'
import type { Caller, ClientRole } from '../http/access.ts'
import { hashToken, sameSecret } from '../runtime/secret.ts'
import type { TokenHash } from '../runtime/secret.ts'

export { hashToken } from '../runtime/secret.ts'

export interface ClientCredential {
  /** Any of them is right: while a token is changed, the old and the new one. */
  readonly tokens: readonly TokenHash[]
  readonly client: ClientInfo
  readonly role: ClientRole
  /** Jobs that it may start in a month; without it, as many as it likes. */
  readonly monthlyAttempts?: number
  /** Files of all its jobs, and their bytes, where that differs from the settings; 0 without a limit. */
  readonly filesMax?: number
  readonly filesBytesMax?: number
}

/**
 * Who a client is. Without any credentials at the start all callers are one client; the server then listens to its own
 * machine only. With the first credentials that a reload brings this ends. Credentials that all go away later leave
 * no permitted callers: what was closed never opens by itself.
 */
export class ClientAuth {
  #isOpen: boolean
  #byToken: ReadonlyMap<string, ClientCredential>
  #byId: ReadonlyMap<string, ClientCredential>

  constructor(credentials: readonly ClientCredential[]) {
    this.#isOpen = credentials.length === 0
    this.#byToken = tokenIndex(credentials)
    this.#byId = new Map(credentials.map((credential) => [credential.client.id, credential]))
  }

  /** Replaces all credentials. Tokens that are not among them stop working at once. */
  replace(credentials: readonly ClientCredential[]): void {
    this.#byToken = tokenIndex(credentials)
    this.#byId = new Map(credentials.map((credential) => [credential.client.id, credential]))
    this.#isOpen &&= credentials.length === 0
  }

  authenticate(headers: IncomingHttpHeaders): Caller {
    if (this.#isOpen) {
      mustBeLocal(headers)
      return OPEN_CALLER
    }
    const token = tokenIn(headers)
    if (token === undefined) throw new ImpresarioError('UNAUTHENTICATED', MISSING_HEADER)
    return this.withToken(token)
  }

  /** Without any credentials everybody on this machine is let in. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  hasToken(headers: IncomingHttpHeaders): boolean {
    return tokenIn(headers) !== undefined
  }

  /** Whose token this is. */
  withToken(token: string): ClientCredential {
    const hash = hashToken(token)
    const found = this.#byToken.get(hash.toString('latin1'))
    if (found?.tokens.some((known) => sameSecret(known, hash)) !== true) throw unauthorised()
    return found
  }

  /** The client of this id, as its credentials are now. */
  credentialOf(clientId: string): ClientCredential | undefined {
    if (this.#isOpen) return clientId === OPEN_CALLER.client.id ? { ...OPEN_CALLER, tokens: [] } : undefined
    return this.#byId.get(clientId)
  }
}

function tokenIn(headers: IncomingHttpHeaders): string | undefined {
  return headerOf(headers, HEADERS.clientToken) ?? bearerOf(headers)
}

function tokenIndex(credentials: readonly ClientCredential[]): ReadonlyMap<string, ClientCredential> {
  const index = new Map<string, ClientCredential>()
  for (const credential of credentials) {
    for (const token of credential.tokens) index.set(token.toString('latin1'), credential)
  }
  return index
}

/** On the own machine, without tokens, everybody may do everything. */
export const OPEN_CALLER: Caller = { client: { id: 'default' }, role: 'admin' }

/**
 * Without tokens, what protects a server on the own machine is that others cannot reach it. Two can, and both give
 * themselves away:
 *
 * - A web page in a browser of this machine. It may let its own name point here, and then its requests carry that name;
 *   or it calls this machine by a form, an image or a socket, and then the browser says where the page is from.
 * - Requests through a proxy or a tunnel that runs here. Nearly all proxies say that they forward a request.
 */
export function mustBeLocal(headers: IncomingHttpHeaders): void {
  const { host = '', origin, 'sec-fetch-site': site } = headers
  const isOwnPage = origin === undefined || LOCAL_ORIGIN.test(origin)
  const isPassedOn = PASSED_ON.some((name) => headers[name] !== undefined)
  if (LOCAL_HOST.test(host) && isOwnPage && site !== 'cross-site' && !isPassedOn) return
  throw new ImpresarioError(
    'FORBIDDEN',
    'Without tokens this server answers to localhost only. Set CLIENT_TOKEN and WORKER_TOKEN.',
  )
}

const LOCAL_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i
const LOCAL_ORIGIN = /^https?:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i
const PASSED_ON = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

export function unauthorised(): ImpresarioError {
  return new ImpresarioError('UNAUTHENTICATED', 'Unauthorized: Invalid token')
}

export function headerOf(headers: IncomingHttpHeaders, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = headers[name]
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

export function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers
  return authorization?.toLowerCase().startsWith('bearer ') === true
    ? authorization.slice('bearer '.length).trim()
    : undefined
}
