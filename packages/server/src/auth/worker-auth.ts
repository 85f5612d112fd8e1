import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { HEADERS, ImpresarioError } from '@impresario/protocol'
import type { AccessTokens } from './access-tokens.ts'
import { bearerOf, headerOf, mustBeLocal, unauthorised } from './auth.ts'
import { certificateOf } from '../http/certificate.ts'
import type { Settings } from '../config/config.ts'
import { hashToken } from '../runtime/secret.ts'
import type { TokenHash } from '../runtime/secret.ts'
import type { WorkerCredentials } from './worker-credentials.ts'

/** How a request has shown who makes it. */
export type Proof =
  | { readonly by: 'localhost' }
  | { readonly by: 'certificate'; readonly names: readonly string[] }
  | {
      readonly by: 'access token'
      readonly hash: TokenHash
      /** `undefined`: it stands for a credential that several workers share. */
      readonly workerId: string | undefined
      readonly family: string
      readonly credential: string
    }
  | { readonly by: 'token'; readonly hash: TokenHash }

/** How `localhost` is written in stored access tokens: its first name, which older instances know too. */
const STORED_LOCALHOST = 'place'

export interface WorkerAuthOptions {
  readonly tokens: AccessTokens
  readonly mode: Settings['workerAuthMode']
  /** Without any credentials everybody on this machine may be a worker. */
  readonly allowOpen: boolean
}

/**
 * Who a worker is. First what it shows is recognised, before its body is read; then that is held against the id that the
 * request names. In this order: a certificate, a short-lived token, the worker's own token, the global one. A worker that
 * has a token of its own never gets in with the global one.
 *
 * 401 means that the caller is not known, 403 that it is known and not permitted.
 */
export class WorkerAuth {
  readonly #options: WorkerAuthOptions
  #isOpen: boolean
  #credentials: WorkerCredentials

  constructor(credentials: WorkerCredentials, options: WorkerAuthOptions) {
    this.#credentials = credentials
    this.#options = options
    this.#isOpen = options.allowOpen && options.mode !== 'mtls-only' && credentials.isEmpty
  }

  /** Replaces all credentials. Tokens that are not among them stop working at once, and the short-lived ones they gave too. */
  replace(credentials: WorkerCredentials): void {
    this.#credentials = credentials
    this.#isOpen &&= credentials.isEmpty
  }

  /** Refuses unknown tokens. Waits only for tokens that are not among the credentials: the short-lived ones. */
  recognise(headers: IncomingHttpHeaders, socket: Socket): Proof | Promise<Proof> {
    const { mode } = this.#options
    if (mode !== 'token-only') {
      const certificate = certificateOf(socket)
      if (certificate?.problem !== undefined) throw unauthenticated(`Unauthorized: ${certificate.problem}`)
      if (certificate !== undefined) return { by: 'certificate', names: certificate.names }
    }
    const token = headerOf(headers, HEADERS.workerToken) ?? bearerOf(headers)
    if (token !== undefined) {
      const hash = hashToken(token)
      if (!this.#credentials.knows(hash)) return this.#recogniseShortLived(hash, headers)
      if (mode !== 'mtls-only') return { by: 'token', hash }
    }
    return this.#recogniseLocal(headers, token !== undefined)
  }

  async #recogniseShortLived(hash: TokenHash, headers: IncomingHttpHeaders): Promise<Proof> {
    const found = await this.#options.tokens.find(hash)
    if (found === undefined || !this.isCurrent(found)) return this.#recogniseLocal(headers, true)
    const { workerId, family, credential } = found
    return { by: 'access token', hash, workerId, family, credential }
  }

  #recogniseLocal(headers: IncomingHttpHeaders, hasToken: boolean): Proof {
    if (this.#isOpen) {
      mustBeLocal(headers)
      return { by: 'localhost' }
    }
    if (hasToken) throw unauthorised()
    const isMtls = this.#options.mode === 'mtls-only'
    throw unauthenticated(isMtls ? 'A client certificate is required' : 'Missing X-Worker-Token header')
  }

  /**
   * The worker that makes the request. `hinted` is the id that the request names, if any. `undefined`: one of those that
   * share a token, and it does not say which.
   */
  identify(proof: Proof, hinted: string | undefined): string | undefined {
    switch (proof.by) {
      case 'localhost':
        return hinted
      case 'certificate':
        if (hinted === undefined) return proof.names[0]
        if (proof.names.includes(hinted)) return hinted
        throw new ImpresarioError('FORBIDDEN', 'The certificate belongs to another worker.', {
          details: { reason: 'identity' },
        })
      case 'access token':
        if (hinted === undefined || hinted === proof.workerId) return proof.workerId
        if (proof.workerId === undefined) {
          if (this.isCurrent({ workerId: hinted, credential: proof.credential })) return hinted
          throw unauthorised()
        }
        throw new ImpresarioError('FORBIDDEN', 'The access token belongs to another worker.', {
          details: { reason: 'identity' },
        })
      case 'token':
        if (hinted === undefined) return this.#credentials.ownerOf(proof.hash)
        if (this.#credentials.accepts(hinted, proof.hash)) return hinted
        throw unauthorised()
    }
  }

  /** Names what a worker has signed in with, without giving it away. */
  credentialOf(proof: Exclude<Proof, { by: 'access token' }>): string {
    if (proof.by === 'token') return fingerprint(proof.hash)
    return proof.by === 'localhost' ? STORED_LOCALHOST : proof.by
  }

  /** Whether what a worker signed in with would still let it in. */
  isCurrent({ workerId, credential }: { readonly workerId?: string; readonly credential: string }): boolean {
    const { mode } = this.#options
    if (credential === 'certificate') return mode !== 'token-only'
    if (mode === 'mtls-only') return false
    if (credential === STORED_LOCALHOST) return this.#isOpen
    const tokens = workerId === undefined ? this.#credentials.shared : this.#credentials.tokensOf(workerId)
    return tokens.some((token) => fingerprint(token) === credential)
  }

  /** Whether what let a worker in some time ago would do so now. */
  async isStillGood(proof: Proof, workerId: string | undefined): Promise<boolean> {
    if (proof.by === 'access token') {
      const found = await this.#options.tokens.find(proof.hash)
      if (found === undefined) return false
      return this.isCurrent(workerId === undefined ? found : { ...found, workerId })
    }
    if (proof.by === 'localhost') return this.#isOpen
    if (proof.by === 'certificate') return true
    return workerId === undefined
      ? this.#credentials.knows(proof.hash)
      : this.#credentials.accepts(workerId, proof.hash)
  }

  /** What this worker's messages must be signed with, if they must. */
  signingOf(workerId: string): readonly string[] | undefined {
    return this.#credentials.tableOf(workerId)?.signing
  }

  /** For a call that brings its own proof: where everybody may be a worker, he must at least be on this machine. */
  mustBeNear(headers: IncomingHttpHeaders): void {
    if (this.#isOpen) mustBeLocal(headers)
  }
}

function fingerprint(hash: TokenHash): string {
  return createHash('sha256').update(hash).digest('hex').slice(0, 32)
}

function unauthenticated(message: string): ImpresarioError {
  return new ImpresarioError('UNAUTHENTICATED', message)
}
