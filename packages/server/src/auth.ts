import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { ClientInfo } from '@impresario/core'
import { HEADERS, ImpresarioError } from '@impresario/protocol'

/** Tokens are kept as hashes only: who reads the memory or the log of this process cannot use them. */
export type TokenHash = Buffer

export function hashToken(token: string): TokenHash {
  return createHash('sha256').update(token).digest()
}

export interface ClientCredential {
  readonly tokenHash: TokenHash
  readonly client: ClientInfo
  /** Jobs that it may start in a month. */
  readonly monthlyAttempts?: number
}

export interface WorkerCredentials {
  /** By worker id. */
  readonly individual: ReadonlyMap<string, TokenHash>
  readonly global: TokenHash | undefined
}

/** Who a client is. Without any credentials everybody is the one client; the server then listens to its own machine only. */
export class ClientAuth {
  readonly #byHash = new Map<string, ClientCredential>()

  constructor(credentials: readonly ClientCredential[]) {
    for (const credential of credentials) this.#byHash.set(credential.tokenHash.toString('latin1'), credential)
  }

  authenticate(headers: IncomingHttpHeaders): ClientInfo {
    if (this.#byHash.size === 0) {
      mustBeLocal(headers)
      return OPEN_CLIENT
    }
    const token = headerOf(headers, HEADERS.clientToken) ?? bearerOf(headers)
    if (token === undefined) throw new ImpresarioError('UNAUTHENTICATED', 'Missing X-Client-Token header')
    const hash = hashToken(token)
    const found = this.#byHash.get(hash.toString('latin1'))
    if (found === undefined || !timingSafeEqual(found.tokenHash, hash)) {
      throw new ImpresarioError('UNAUTHENTICATED', 'Unauthorized: Invalid token')
    }
    return found.client
  }
}

const OPEN_CLIENT: ClientInfo = { id: 'default' }

/**
 * Who a worker is. A worker with a token of its own must use that one: it never falls back to the global token. A
 * token is first recognised, before the body is read, and then held against the id that the request names.
 */
export class WorkerAuth {
  readonly #credentials: WorkerCredentials
  readonly #known = new Set<string>()
  readonly #isOpen: boolean

  constructor(credentials: WorkerCredentials, options: { readonly allowOpen: boolean }) {
    this.#credentials = credentials
    const { individual, global } = credentials
    for (const hash of individual.values()) this.#known.add(hash.toString('latin1'))
    if (global !== undefined) this.#known.add(global.toString('latin1'))
    this.#isOpen = options.allowOpen && this.#known.size === 0
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
    if (!this.#known.has(hash.toString('latin1'))) throw unauthorised()
    return hash
  }

  /** The worker that makes the request. `hinted` is the id that it names, if any. */
  identify(hash: TokenHash | undefined, hinted: string | undefined): string | undefined {
    if (this.#isOpen || hash === undefined) return hinted
    const { individual, global } = this.#credentials
    if (hinted === undefined) {
      for (const [id, own] of individual) if (timingSafeEqual(own, hash)) return id
      return undefined
    }
    const own = individual.get(hinted)
    const wanted = own ?? global
    if (wanted === undefined || !timingSafeEqual(wanted, hash)) throw unauthorised()
    return hinted
  }
}

/**
 * Without tokens, what protects a server on the own machine is that others cannot reach it. A web page can, by letting
 * its own name point here; but its requests then carry that name.
 */
function mustBeLocal(headers: IncomingHttpHeaders): void {
  if (LOCAL_HOST.test(headers.host ?? '')) return
  throw new ImpresarioError(
    'FORBIDDEN',
    'Without tokens this server answers to localhost only. Set CLIENT_TOKEN and WORKER_TOKEN.',
  )
}

const LOCAL_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i

function unauthorised(): ImpresarioError {
  return new ImpresarioError('UNAUTHENTICATED', 'Unauthorized: Invalid token')
}

function headerOf(headers: IncomingHttpHeaders, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = headers[name]
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers
  return authorization?.toLowerCase().startsWith('bearer ') === true
    ? authorization.slice('bearer '.length).trim()
    : undefined
}
