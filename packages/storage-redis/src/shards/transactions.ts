import { ImpresarioError } from '@impresario/protocol'
import type { Caller } from '../client/caller.ts'
import { batchValues, unpack } from '../client/codec.ts'
import type { FunctionName } from '../functions/library.ts'
import type { Part } from './parts.ts'
import { bytesOf, pairsOf } from '../client/replies.ts'

export interface TransactionsParts {
  readonly caller: Caller
  /** A unique name of this storage, never used by another. */
  readonly origin: string
  /** The prefix of the names of this process and of its predecessors; and its own name. */
  readonly instance: string
  readonly hands: string
  /** How long to wait for an undecided transaction of another instance before ending it. */
  readonly patienceMs: number
}

type Attempt = 'committed' | 'conflict' | 'ended' | { readonly blockedBy: readonly string[]; readonly shard: number }
type Decision = readonly [now: number, first: number, shards: readonly number[]]

/** After this many attempts in a row the problem is the storage, not the timing. */
const ATTEMPTS_MAX = 100
const PAUSE_MS_MAX = 32

/**
 * Batches over several shards, each written completely or not at all, whichever process dies meanwhile.
 *
 * A transaction is `begun` in its home, then `prepared` in every other shard (conditions checked, names locked, its
 * part stored), then `decided` in its home: one call that checks the home's own conditions, writes its part and records
 * that the whole transaction is committed. From then on any instance that encounters a part writes it (`finished`).
 * Until then any instance may end the transaction in its home. It can then no longer be decided, and any instance that
 * encounters a part cancels it. The README explains why this is sufficient.
 */
export class Transactions {
  readonly #caller: Caller
  readonly #origin: string
  readonly #instance: string
  readonly #hands: string
  readonly #patienceMs: number
  readonly #unawaited = new Set<Promise<unknown>>()
  #count = 0
  #floor = 0

  constructor({ caller, origin, instance, hands, patienceMs }: TransactionsParts) {
    this.#caller = caller
    this.#origin = origin
    this.#instance = instance
    this.#hands = hands
    this.#patienceMs = patienceMs
  }

  /** The greatest item number that this storage knows of in any shard. */
  get floor(): number {
    return this.#floor
  }

  /** Items that this storage enqueues from now on get greater numbers, in every shard. */
  raise(number: number): void {
    this.#floor = Math.max(this.#floor, number)
  }

