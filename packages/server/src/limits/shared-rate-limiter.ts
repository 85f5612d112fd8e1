import type { Log, Storage } from '@impresario/core'
import { errorFields } from '../runtime/log.ts'
import { KEYS_MAX, MemoryRateLimiter, roomOf, ROUNDING_MS } from './rate-limiter.ts'
import type { RateLimiter, RateRule, Verdict } from './rate-limiter.ts'
import { within } from '../runtime/within.ts'

export interface SharedRateLimiterOptions {
  readonly storage: Storage
  readonly log: Log
  readonly keysMax?: number
  readonly patienceMs?: number
}

/** Drawn at once: so much of the limit, and of what is left of it. Rules up to 31 are drawn one by one. */
const SHARE_OF_LIMIT = 16
const SHARE_OF_ROOM = 8
/** Each conflict means that another instance has made progress, so there is an end; this is far beyond it. */
const CONFLICTS_MAX = 100
const CONTENDED_MS = 100
/** A storage that takes longer is as good as gone, and is asked again so much later. */
const PATIENCE_MS = 3_000

/**
 * What was drawn for one key and is not used up, on the storage's time.
 *
 * A draw puts off the moment when everything is paid off (see `MemoryRateLimiter`) for several requests at once: it takes a
 * stretch of time, each `spacing` of it for one request, and a request that comes later than its piece of the stretch gets
 * none of it. So what is allowed is in sum never more than if one instance had counted for all.
 */
interface Draw {
  /** The first piece that is not used up begins here. */
  from: number
  readonly until: number
  /** From this instance's clock to the storage's time, rather too much than too little. */
  readonly offset: number
  /** By this instance's clock: nothing is to be had before. */
  readonly refusedUntil: number
}

/**
 * Counts for all instances that share a storage. Per key there is one record, written with its version, so that no two draws
 * take the same; it expires when all is paid off. Most requests are served from what was drawn before and cost no call.
 *
 * While the storage does not answer, each instance counts for itself: a limit that is a few times too wide does less harm
 * than a server that cannot be reached.
 */
export class SharedRateLimiter implements RateLimiter {
  readonly #options: SharedRateLimiterOptions
  readonly #patienceMs: number
  readonly #local = new MemoryRateLimiter()
  readonly #draws = new Map<string, Draw>()
  readonly #drawing = new Map<string, Promise<void>>()
  /** How many wait for a draw, by key. */
  readonly #asking = new Map<string, number>()
  /** By this instance's clock. */
  #awayUntil = Number.NEGATIVE_INFINITY
  #isAway = false

  constructor(options: SharedRateLimiterOptions) {
    this.#options = options
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS
  }

  take(key: string, rule: RateRule, nowMs: number): Verdict | Promise<Verdict> {
    const verdict = this.#fromDrawn(key, rule, nowMs, true)
    if (verdict !== undefined) return verdict
    if (nowMs < this.#awayUntil) return this.#local.take(key, rule, nowMs)
    return this.#takeLater(key, rule, nowMs)
  }

  look(key: string, rule: RateRule, nowMs: number): Verdict | Promise<Verdict> {
    const verdict = this.#fromDrawn(key, rule, nowMs, false)
    if (verdict !== undefined) return verdict
    if (nowMs < this.#awayUntil) return this.#local.look(key, rule, nowMs)
    return this.#lookLater(key, rule, nowMs)
  }

  /** `undefined` when the storage has to be asked. */
  #fromDrawn(key: string, rule: RateRule, nowMs: number, isTaken: boolean): Verdict | undefined {
    const draw = this.#draws.get(key)
    if (draw === undefined) return undefined
    const now = nowMs + draw.offset
    const spacing = rule.periodMs / rule.limit
    const from = Math.max(draw.from, now)
    const isAllowed = from + spacing <= draw.until + ROUNDING_MS
    if (!isAllowed && nowMs >= draw.refusedUntil) return undefined
    if (isAllowed && isTaken) draw.from = from + spacing
    const ownLeft = Math.floor((draw.until - Math.max(draw.from, now) + ROUNDING_MS) / spacing)
    return {
      isAllowed,
      left: Math.max(0, ownLeft) + roomOf(draw.until, rule, now),
      retryMs: isAllowed ? 0 : draw.refusedUntil - nowMs,
      resetMs: Math.max(0, draw.until - now),
    }
  }

  async #takeLater(key: string, rule: RateRule, nowMs: number): Promise<Verdict> {
    this.#count(key, 1)
    try {
      for (;;) {
        const drawing = this.#drawing.get(key) ?? this.#beginDraw(key, rule, nowMs)
        if (!(await this.#succeeds(drawing, nowMs))) return this.#local.take(key, rule, nowMs)
        const verdict = this.#fromDrawn(key, rule, nowMs, true)
        if (verdict !== undefined) return verdict
      }
    } finally {
      this.#count(key, -1)
    }
  }

  async #lookLater(key: string, rule: RateRule, nowMs: number): Promise<Verdict> {
    let paidOffAt = 0
    let now = 0
    const looking = this.#read(key, rule).then((read) => {
      paidOffAt = read.paidOffAt
      now = read.now
    })
    if (!(await this.#succeeds(looking, nowMs))) return this.#local.look(key, rule, nowMs)
    const left = roomOf(paidOffAt, rule, now)
    const retryMs = left > 0 ? 0 : waitOf(paidOffAt, rule, now)
    return { isAllowed: left > 0, left, retryMs, resetMs: paidOffAt - now }
  }

  #beginDraw(key: string, rule: RateRule, nowMs: number): Promise<void> {
    const drawing = this.#draw(key, rule, nowMs).finally(() => this.#drawing.delete(key))
    this.#drawing.set(key, drawing)
    return drawing
  }

