import { createHash } from 'node:crypto'
import { ImpresarioError, isJsonObject, readScopes } from '@impresario/protocol'
import type { Json, JsonObject, Scope } from '@impresario/protocol'
import type { JWTPayload, JWTVerifyGetKey } from 'jose'
import { isSecureAddress } from '../config/oauth-keys.ts'
import type { OauthChoice } from '../config/oauth-keys.ts'
import type { Caller } from '../http/access.ts'
import type { AgentBook } from './agent-book.ts'
import { outsideId } from './agent-record.ts'
import { unauthorised } from './auth.ts'
import { withoutEndSlashes } from '../runtime/end-slashes.ts'

interface OutsideIssuersOptions extends OauthChoice {
  /** Is told what a caller may do that can leave automations behind. Called again only when it has changed. */
  readonly remember: (clientId: string, scopes: readonly Scope[]) => Promise<void>
}

/** What an issuer may answer with, and how long it may take. */
const ANSWER_BYTES_MAX = 262_144
const FETCH_MS = 5_000
/** Keys are fetched again after this time, and at most twice a minute for a key that is not known. */
const KEYS_MS = 600_000
const PAUSE_MS = 30_000
/** Clocks of two machines differ. */
const CLOCK_TOLERANCE_S = 5
/** Those with a public key. A shared secret could be made from the public key itself. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

const REMEMBERED_MAX = 1_000

/** Callers with a token (JWT, RFC 9068) of an issuer that the configuration trusts. */
export class OutsideIssuers {
  readonly #options: OutsideIssuersOptions
  readonly #keys = new Map<string, Keys>()
  readonly #remembered = new Map<string, string>()

  constructor(options: OutsideIssuersOptions) {
    this.#options = options
    for (const issuer of options.issuers) this.#keys.set(issuer, new Keys(issuer))
  }

  /** Whose token this is. `undefined`: it claims none of these issuers. Refuses one that claims it wrongly. */
  callerOf(token: string): Promise<Caller> | undefined {
    const issuer = issuerIn(token)
    const keys = issuer === undefined ? undefined : this.#keys.get(issuer)
    return keys === undefined || issuer === undefined ? undefined : this.#verified(token, issuer, keys)
  }

  async #verified(token: string, issuer: string, keys: Keys): Promise<Caller> {
    const { audiences, scopePrefix } = this.#options
    const { errors, jwtVerify } = await import('jose')
    const find = await keys.ready()
    let payload: JWTPayload
    try {
      const verified = await jwtVerify(token, find, {
        issuer,
        audience: [...audiences],
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_S,
        requiredClaims: ['exp'],
      })
      payload = verified.payload
    } catch (error) {
      // Only what is wrong with the token is the fault of its bearer.
      if (
        error instanceof errors.JOSEError &&
        !(error instanceof errors.JWKSTimeout) &&
        error.code !== 'ERR_JOSE_GENERIC'
      ) {
        throw unauthorised()
      }
      throw unreachable(issuer, error)
    }
    return this.#caller(issuer, payload, scopesIn(payload, scopePrefix))
  }

  async #caller(issuer: string, payload: JWTPayload, scopes: readonly Scope[]): Promise<Caller> {
    const subject = [payload.sub, payload['client_id'], payload['azp']].find(isName)
    if (subject === undefined) throw unauthorised()
    const id = outsideId(createHash('sha256').update(`${issuer}\0${subject}`).digest('hex'))
    if (scopes.includes('automations:write') || scopes.includes('admin')) await this.#remember(id, scopes)
    return {
      client: { id },
      role: scopes.includes('admin') ? 'admin' : 'client',
      scopes,
      onBehalfOf: subject,
    }
  }

  async #remember(id: string, scopes: readonly Scope[]): Promise<void> {
    const text = scopes.join(' ')
    if (this.#remembered.get(id) === text) return
    await this.#options.remember(id, scopes)
    this.#remembered.delete(id)
    this.#remembered.set(id, text)
    const [oldest] = this.#remembered.keys()
    if (this.#remembered.size > REMEMBERED_MAX && oldest !== undefined) this.#remembered.delete(oldest)
  }
}

/** Those whose tokens are accepted, where the configuration names some. */
export function outsideIssuers({
  oauth,
  agents,
}: {
  readonly oauth?: OauthChoice | undefined
  readonly agents: AgentBook
}): OutsideIssuers | undefined {
  const remember = (id: string, scopes: readonly Scope[]): Promise<void> => agents.rememberOutside(id, scopes)
  return oauth === undefined ? undefined : new OutsideIssuers({ ...oauth, remember })
}

/**
 * The keys of one issuer: fetched when the first token comes, kept for ten minutes. While an issuer cannot be reached it is
 * asked again after half a minute.
 */