  /**
   * Queries a shard, and repeats the query if its reply lacks data that a decided transaction has yet to write there.
   */
  async ask<T>(name: FunctionName, question: readonly unknown[], shard: number): Promise<T> {
    if (this.#caller.shards === 1) return this.#caller.call<T>(name, question, shard)
    for (;;) {
      const [pending, reply] = await this.#caller.call<readonly [Buffer, T]>(name, question, shard)
      if (pending.length === 0 || !(await this.look(unpack(pending), shard))) return reply
    }
  }

  /**
   * Resolves transactions in this shard that are over. False if all of them are undecided: the data that was read is
   * then valid.
   */
  async look(ids: readonly string[], shard: number): Promise<boolean> {
    const outcomes = await Promise.all(ids.map((id) => this.#resolve(id, shard, false)))
    return outcomes.includes('over')
  }

  /** Waits until these transactions are over in this shard, and ends those that take too long. */
  async clear(ids: readonly string[], shard: number): Promise<void> {
    for (const id of ids) await this.#outwait(id, shard)
  }

  /** The first part is the home. */
  async commit(parts: readonly Part[], total: number): Promise<'committed' | 'conflict'> {
    for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
      const outcome = await this.#attempt(parts, total)
      if (outcome === 'committed' || outcome === 'conflict') return outcome
      if (outcome !== 'ended') await this.clear(outcome.blockedBy, outcome.shard)
    }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', `A batch was kept from being written ${ATTEMPTS_MAX} times.`)
  }

  /**
   * Cleans up after earlier processes: finishes decided transactions, ends undecided ones of this name, and leaves all
   * others alone.
   */
  async recover(): Promise<void> {
    type Remains = readonly [number, readonly Buffer[], readonly Buffer[]]
    const shards = Array.from({ length: this.#caller.shards }, (_, shard) => shard)
    const remains = await Promise.all(shards.map((shard) => this.#caller.call<Remains>('remains', [], shard)))
    for (const [shard, [number, open, parts]] of remains.entries()) {
      this.raise(number)
      for (const [id, state] of pairsOf(open)) {
        const isOurs = state.toString().startsWith(`p${this.#instance}`)
        if (isOurs || state[0] === DECIDED) await this.#resolve(id.toString(), shard, isOurs)
      }
      for (const id of parts) await this.#resolve(id.toString(), shard, false)
    }
  }

  /** Waits until background work, which no caller awaits, has succeeded or failed. */
  async quiet(): Promise<void> {
    await Promise.all(this.#unawaited)
  }

  async #attempt(parts: readonly Part[], total: number): Promise<Attempt> {
    const [home, ...others] = parts
    if (home === undefined) return 'committed'
    this.#count += 1
    const id = `${home.shard}/${this.#origin}/${this.#count}`
    const shards = others.map(({ shard }) => shard)
    const send = (name: FunctionName, part: Part): Promise<unknown> => {
      const transaction = { id, hands: this.#hands, total, places: part.places, shards }
      const args = batchValues(
        part.batch,
        { origin: this.#origin, hands: this.#hands },
        { floor: this.#floor, transaction },
      )
      return this.#caller.send(name, args, part.shard)
    }
    const begun = this.#hindrance(await send('begin', home), home.shard)
    if (begun !== undefined) return begun
    const replies = await Promise.allSettled(others.map((part) => send('prepare', part)))
    const failed = replies.find((reply) => reply.status === 'rejected')
    const hindrance = replies
      .map((reply, index) => this.#hindrance(reply.status === 'fulfilled' ? reply.value : 0, shards[index] ?? 0))
      .find((one) => one !== undefined)
    if (failed !== undefined || hindrance !== undefined) {
      await this.#abandon(id, shards)
      if (failed !== undefined) throw failed.reason
      return hindrance ?? 'conflict'
    }
    const decided = await send('decide', home)
    if (Array.isArray(decided)) {
      const [now, first] = decided as unknown as Decision
      this.raise(first + total)
      await this.#finish(id, [now, first, shards])
      return 'committed'
    }
    await this.#abandon(id, shards)
    if (Buffer.isBuffer(decided)) return { blockedBy: unpack(decided), shard: home.shard }
    return decided === 0 ? 'conflict' : 'ended'
  }

  /** What blocks a transaction, if anything does. Records the greatest item number of the shard. */
  #hindrance(reply: unknown, shard: number): Attempt | undefined {
    if (Buffer.isBuffer(reply)) return { blockedBy: unpack(reply), shard }
    const number = Number(reply)
    if (number < 0) return 'conflict'
    this.raise(number)
    return undefined
  }

  /**
   * Ends an undecided transaction. Parts that cannot be reached now are cancelled by the next instance that encounters
   * them.
   */
  async #abandon(id: string, shards: readonly number[]): Promise<void> {
    await Promise.allSettled([
      this.#caller.call('status', [id, true], homeOf(id)),
      ...shards.map((shard) => this.#caller.call('cancel', [id], shard)),
    ])
  }

  /**
   * Writes a decided transaction everywhere. Parts that cannot be reached now are written by the next instance that
   * encounters them.
   */
  async #finish(id: string, [now, first, shards]: Decision): Promise<void> {
    const replies = await Promise.allSettled(
      shards.map((shard) => this.#caller.call('finish', [id, now, first], shard)),
    )
    if (replies.some(({ status }) => status === 'rejected')) return
    const forgotten: Promise<unknown> = this.#caller
      .sendLast('forget', [[id]], homeOf(id))
      .catch(() => undefined)
      .finally(() => this.#unawaited.delete(forgotten))
    this.#unawaited.add(forgotten)
  }

  async #outwait(id: string, shard: number): Promise<void> {
    const since = performance.now()
    for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
      const isEnding = performance.now() - since >= this.#patienceMs
      if ((await this.#resolve(id, shard, isEnding)) === 'over') return
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  /** Brings a shard to the state that the home records. */
  async #resolve(id: string, shard: number, isEnding: boolean): Promise<'over' | 'undecided'> {
    const found = await this.#caller.call<Buffer | null>('status', [id, isEnding], homeOf(id))
    if (found === null) {
      // Over: either already written here, and then there is nothing to cancel; or ended.
      await this.#caller.call('cancel', [id], shard)
      return 'over'
    }
    if (bytesOf(found)[0] !== DECIDED) return 'undecided'
    const decision = unpack<Decision>(found.subarray(1))
    if (shard !== homeOf(id)) await this.#caller.call('finish', [id, decision[0], decision[1]], shard)
    await this.#finish(id, decision)
    return 'over'
  }
}

const DECIDED = 'c'.charCodeAt(0)

function homeOf(id: string): number {
  return Number(id.slice(0, id.indexOf('/')))
}
