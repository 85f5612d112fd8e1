import type { FastifyContextConfig, FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '@impresario/core'
import { HEADERS, ImpresarioError } from '@impresario/protocol'
import type { Caller, RateKind } from '../http/access.ts'
import { addressKey } from './address-key.ts'
import { isOver, whenOver } from '../http/answer-end.ts'
import { problemBody } from '../http/problem.ts'
import { hashToken } from '../runtime/secret.ts'
import type { TokenHash } from '../runtime/secret.ts'
import { headerOf, bearerOf } from '../auth/auth.ts'
import type { RateLimiter, RateRule, Verdict } from './rate-limiter.ts'
import type { SecuritySettings } from '../config/security-keys.ts'
import type { Proof } from '../auth/worker-auth.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** What its requests are counted under, once the caller is known. */
    rateKey: string | undefined
  }
}

export interface RateLimitOptions {
  readonly settings: SecuritySettings
  readonly limiter: RateLimiter
  readonly clock: Clock
}

interface RateRules extends Readonly<Record<RateKind, RateRule>> {
  /** Callers without a token; by address. */
  readonly public: RateRule
  /** Wrong tokens; by address. */
  readonly failed: RateRule
}

function rateRules(settings: SecuritySettings): RateRules {
  const periodMs = settings.rateLimitPeriodSeconds * 1_000
  return {
    general: { limit: settings.rateLimitGeneral, periodMs },
    heartbeat: { limit: settings.rateLimitHeartbeat, periodMs },
    poll: { limit: settings.rateLimitPoll, periodMs },
    public: { limit: settings.rateLimitPublic, periodMs },
    failed: { limit: settings.rateLimitFailedAuth, periodMs },
  }
}

/** Addresses with a recent sign-in; more than this are forgotten, the oldest first. */
const GUESTS_MAX = 50_000

/** Who has come in from where. */
class Guests {
  readonly #known = new Set<string>()

  has(address: string, who: string): boolean {
    return this.#known.has(`${address} ${who}`)
  }

  add(address: string, who: string): void {
    this.#known.add(`${address} ${who}`)
    if (this.#known.size <= GUESTS_MAX) return
    const [oldest] = this.#known
    if (oldest !== undefined) this.#known.delete(oldest)
  }
}

/** Polls that need not be counted, by who earned them. What is forgotten costs its owner one count. */
class Credits {
  readonly #left = new Map<string, number>()

  earn(who: string): void {
    if (this.#left.size < GUESTS_MAX || this.#left.has(who)) this.#left.set(who, (this.#left.get(who) ?? 0) + 1)
  }

  spend(who: string): boolean {
    const left = this.#left.get(who)
    if (left === undefined) return false
    if (left === 1) this.#left.delete(who)
    else this.#left.set(who, left - 1)
    return true
  }
}

/** A request, as far as it is looked at here. */
export interface Asker {
  readonly caller: Caller | undefined
  readonly workerProof: Proof | undefined
  readonly headers: FastifyRequest['headers']
  readonly params: unknown
  readonly ip: string | undefined
  readonly ips?: readonly string[] | undefined
  readonly socket: { readonly remoteAddress?: string | undefined }
  readonly routeOptions: { readonly config: Pick<FastifyContextConfig, 'access' | 'rate' | 'isProvenByBody'> }
  rateKey: string | undefined
}

/**
 * Limits per client, per worker and, for callers without a token, per address. They are counted when the caller is known
 * and before the body is read.
 *
 * Wrong tokens are counted per address, always. Once there were too many of them, that address gets the same answer for
 * wrong and right ones, so that guessing tells nothing; only who has come in from there before goes on being served,
 * because many honest callers may share the address with one that guesses.
 *
 * The own machine is not limited by address: who is there needs no guessing, and a proxy that is there and not named in
 * TRUST_PROXY would be locked out for all that come through it.
 */
export class Rates {
  readonly #options: RateLimitOptions
  readonly #rules: RateRules
  readonly #guests = new Guests()
  readonly #credits = new Credits()
  readonly #atOnce: AtOnce