class Keys {
  readonly #issuer: string
  #found: { readonly find: JWTVerifyGetKey; readonly until: number } | undefined
  #failed: { readonly error: unknown; readonly until: number } | undefined
  #fetching: Promise<JWTVerifyGetKey> | undefined

  constructor(issuer: string) {
    this.#issuer = issuer
  }

  async ready(): Promise<JWTVerifyGetKey> {
    const now = performance.now()
    if (this.#found !== undefined && now < this.#found.until) return this.#found.find
    if (this.#failed !== undefined && now < this.#failed.until) throw unreachable(this.#issuer, this.#failed.error)
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  async #fetch(): Promise<JWTVerifyGetKey> {
    try {
      const { createRemoteJWKSet, customFetch } = await import('jose')
      const url = await keysAddress(this.#issuer)
      const find = createRemoteJWKSet(url, {
        [customFetch]: boundedFetch,
        timeoutDuration: FETCH_MS,
        cooldownDuration: PAUSE_MS,
        cacheMaxAge: KEYS_MS,
      })
      this.#found = { find, until: performance.now() + KEYS_MS }
      this.#failed = undefined
      return find
    } catch (error) {
      this.#failed = { error, until: performance.now() + PAUSE_MS }
      throw unreachable(this.#issuer, error)
    }
  }
}

/** Where the keys are, from the metadata of the issuer: RFC 8414, else OpenID Connect Discovery. */
async function keysAddress(issuer: string): Promise<URL> {
  let problem: unknown
  for (const address of metadataAddresses(issuer)) {
    try {
      const signal = AbortSignal.timeout(FETCH_MS)
      const response = await boundedAnswer(await fetch(address, { redirect: 'error', signal }))
      if (!response.ok) throw new Error(`${address} answers with status ${response.status}.`)
      const { issuer: named, jwks_uri: uri } = metadataIn((await response.json()) as Json)
      if (named !== issuer) throw new Error(`${address} is about the issuer ${JSON.stringify(named)}.`)
      if (typeof uri !== 'string' || !isSecureAddress(uri)) throw new Error(`${address} names no jwks_uri with https.`)
      return new URL(uri)
    } catch (error) {
      problem = error
    }
  }
  throw problem
}

function metadataAddresses(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer)
  const path = withoutEndSlashes(pathname)
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
}

function metadataIn(body: Json): JsonObject {
  return isJsonObject(body) ? body : {}
}

/** Redirects are not followed: the keys are where the metadata says, or they are not there. */
async function boundedFetch(address: string, init: Omit<RequestInit, 'redirect'>): Promise<Response> {
  return boundedAnswer(await fetch(address, { ...init, redirect: 'error' }))
}

async function boundedAnswer({ body, status, headers }: Response): Promise<Response> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  // Boundary: the stream of an answer has bytes.
  for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.length
    if (bytes > ANSWER_BYTES_MAX) throw new Error(`The answer of an issuer has more than ${ANSWER_BYTES_MAX} bytes.`)
    pieces.push(piece)
  }
  return new Response(bytes === 0 ? null : Buffer.concat(pieces), { status, headers: jsonHeaders(headers) })
}

/** The body was unpacked already. */
function jsonHeaders(headers: Headers): Headers {
  return new Headers({ 'content-type': headers.get('content-type') ?? 'application/json' })
}

/** What a token says of its issuer, before anything of it is believed. */
function issuerIn(token: string): string | undefined {
  const parts = token.split('.')
  if (parts.length !== 3) return undefined
  try {
    const payload = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString('utf8')) as Json
    return isJsonObject(payload) && typeof payload['iss'] === 'string' ? payload['iss'] : undefined
  } catch {
    return undefined
  }
}

/** Our scopes in a token: `scope` as RFC 9068 has it, `scp` and `permissions` as some issuers do. */
function scopesIn(payload: JWTPayload, prefix: string): readonly Scope[] {
  const named = [payload['scope'], payload['scp'], payload['permissions']]
    .flatMap((claim): readonly unknown[] => (typeof claim === 'string' ? claim.split(' ') : listOf(claim)))
    .filter((one): one is string => typeof one === 'string' && one.startsWith(prefix))
  return readScopes(named.map((one) => one.slice(prefix.length))).scopes
}

function listOf(claim: unknown): readonly unknown[] {
  return Array.isArray(claim) ? claim : []
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= 255
}

function unreachable(issuer: string, cause: unknown): ImpresarioError {
  return new ImpresarioError(
    'OVERLOADED',
    `The keys of ${issuer} cannot be fetched, so its tokens cannot be checked.`,
    {
      cause,
      details: { retry_after_s: PAUSE_MS / 1_000 },
    },
  )
}
