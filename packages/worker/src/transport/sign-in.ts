import { WORKER_PATHS } from '@impresario/protocol'
import { refusalOf, replyOf, type HttpAnswer, type HttpLine } from './http-line.ts'
import { messageOf, type Log } from '../runtime/log.ts'
import { TransportError } from './transport.ts'

interface SignInOptions {
  readonly line: HttpLine
  /** The token that does not expire, if there is one; a client certificate may stand for it. */
  readonly token: string | undefined
  readonly sts: 'yes' | 'no' | 'if offered'
  readonly log: Log
  readonly now?: () => number
}

interface TokenReply {
  readonly access_token?: unknown
  readonly expires_in?: unknown
  readonly refresh_token?: unknown
}

const EXPIRES_S = 3_600
/** No sooner than this after the last one, and at four fifths of a token's life. */
const RENEW_S_MIN = 60
const RENEW_SHARE = 0.8

/**
 * The token for the next request.
 *
 * Without short-lived tokens, always the same. With them: none at first, then fresh for four fifths of its life, then
 * still good while a new one is fetched, then gone. A request that is refused as unknown makes it gone at once.
 */
export class SignIn {
  readonly #options: SignInOptions
  readonly #now: () => number
  #access: string | undefined
  #refresh: string | undefined
  #renewAt = 0
  #expiresAt = 0
  #notOffered = false
  #fetching: Promise<void> | undefined

  constructor(options: SignInOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** Rejects when a short-lived token is needed and cannot be had. */
  async token(): Promise<string | undefined> {
    const { sts, token } = this.#options
    if (sts === 'no' || this.#notOffered) return token
    const now = this.#now()
    if (this.#access !== undefined && now < this.#renewAt) return this.#access
    try {
      this.#fetching ??= this.#fetch()
      await this.#fetching
    } catch (error) {
      // The next try is a moment away, and until its end the old one is good.
      if (this.#access === undefined || now >= this.#expiresAt) throw error
      this.#options.log.warn('The token could not be renewed yet.', { error: messageOf(error) })
      this.#renewAt = now + RENEW_S_MIN * 1_000
    } finally {
      this.#fetching = undefined
    }
    return this.#notOffered ? token : this.#access
  }

  /** After a reply that this token is unknown. Returns whether there is another one to try. */
  async renew(refused: string | undefined): Promise<boolean> {
    if (this.#options.sts === 'no' || this.#notOffered) return false
    if (this.#access === refused) this.#access = undefined
    return (await this.token()) !== refused
  }

  async #fetch(): Promise<void> {
    const { line, token, sts, log } = this.#options
    if (this.#refresh !== undefined) {
      const body = JSON.stringify({ refresh_token: this.#refresh })
      // A second use of a refresh token counts as theft, so it is spent before the reply is known.
      this.#refresh = undefined
      const answer = await line.request({ method: 'POST', path: WORKER_PATHS.tokenRefresh, token, body })
      if (answer.status < 300) return this.#take(answer)
      log.info('The refresh token is no longer valid; signing in again.', { status: answer.status })
    }
    const call = { method: 'POST', path: WORKER_PATHS.token, token } as const
    const answer = await line.request(call)
    if (answer.status < 300) return this.#take(answer)
    if (sts === 'yes' || answer.status === 401 || answer.status >= 429) {
      const { message, retryAfterMs } = refusalOf(call, answer)
      const { status } = answer
      throw new TransportError('unavailable', message, {
        status,
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      })
    }
    log.info('The orchestrator has no short-lived tokens.', { orchestrator: line.name, status: answer.status })
    this.#notOffered = true
  }

  #take(answer: HttpAnswer): void {
    const { access_token: access, expires_in: expires, refresh_token: refresh } = replyOf<TokenReply>(answer)
    if (typeof access !== 'string') throw new TransportError('unavailable', 'The sign-in was answered without a token.')
    const lifeS = typeof expires === 'number' && expires > 0 ? expires : EXPIRES_S
    const now = this.#now()
    this.#access = access
    this.#refresh = typeof refresh === 'string' ? refresh : undefined
    this.#renewAt = now + Math.max(RENEW_S_MIN, RENEW_SHARE * lifeS) * 1_000
    this.#expiresAt = now + lifeS * 1_000
  }
}
