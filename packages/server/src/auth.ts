import type { IncomingHttpHeaders } from 'node:http'
import type { ClientInfo } from '@impresario/core'
import { HEADERS, ImpresarioError } from '@impresario/protocol'
import type { Caller, ClientRole } from './access.ts'
import { hashToken, sameSecret } from './secret.ts'
import type { TokenHash } from './secret.ts'
import type { WorkerCredentials } from './worker-credentials.ts'

export { hashToken } from './secret.ts'
export type { TokenHash } from './secret.ts'
export type { WorkerCredentials } from './worker-credentials.ts'

export interface ClientCredential {
  /** Any of them is right: while a token is changed, the old and the new one. */
  readonly tokens: readonly TokenHash[]
  readonly client: ClientInfo
  readonly role: ClientRole
  /** Jobs that it may start in a month; without it, as many as it likes. */
  readonly monthlyAttempts?: number
}

/**
 * Who a client is. Without any credentials at the start everybody is the one client; the server then listens to its own
 * machine only. Credentials that all go away later leave nobody who may call: what was closed never opens by itself.
 */
export class ClientAuth {
  readonly isOpen: boolean
  #byToken: ReadonlyMap<string, ClientCredential>
  #byId: ReadonlyMap<string, ClientCredential>

  constructor(credentials: readonly ClientCredential[]) {
    this.isOpen = credentials.length === 0
    this.#byToken = tokenIndex(credentials)
    this.#byId = new Map(credentials.map((credential) => [credential.client.id, credential]))
  }

  /** From now on these. Tokens that are not among them are nobody's at once. */
  replace(credentials: readonly ClientCredential[]): void {
    this.#byToken = tokenIndex(credentials)
    this.#byId = new Map(credentials.map((credential) => [credential.client.id, credential]))
  }

  authenticate(headers: IncomingHttpHeaders): Caller {
    if (this.isOpen) {
      mustBeLocal(headers)
      return OPEN_CALLER
    }
    const token = headerOf(headers, HEADERS.clientToken) ?? bearerOf(headers)
    if (token === undefined) throw new ImpresarioError('UNAUTHENTICATED', 'Missing X-Client-Token header')
    const hash = hashToken(token)
    const found = this.#byToken.get(hash.toString('latin1'))
    if (found?.tokens.some((known) => sameSecret(known, hash)) !== true) throw unauthorised()
    return found
  }

  /** What is configured for this client now. */
  credentialOf(clientId: string): ClientCredential | undefined {
    return this.#byId.get(clientId)
  }
}

function tokenIndex(credentials: readonly ClientCredential[]): ReadonlyMap<string, ClientCredential> {
  const index = new Map<string, ClientCredential>()
  for (const credential of credentials) {
    for (const token of credential.tokens) index.set(token.toString('latin1'), credential)
  }
  return index
}

/** On the own machine, without tokens, everybody may do everything. */
const OPEN_CALLER: Caller = { client: { id: 'default' }, role: 'admin' }

/**
 * Who a worker is. A worker with a token of its own must use that one: it never falls back to the global token. A
 * token is first recognised, before the body is read, and then held against the id that the request names.
 */
export class WorkerAuth {
  readonly #isOpen: boolean
  #credentials: WorkerCredentials

  constructor(credentials: WorkerCredentials, options: { readonly allowOpen: boolean }) {
    this.#credentials = credentials
    this.#isOpen = options.allowOpen && credentials.isEmpty
  }

  /** From now on these. Tokens that are not among them are nobody's at once. */
  replace(credentials: WorkerCredentials): void {
    this.#credentials = credentials
  }

  /** Refuses a token that is nobody's. Gives its hash for `identify`. */
  recognise(headers: IncomingHttpHeaders): TokenHash | undefined {
    if (this.#isOpen) {
      mustBeLocal(headers)
      return undefined
    }
    const token = headerOf(headers, HEADERS.workerToken) ?? bearerOf(headers)
    if (token === undefined) throw new ImpresarioError('UNAUTHENTICATED', 'Missing X-Worker-Token header')
    const hash = hashToken(token)
    if (!this.#credentials.knows(hash)) throw unauthorised()
    return hash
  }

  /** The worker that makes the request. `hinted` is the id that it names, if any. */
  identify(hash: TokenHash | undefined, hinted: string | undefined): string | undefined {
    if (this.#isOpen || hash === undefined) return hinted
    if (hinted === undefined) return this.#credentials.ownerOf(hash)
    if (!this.#credentials.accepts(hinted, hash)) throw unauthorised()
    return hinted
  }
}

/**
 * Without tokens, what protects a server on the own machine is that others cannot reach it. A web page can, by letting
 * its own name point here; but its requests then carry that name.
 */
export function mustBeLocal(headers: IncomingHttpHeaders): void {
  if (LOCAL_HOST.test(headers.host ?? '')) return
  throw new ImpresarioError(
    'FORBIDDEN',
    'Without tokens this server answers to localhost only. Set CLIENT_TOKEN and WORKER_TOKEN.',
  )
}

const LOCAL_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i

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
