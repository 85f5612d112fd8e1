import type { Claimed, ClaimOptions, Queue } from '@impresario/core'
import type { EmptyShards } from './empty-shards.ts'
import type { Caller } from '../client/caller.ts'
import { planBest, planRotation } from './claim-plan.ts'
import type { LaneSurvey, Pick, Plan, Survey } from './claim-plan.ts'
import { unpack } from '../client/codec.ts'
import type { FunctionName } from '../functions/library.ts'
import type { ShardPlacement } from './placement.ts'
import { claimResultOf, pairsOf, sooner } from '../client/replies.ts'
import type { ClaimReply, ClaimResult, Ranked } from '../client/replies.ts'
import type { Transactions } from './transactions.ts'

export interface ClaimsParts {
  readonly caller: Caller
  readonly transactions: Transactions
  readonly placement: ShardPlacement
  readonly emptyShards: EmptyShards
  /** The holder of leases for which no holder is named. */
  readonly hands: string
}

/** Leases per claim: one call of the server, which does nothing else meanwhile. */
const LEASES_MAX = 1_000
/** Other instances may win the race repeatedly; then fewer items are returned than there are. */
const ROUNDS_MAX = 8

interface Wanted {
  readonly queue: Queue
  readonly lanes: readonly string[] | undefined
  readonly limit: number
  readonly leaseMs: number
  readonly holder: string | false
  readonly brings: 'job' | false
}

interface Surveyed extends Survey {
  readonly waitMs: number | undefined
}

/**
 * Claims. From one shard it is one call. From several shards, each is asked what it would give, and then the claim goes
 * to those that have the best items. Shards that are known to be empty are not asked, and if only one is left, it is
 * one call again.
 */
export class Claims {
  readonly #caller: Caller
  readonly #transactions: Transactions
  readonly #placement: ShardPlacement
  readonly #emptyShards: EmptyShards
  readonly #hands: string

  constructor({ caller, transactions, placement, emptyShards, hands }: ClaimsParts) {
    this.#caller = caller
    this.#transactions = transactions
    this.#placement = placement
    this.#emptyShards = emptyShards
    this.#hands = hands
  }