  constructor(options: RateLimitOptions) {
    this.#options = options
    this.#rules = rateRules(options.settings)
    this.#atOnce = new AtOnce(options.settings.requestsAtOnceMax)
  }

  /** Counts one request. Every one comes through here: as long as the limiter answers at once, no promise is made. */
  judge(asker: Asker): Refusable {
    const { settings, limiter, clock } = this.#options
    const rules = this.#rules
    const now = clock.now()
    const who = callerKey(asker)
    const address = addressKey(asker)
    if (who === undefined) {
      if (address === undefined) return undefined
      const countPublic = (): Refusable =>
        settings.rateLimitingEnabled ? limiter.take(`public ${address}`, rules.public, now) : undefined
      if (asker.routeOptions.config.isProvenByBody !== true) return countPublic()
      return followed(limiter.look(`failed ${address}`, rules.failed, now), (verdict) =>
        verdict.isAllowed ? countPublic() : verdict,
      )
    }
    const kind = asker.routeOptions.config.rate ?? 'general'
    if (address === undefined || this.#guests.has(address, who)) return this.#count(kind, who, now)
    return followed(limiter.look(`failed ${address}`, rules.failed, now), (verdict) => {
      if (!verdict.isAllowed) return verdict
      this.#guests.add(address, who)
      return this.#count(kind, who, now)
    })
  }

  #count(kind: RateKind, who: string, now: number): Refusable {
    const { settings, limiter } = this.#options
    if (!settings.rateLimitingEnabled || (kind === 'poll' && this.#credits.spend(who))) return undefined
    return limiter.take(`${kind} ${who}`, this.#rules[kind], now)
  }

  /** Under whom open requests count; `undefined` where they do not. To be asked while the connection is there. */
  whoIs(asker: Asker): string | undefined {
    return this.#options.settings.rateLimitingEnabled ? whoIs(asker) : undefined
  }

  /** False when the caller has too many requests open. Where it is true, `leave` is to be called in the end. */
  enter(who: string | undefined): boolean {
    return this.#atOnce.enter(who)
  }

  leave(who: string | undefined): void {
    this.#atOnce.leave(who)
  }

  /** A poll that brought a task has paid for the next one: who is kept busy may ask as often as there is work. */
  earn(asker: Asker): void {
    const who = callerKey(asker)
    if (who !== undefined) this.#credits.earn(who)
  }

  /** Counts a wrong token. Nothing for the own machine. */
  fail(asker: Asker): Refusable {
    const { limiter, clock } = this.#options
    const address = addressKey(asker)
    return address === undefined ? undefined : limiter.take(`failed ${address}`, this.#rules.failed, clock.now())
  }
}

export function limitRates(app: FastifyInstance, rates: Rates): void {
  app.decorateRequest('rateKey', undefined)

  app.addHook('preParsing', (request, reply, payload, done) => {
    const go = (verdict: Verdict | undefined): void => {
      if (verdict !== undefined && !verdict.isAllowed) {
        done(tooMany(verdict))
        return
      }
      if (!isOver(reply.raw)) {
        const who = rates.whoIs(request)
        if (!rates.enter(who)) {
          done(tooManyAtOnce())
          return
        }
        if (who !== undefined) whenOver(reply.raw, () => rates.leave(who))
      }
      done(null, payload)
    }
    const verdict = rates.judge(request)
    if (verdict instanceof Promise) verdict.then(go, done)
    else go(verdict)
  })

  app.addHook('onResponse', (request, _reply, done) => {
    if (request.hasBrought === true) rates.earn(request)
    done()
  })

  app.addHook('onSend', (request, reply, payload, done) => {
    const verdict = isWrongToken(request, reply.statusCode) ? rates.fail(request) : undefined
    const answer = (found: Verdict | undefined): void => {
      if (found === undefined || found.isAllowed) {
        done(null, payload)
        return
      }
      void reply.code(429).header('retry-after', String(seconds(found.retryMs)))
      done(null, JSON.stringify(problemBody(tooMany(found))))
    }
    if (verdict instanceof Promise) verdict.then(answer, done)
    else answer(verdict)
  })
}

/** An unknown token in a body is answered with 403, as workers expect it. */
function isWrongToken({ routeOptions }: FastifyRequest, status: number): boolean {
  return status === 401 || (status === 403 && routeOptions.config.isProvenByBody === true)
}

/** Who asks, as far as it is known; `undefined` for the own machine without a token. */
function whoIs(request: Asker): string | undefined {
  const who = callerKey(request)
  if (who !== undefined) return who
  const address = addressKey(request)
  return address === undefined ? undefined : `public ${address}`
}

function tooManyAtOnce(): ImpresarioError {
  const message = 'Too many of your requests are under way at the same time. Wait for some of them.'
  return new ImpresarioError('TOO_MANY_REQUESTS', message, { details: { retry_after_s: 1 } })
}

/** Requests that are under way, by who makes them. */
class AtOnce {
  readonly #max: number
  readonly #counts = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  enter(who: string | undefined): boolean {
    if (who === undefined) return true
    const count = (this.#counts.get(who) ?? 0) + 1
    if (count > this.#max) return false
    this.#counts.set(who, count)
    return true
  }

  leave(who: string | undefined): void {
    if (who === undefined) return
    const left = (this.#counts.get(who) ?? 1) - 1
    if (left === 0) this.#counts.delete(who)
    else this.#counts.set(who, left)
  }
}

type Refusable = Verdict | undefined | Promise<Verdict | undefined>

function followed(verdict: Verdict | Promise<Verdict>, next: (verdict: Verdict) => Refusable): Refusable {
  return verdict instanceof Promise ? verdict.then(next) : next(verdict)
}

/**
 * A client by its id. A worker by its token and the id that it names: a token may be shared by many workers; where it
 * names none, as the older ones do with results, by its address.
 *
 * No caller without a verified identity: one that could invent keys would have a new limit with each of them, and push
 * the counts of others out of the memory.
 */
function callerKey(request: Asker): string | undefined {
  request.rateKey ??= newCallerKey(request)
  return request.rateKey
}

function newCallerKey(request: Asker): string | undefined {
  const { caller, headers, workerProof } = request
  if (caller !== undefined) return `client ${caller.client.id}`
  if (request.routeOptions.config.access !== 'worker' || workerProof === undefined) return undefined
  const owner = workerProof.by === 'access token' ? workerProof.workerId : undefined
  const workerId = owner ?? pathWorker(request.params) ?? headers[HEADERS.workerId] ?? addressKey(request) ?? ''
  const hash = 'hash' in workerProof ? workerProof.hash : hashOfToken(headers)
  const credential = hash === undefined ? '' : hash.toString('base64url').slice(0, 22)
  return `worker ${credential} ${String(workerId).slice(0, 200)}`
}

function hashOfToken(headers: FastifyRequest['headers']): TokenHash | undefined {
  const token = headerOf(headers, HEADERS.workerToken) ?? bearerOf(headers)
  return token === undefined ? undefined : hashToken(token)
}

function pathWorker(params: unknown): string | undefined {
  const found = typeof params === 'object' && params !== null && 'workerId' in params ? params.workerId : undefined
  return typeof found === 'string' ? found : undefined
}

function tooMany(verdict: Verdict): ImpresarioError {
  const details = { retry_after_s: seconds(verdict.retryMs) }
  return new ImpresarioError('TOO_MANY_REQUESTS', 'Too Many Requests', { details })
}

/** Whole seconds, rounded up: who waits as long as it says is let in. */
function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}
