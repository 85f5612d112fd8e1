import { createHmac, randomBytes } from 'node:crypto'
import { derivedId, putAudit } from '@impresario/automations'
import { wallTime } from '@impresario/core'
import type { Clock, Storage } from '@impresario/core'
import { isJsonObject } from '@impresario/protocol'
import type { Json } from '@impresario/protocol'
import type { SecretKey } from '../config/secret-key.ts'
import { sameSecret } from '../runtime/secret.ts'
import type { AgentRecord } from './agent-record.ts'

/** What a signed token of a session says. Times are Unix seconds. */
export interface SessionClaims {
  /** The agent. */
  readonly sub: string
  readonly type: 'access' | 'refresh'
  readonly scopes: readonly string[]
  readonly iat: number
  readonly exp: number
  readonly jti: string
  /** The token of the agent that it signed in with. The session ends with it. */
  readonly cred: string
  /** The sign-in. Everything that comes of it is revoked together. */
  readonly sid: string
}

export interface SessionPair {
  readonly access: string
  readonly refresh: string
  readonly expiresInSeconds: number
}

const ACCESS_SECONDS = 3_600
const REFRESH_SECONDS = 30 * 86_400
const HEADER = Buffer.from(JSON.stringify({ alg: 'HS256', typ: 'JWT' })).toString('base64url')
const TEXT = /^(?<said>(?<header>[\w-]{1,200})\.(?<claims>[\w-]{1,8000}))\.(?<signature>[\w-]{43})$/

/**
 * Short-lived tokens that agents get for their secret, as clients of the old interface expect them: JSON Web Tokens. They
 * give nothing by themselves: the agent, the secret that it signed in with, and the scopes that it has now decide.
 */
export class AgentSessions {
  readonly #key: Buffer
  readonly #clock: Clock
  readonly #storage: Storage

  constructor({ secretKey, clock, storage }: { secretKey: SecretKey; clock: Clock; storage: Storage }) {
    this.#key = secretKey.derive('agent session')
    this.#clock = clock
    this.#storage = storage
  }

  issue({ id, name }: AgentRecord, scopes: readonly string[], cred: string, sid = newId()): SessionPair {
    const iat = Math.floor(wallTime(this.#clock) / 1_000)
    const base = { sub: id, scopes, iat, cred, sid }
    return {
      access: this.#sign({ ...base, type: 'access', name, exp: iat + ACCESS_SECONDS, jti: newId() }),
      refresh: this.#sign({ ...base, type: 'refresh', exp: iat + REFRESH_SECONDS, jti: newId() }),
      expiresInSeconds: ACCESS_SECONDS,
    }
  }

  /** What a token says, if it is ours, of this type and not too old. Whether it was revoked is another question. */
  read(token: string, type: SessionClaims['type']): SessionClaims | undefined {
    const parts = TEXT.exec(token)?.groups
    if (parts === undefined || parts['header'] !== HEADER) return undefined
    if (!sameSecret(parts['signature'] ?? '', this.#signature(parts['said'] ?? ''))) return undefined
    const claims = claimsIn(parts['claims'] ?? '')
    const isValid = claims?.type === type && claims.exp * 1_000 > wallTime(this.#clock)
    return isValid ? claims : undefined
  }

  async isRevoked({ sid }: SessionClaims): Promise<boolean> {
    return (await this.#storage.read('nonce', revokedId(sid))) !== undefined
  }

  /** Every token of the sign-in, on every instance, from the next request on. */
  async revoke({ sid, sub }: SessionClaims): Promise<void> {
    const at = wallTime(this.#clock)
    const entry = { id: derivedId(at, `revoked ${sid}`, sub), at, actor: sub, subject: sub, owner: sub, details: {} }
    // A conflict means that it was revoked before.
    await this.#storage.commit({
      put: [
        { kind: 'nonce', id: revokedId(sid), value: { at }, version: 1, expiresMs: REVOKED_MS },
        putAudit({ ...entry, action: 'agent.session_revoked' }),
      ],
    })
    await this.#storage.sync()
  }

  #sign(claims: object): string {
    const said = `${HEADER}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
    return `${said}.${this.#signature(said)}`
  }

  #signature(said: string): string {
    return createHmac('sha256', this.#key).update(said).digest('base64url')
  }
}

/** A session that is renewed in its last second ends this long after that. */
const REVOKED_MS = 2 * REFRESH_SECONDS * 1_000

function revokedId(sid: string): string {
  return `agent-session/${sid}`
}

function newId(): string {
  return randomBytes(32).toString('base64url')
}

/** Boundary: the signature says that we have written it. */
function claimsIn(text: string): SessionClaims | undefined {
  const claims: Json = JSON.parse(Buffer.from(text, 'base64url').toString()) as Json
  return isJsonObject(claims) ? (claims as unknown as SessionClaims) : undefined
}