  async #draw(key: string, rule: RateRule, nowMs: number): Promise<void> {
    const { storage } = this.#options
    const spacing = rule.periodMs / rule.limit
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const { paidOffAt, now, version } = await this.#read(key, rule)
      const offset = now - nowMs
      const room = roomOf(paidOffAt, rule, now)
      if (room <= 0) {
        const refusedUntil = nowMs + waitOf(paidOffAt, rule, now)
        this.#keep(key, { from: paidOffAt, until: paidOffAt, offset, refusedUntil })
        return
      }
      const ahead = Math.min(Math.floor(rule.limit / SHARE_OF_LIMIT), Math.floor(room / SHARE_OF_ROOM))
      const count = Math.min(room, Math.max(1, ahead, this.#asking.get(key) ?? 1))
      const until = paidOffAt + count * spacing
      const expiresMs = Math.ceil(until - now)
      const put = [{ kind: 'limit', id: key, version: version + 1, value: { paidOffAt: until }, expiresMs } as const]
      if ((await storage.commit({ put })) === 'conflict') continue
      this.#keep(key, { from: paidOffAt, until, offset, refusedUntil: Number.NEGATIVE_INFINITY })
      return
    }
    this.#keep(key, { from: 0, until: 0, offset: 0, refusedUntil: nowMs + CONTENDED_MS })
  }

  /** The present state of the key. Rules may have changed: a wait is never longer than the period of the present rule. */
  async #read(
    key: string,
    { periodMs }: RateRule,
  ): Promise<{ readonly paidOffAt: number; readonly now: number; readonly version: number }> {
    const { storage } = this.#options
    const [stored, now] = await Promise.all([storage.read('limit', key), storage.now()])
    const paidOffAt = Math.min(Math.max(stored?.value.paidOffAt ?? 0, now), now + periodMs)
    return { paidOffAt, now, version: stored?.version ?? 0 }
  }

  /** False when the storage does not do it, or not in time. */
  async #succeeds(work: Promise<void>, nowMs: number): Promise<boolean> {
    try {
      const isInTime = await within(this.#patienceMs, work)
      if (isInTime) {
        this.#isAway = false
        return true
      }
      work.catch(() => undefined)
      this.#wait(nowMs, { error: 'no answer in time' })
    } catch (error) {
      this.#wait(nowMs, errorFields(error))
    }
    return false
  }

  #wait(nowMs: number, fields: Readonly<Record<string, unknown>>): void {
    this.#awayUntil = nowMs + this.#patienceMs
    if (this.#isAway) return
    this.#isAway = true
    this.#options.log.warn('the storage does not count requests; each instance does for itself meanwhile', fields)
  }

  #count(key: string, by: number): void {
    const count = (this.#asking.get(key) ?? 0) + by
    if (count === 0) this.#asking.delete(key)
    else this.#asking.set(key, count)
  }

  /** Deleted and set, so that the order of the map is the order of use; the oldest eighth goes when there are too many. */
  #keep(key: string, draw: Draw): void {
    const { keysMax = KEYS_MAX } = this.#options
    this.#draws.delete(key)
    this.#draws.set(key, draw)
    if (this.#draws.size <= keysMax) return
    for (const oldest of this.#draws.keys()) {
      if (this.#draws.size <= (keysMax * 7) / 8) break
      this.#draws.delete(oldest)
    }
  }
}

/** How long until there is room for one more. */
function waitOf(paidOffAt: number, { limit, periodMs }: RateRule, now: number): number {
  return Math.max(0, paidOffAt + periodMs / limit - now - periodMs)
}