  async claim(queue: Queue, { lanes, limit, leaseMs, holder, brings }: ClaimOptions): Promise<Claimed> {
    const names = lanes === undefined ? undefined : [...new Set(lanes)]
    const most = Math.min(limit, LEASES_MAX)
    const said = { holder: holder ?? false, brings: brings ?? false } as const
    const wanted: Wanted = { queue, lanes: names, limit: most, leaseMs, ...said }
    const shards = this.#placement.ofQueue(queue)
    if (shards.length === 1) return claimedOf(await this.#take(wanted, 0, most))
    const asked = this.#emptyShards.candidates(queue, names, shards)
    const others = shards.filter((shard) => !asked.includes(shard))
    const { found, nextInMs } = await this.#claimOf(wanted, asked)
    const next = sooner(nextInMs, this.#emptyShards.nextInMs(queue, others))
    return { leases: found.map(({ lease }) => lease), nextInMs: next }
  }

  async claimExpired(
    queue: Queue,
    { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
  ): Promise<Claimed> {
    const most = Math.min(limit, LEASES_MAX)
    const shards = this.#placement.ofQueue(queue)
    if (shards.length === 1) return claimedOf(await this.#takeExpired(queue, 0, most, leaseMs))
    type Reply = readonly [number, readonly string[]]
    const surveys = await Promise.all(
      shards.map(async (shard) => {
        const reply = await this.#transactions.ask<Buffer>('survey_expired', [queue, most], shard)
        const [wait, flat] = unpack<Reply>(reply)
        const ids = pairsOf(flat).map(([id, moment]) => ({ shard, id, moment: Number(moment) }))
        return { shard, ids, nextInMs: ids.length > 0 ? 0 : wait < 0 ? undefined : wait }
      }),
    )
    const first = surveys
      .flatMap(({ ids }) => ids)
      .sort((a, b) => a.moment - b.moment)
      .slice(0, most)
    const order = new Map(first.map(({ id }, index) => [id, index]))
    const parts = await Promise.all(
      surveys.map(async ({ shard, nextInMs }) => {
        const count = first.filter((one) => one.shard === shard).length
        return count === 0 ? { found: [], nextInMs } : this.#takeExpired(queue, shard, count, leaseMs)
      }),
    )
    const leases = parts
      .flatMap(({ found }) => found.map(({ lease }) => lease))
      .sort((a, b) => (order.get(a.id) ?? most) - (order.get(b.id) ?? most))
    return { leases, nextInMs: parts.map(({ nextInMs }) => nextInMs).reduce(sooner) }
  }

  async #claimOf(wanted: Wanted, shards: readonly number[]): Promise<Omit<ClaimResult, 'isBlocked'>> {
    const [only] = shards
    if (only === undefined) return { found: [], nextInMs: undefined }
    if (shards.length === 1) {
      const news = this.#emptyShards.news(wanted.queue, only)
      const { found, nextInMs } = await this.#take(wanted, only, wanted.limit)
      this.#emptyShards.learn({ queue: wanted.queue, shard: only, news }, wanted.lanes, nextInMs)
      return { found, nextInMs }
    }
    const found: Ranked[] = []
    for (let round = 1; ; round += 1) {
      const limit = wanted.limit - found.length
      const surveys = await Promise.all(shards.map((shard) => this.#survey(wanted, shard, limit)))
      const plan = wanted.lanes === undefined ? planRotation(surveys, limit) : planBest(surveys, limit)
      const { got, nextInMs, isShort } = await this.#carryOut(plan, surveys, wanted)
      found.push(...got)
      if (wanted.lanes !== undefined) found.sort(byPosition)
      const isOver = found.length === wanted.limit || !(plan.isCut || isShort) || round === ROUNDS_MAX
      if (isOver) return { found, nextInMs }
    }
  }

  /**
   * Items of lanes in rotation are in the order of the rounds. `isShort`: another instance was faster, and there may be
   * more.
   */
  async #carryOut(
    { shares }: Plan,
    surveys: readonly Surveyed[],
    wanted: Wanted,
  ): Promise<{ readonly got: readonly Ranked[]; readonly nextInMs: number | undefined; readonly isShort: boolean }> {
    let isShort = false
    const parts = await Promise.all(
      surveys.map(async ({ shard, lanes, waitMs }) => {
        const share = shares.get(shard)
        if (share === undefined) return { got: [], nextInMs: lanes.length > 0 ? 0 : waitMs }
        const { found, nextInMs } = await this.#take(wanted, shard, share.count, share.picks)
        if (found.length < share.count) isShort = true
        return { got: found.map((one, index) => ({ one, round: share.picks?.[index]?.round ?? 0 })), nextInMs }
      }),
    )
    const nextInMs = parts.map((part) => part.nextInMs).reduce(sooner)
    const got = parts.flatMap((part) => part.got).sort((a, b) => a.round - b.round)
    return { got: got.map(({ one }) => one), nextInMs, isShort }
  }

  async #survey({ queue, lanes }: Wanted, shard: number, limit: number): Promise<Surveyed> {
    type Reply = readonly [number, ...(readonly [string, number, number, readonly string[]])[]]
    const news = this.#emptyShards.news(queue, shard)
    const reply = await this.#transactions.ask<Buffer>('survey', [queue, lanes ?? false, limit], shard)
    const [wait, ...rows] = unpack<Reply>(reply)
    const found = rows.map(([lane, round, most, flat]): LaneSurvey => {
      const members = pairsOf(flat).map(([member, rank]) => ({ member, rank: Number(rank) }))
      return { lane, round, most, members }
    })
    const waitMs = wait < 0 ? undefined : wait
    const full = new Set(found.map(({ lane }) => lane))
    if (lanes !== undefined) {
      const empty = lanes.filter((lane) => !full.has(lane))
      this.#emptyShards.learn({ queue, shard, news }, empty, waitMs)
    } else if (full.size === 0) this.#emptyShards.learn({ queue, shard, news }, undefined, waitMs)
    return { shard, lanes: found, waitMs }
  }

  async #take(
    { queue, lanes, leaseMs, holder, brings }: Wanted,
    shard: number,
    limit: number,
    picks?: readonly Pick[],
  ): Promise<ClaimResult> {
    const names = picks === undefined ? (lanes ?? false) : false
    const chosen = picks?.map(({ lane, round }) => [lane, round]) ?? false
    const question = [queue, names, limit, leaseMs, holder, this.#hands, brings, ...this.#ofSharding(shard, chosen)]
    const result = await this.#claimed('claim', queue, question, shard)
    if (result.found.length > 0) this.#emptyShards.soon(queue, shard, leaseMs)
    return result
  }

  async #takeExpired(queue: Queue, shard: number, limit: number, leaseMs: number): Promise<ClaimResult> {
    const question = [queue, limit, leaseMs, this.#hands, ...this.#ofSharding(shard)]
    return this.#claimed('claim_expired', queue, question, shard)
  }

  /** What several shards need: which lanes are in rotation, and which tokens belong to this shard. */
  #ofSharding(shard: number, ...before: readonly unknown[]): readonly unknown[] {
    return this.#caller.shards === 1 ? [] : [...before, this.#caller.shards, shard]
  }

  async #claimed(name: FunctionName, queue: Queue, question: readonly unknown[], shard: number): Promise<ClaimResult> {
    if (this.#caller.shards === 1) {
      return claimResultOf(queue, await this.#caller.call<ClaimReply>(name, question, shard))
    }
    for (;;) {
      const [pending, reply] = await this.#caller.call<readonly [Buffer, ClaimReply]>(name, question, shard)
      const result = claimResultOf(queue, reply)
      if (result.found.length > 0 || pending.length === 0) return result
      const ids = unpack<readonly string[]>(pending)
      if (result.isBlocked) await this.#transactions.clear(ids, shard)
      else if (!(await this.#transactions.look(ids, shard))) return result
    }
  }
}

function claimedOf({ found, nextInMs }: ClaimResult): Claimed {
  return { leases: found.map(({ lease }) => lease), nextInMs }
}

function byPosition(a: Ranked, b: Ranked): number {
  if (a.rank !== b.rank) return a.rank - b.rank
  return a.sequence === b.sequence ? 0 : a.sequence < b.sequence ? -1 : 1
}
