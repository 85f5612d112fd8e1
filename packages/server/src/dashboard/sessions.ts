import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { wallTime } from '@impresario/core'
import type { Clock, Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { ClientAuth, ClientCredential } from '../auth/auth.ts'
import type { SecretKey } from '../config/secret-key.ts'
import type { Caller, Gate } from '../http/access.ts'
import { sameSecret } from '../runtime/secret.ts'

/** A working day. Somebody who comes back the next morning signs in again. */
const SESSION_MS = 12 * 3_600_000
/** A link that signs in is used soon or not at all. */
const CODE_MS = 3_600_000
/** A session that was ended at another instance is refused here after this long at the latest. */
const RECHECK_MS = 5_000
const CHECKED_MAX = 10_000

type Use = 'session' | 'code'

/** What a session or a code says: who it stands for, and until when. */
interface Said {
  readonly id: string
  readonly clientId: string
  /** Derived from the token that was shown: it stops working when that token does. */
  readonly tag: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

export interface OpenSession extends Said {
  readonly caller: Caller
}

export interface SessionParts {
  readonly auth: ClientAuth
  readonly secretKey: SecretKey
  readonly clock: Clock
  readonly storage: Storage
  /** Where people reach this server; empty for the address that a request was sent to. */
  readonly publicUrl: string
}

const TEXT =
  /^(?<said>(?<id>[\w-]{22})\.(?<client>[\w-]{1,2000})\.(?<tag>[\w-]{22})\.(?<expires>\d{1,12}))\.(?<signature>[\w-]{43})$/

/** The header that the dashboard sends along: no form, image or page of another origin can. */
export const DASHBOARD_HEADER = 'x-impresario-dashboard'

/**
 * Sessions of people in a browser, and the codes that begin one without typing a token.
 *
 * Both are signed texts, so that every instance with the same SECRET_KEY takes them, and nothing is stored while they are
 * open. A session ends by its time, with the token that it was begun with, or when its owner signs out, which leaves a
 * record until its time would have been up. A code is good for one session: using it leaves such a record too.
 */
export class Sessions implements Gate {
  readonly #parts: SessionParts
  readonly #key: Buffer
  readonly cookieName: string
  /** Sessions that were looked up, and when; the value says whether one has been ended. */
  readonly #checked = new Map<string, { readonly at: number; readonly isEnded: boolean }>()

  constructor(parts: SessionParts) {
    this.#parts = parts
    this.#key = parts.secretKey.derive('dashboard session')
    // Cookies know no ports: two servers on one machine must not overwrite each other's.
    this.cookieName = `impresario_${createHmac('sha256', this.#key).update('name').digest('hex').slice(0, 8)}`
  }

  /** Who calls: by a token, else by a session. */
  authenticate(headers: IncomingHttpHeaders): Caller {
    const { auth } = this.#parts
    const cookie = this.cookieIn(headers)
    if (cookie === undefined || auth.isOpen || auth.hasToken(headers)) return auth.authenticate(headers)
    this.#mustBeOwnPage(headers)
    return this.#opened('session', cookie).caller
  }

  admits(headers: IncomingHttpHeaders): boolean {
    try {
      return this.authenticate(headers) !== undefined
    } catch {
      return false
    }
  }

  /** The session of a request, for what concerns the session itself. */
  sessionOf(headers: IncomingHttpHeaders): OpenSession | undefined {
    const cookie = this.cookieIn(headers)
    if (cookie === undefined) return undefined
    this.#mustBeOwnPage(headers)
    return this.#opened('session', cookie)
  }

  /** Begins a session for who has shown this token. */
  begin(token: string): { readonly text: string; readonly session: OpenSession } {
    const { auth } = this.#parts
    return this.#issued('session', auth.withToken(token))
  }

  /** A code that begins a session of this client, once. */
  issueCode(clientId: string): { readonly code: string; readonly expiresAt: number } {
    const credential = this.#parts.auth.credentialOf(clientId)
    if (credential === undefined) throw new ImpresarioError('INVALID_REQUEST', 'There is no client of this name.')
    const { text, session } = this.#issued('code', credential)
    return { code: text, expiresAt: session.expiresAt }
  }

  /** Begins a session with a code, which is used up by it. */
  async redeem(code: string): Promise<{ readonly text: string; readonly session: OpenSession }> {
    const { id, clientId, expiresAt } = this.#opened('code', code)
    if (!(await this.#leaveRecord(`code ${id}`, expiresAt))) {
      throw new ImpresarioError('UNAUTHENTICATED', 'This link was used before. Ask for a new one.')
    }
    const credential = this.#parts.auth.credentialOf(clientId)
    if (credential === undefined) throw expired()
    return this.#issued('session', credential)
  }

  async end({ id, expiresAt }: OpenSession): Promise<void> {
    await this.#leaveRecord(`session ${id}`, expiresAt)
    this.#remember(id, true)
  }

  /** Refuses a session that its owner has ended, here or at another instance. */
  async mustNotBeEnded(headers: IncomingHttpHeaders): Promise<void> {
    const { auth, clock, storage } = this.#parts
    const cookie = this.cookieIn(headers)
    const id = cookie === undefined || auth.hasToken(headers) ? undefined : TEXT.exec(cookie)?.groups?.['id']
    if (id === undefined || auth.isOpen) return
    const known = this.#checked.get(id)
    if (known === undefined || (!known.isEnded && known.at + RECHECK_MS <= clock.now())) {
      this.#remember(id, (await storage.read('nonce', `session ${id}`)) !== undefined)
    }
    if (this.#checked.get(id)?.isEnded === true) throw expired()
  }

  cookieIn({ cookie = '' }: IncomingHttpHeaders): string | undefined {
    const start = `${this.cookieName}=`
    const found = cookie.split(/;\s*/).find((one) => one.startsWith(start))
    return found === undefined || found.length === start.length ? undefined : found.slice(start.length)
  }

  /**
   * A page elsewhere can make a browser send the cookie, but neither the header nor, in browsers that say where a request
   * comes from, the right origin.
   */
  #mustBeOwnPage(headers: IncomingHttpHeaders): void {
    const { [DASHBOARD_HEADER]: mark, 'sec-fetch-site': site, origin } = headers
    const isOwn = site === undefined ? this.#isOwnOrigin(origin, headers) : site === 'same-origin'
    if (mark === '1' && isOwn) return
    throw new ImpresarioError('FORBIDDEN', 'A session is for the dashboard of this server only. Programs use a token.')
  }

  #isOwnOrigin(origin: string | undefined, headers: IncomingHttpHeaders): boolean {
    if (origin === undefined) return true
    const host = URL.canParse(origin) ? new URL(origin).host : undefined
    const { publicUrl } = this.#parts
    const own = [
      headers.host,
      headers['x-forwarded-host'],
      URL.canParse(publicUrl) ? new URL(publicUrl).host : undefined,
    ]
    return host !== undefined && own.includes(host)
  }

  #issued(use: Use, credential: ClientCredential): { readonly text: string; readonly session: OpenSession } {
    const id = randomBytes(16).toString('base64url')
    const clientId = credential.client.id
    const tag = this.#tagOf(credential)
    const expiresS = Math.floor((wallTime(this.#parts.clock) + (use === 'session' ? SESSION_MS : CODE_MS)) / 1_000)
    const said = `${id}.${Buffer.from(clientId).toString('base64url')}.${tag}.${expiresS}`
    const session = { id, clientId, tag, expiresAt: expiresS * 1_000, caller: credential }
    return { text: `${said}.${this.#sign(use, said)}`, session }
  }

  #opened(use: Use, text: string): OpenSession {
    const parts = TEXT.exec(text)?.groups
    const isSigned = sameSecret(parts?.['signature'] ?? '', this.#sign(use, parts?.['said'] ?? ''))
    if (parts === undefined || !isSigned) throw expired()
    const expiresAt = Number(parts['expires']) * 1_000
    const clientId = Buffer.from(parts['client'] ?? '', 'base64url').toString()
    const caller = this.#parts.auth.credentialOf(clientId)
    const tag = parts['tag'] ?? ''
    if (wallTime(this.#parts.clock) >= expiresAt || caller === undefined || !this.#isTagOf(caller, tag)) throw expired()
    return { id: parts['id'] ?? '', clientId, tag, expiresAt, caller }
  }

  #sign(use: Use, said: string): string {
    return createHmac('sha256', this.#key).update(`${use}\n${said}`).digest('base64url')
  }

  /** All tokens of a client are good while one is being changed; the newest is the first. */
  #tagOf({ tokens: [token] }: ClientCredential): string {
    return this.#tag(token ?? Buffer.alloc(0))
  }

  #isTagOf({ tokens }: ClientCredential, tag: string): boolean {
    return tokens.length === 0 || tokens.some((token) => sameSecret(this.#tag(token), tag))
  }

  #tag(token: Buffer): string {
    return createHmac('sha256', this.#key).update(token).digest('base64url').slice(0, 22)
  }

  /** False when it is there already. */
  async #leaveRecord(id: string, expiresAt: number): Promise<boolean> {
    const { storage, clock } = this.#parts
    const now = wallTime(clock)
    const expiresMs = Math.max(1_000, expiresAt - now)
    const outcome = await storage.commit({ put: [{ kind: 'nonce', id, value: { at: now }, version: 1, expiresMs }] })
    await storage.sync()
    return outcome === 'committed'
  }

  #remember(id: string, isEnded: boolean): void {
    this.#checked.delete(id)
    this.#checked.set(id, { at: this.#parts.clock.now(), isEnded })
    if (this.#checked.size <= CHECKED_MAX) return
    const [oldest] = this.#checked.keys()
    if (oldest !== undefined) this.#checked.delete(oldest)
  }
}

function expired(): ImpresarioError {
  return new ImpresarioError('UNAUTHENTICATED', 'The session has ended. Sign in again.')
}
