import { listingOf, QUEUES } from '@impresario/core'
import type {
  Batch,
  Claimed,
  ClaimOptions,
  Facets,
  ItemView,
  Kind,
  LaneView,
  LeaseRef,
  Listing,
  ListQuery,
  Queue,
  Records,
  Storage,
  Stored,
} from '@impresario/core'
import { EmptyShards } from './shards/empty-shards.ts'
import { Caller } from './client/caller.ts'
import { Claims } from './shards/claims.ts'
import { BatchMessage, unpack, valueOf } from './client/codec.ts'
import type { Writer } from './client/codec.ts'
import type { Wire } from './client/connection.ts'
import type { Durability } from './client/durability.ts'
import { Hints } from './client/hints.ts'
import type { FunctionName } from './functions/library.ts'
import { listed } from './shards/lists.ts'
import { partsOf, shardOf } from './shards/parts.ts'
import { placementOf } from './shards/placement.ts'
import type { ShardPlacement } from './shards/placement.ts'
import { bytesOf, isBlockedReply, pairsOf, textOf, viewOf } from './client/replies.ts'
import { Transactions } from './shards/transactions.ts'

/** Views per query, leases per renewal: each is one call of the server, which does nothing else meanwhile. */
const CALL_MAX = 1_000
/**
 * A transaction takes some milliseconds. If it takes longer than this, its process is dead or one of its servers cannot
 * be reached.
 */
const PATIENCE_MS = 1_000

export interface RedisStorageParts {
  readonly wire: Wire
  /** Over how many shards the namespace is spread. */
  readonly shards: number
  /**
   * Names this process, and stays the same after a restart: the leases that it held itself are released when it comes
   * back.
   */
  readonly instance: string
  /** Names this object, so that it ignores its own hints. */
  readonly origin: string
  readonly durability: Durability
  /** The clock of a test. Without it the server's clock applies, for all instances alike. */
  readonly now?: () => number
  /** How long to wait for a transaction of another instance that is neither decided nor ended. */
  readonly patienceMs?: number
}

/**
 * Storage on Redis, shared by any number of processes. In a namespace of one shard every method is one call of a server
 * function, or a few calls where the amount to read has no bound. Each call is atomic, and all of them use the server's
 * clock. With several shards it is one call whenever all the data is in one of them, which is the case for every step
 * of a job.
 *
 * `open` → `closed` by `close`, which is final. While the server cannot be reached, calls wait briefly and then reject.
 * A call that was in flight when the connection broke rejects at once, and its outcome is unknown.
 */
export class RedisStorage implements Storage {
  /** What the server's settings guarantee for acknowledged writes. */
  readonly durability: Durability
  readonly #wire: Wire
  readonly #caller: Caller
  readonly #placement: ShardPlacement
  readonly #transactions: Transactions
  readonly #claims: Claims
  readonly #emptyShards: EmptyShards
  readonly #hints: Hints
  /** The prefix of the names of this process and of its predecessors; and its own name. */
  readonly #instance: string
  readonly #hands: string
  readonly #origin: string
  readonly #writer: Writer
  #closed: Promise<void> | undefined = undefined

  constructor({ wire, shards, instance, origin, durability, now, patienceMs = PATIENCE_MS }: RedisStorageParts) {
    this.#wire = wire
    this.#instance = `${instance}\n`
    this.#hands = `${instance}\n${origin}`
    this.#origin = origin
    this.#writer = { origin, hands: this.#hands }
    this.durability = durability
    const caller = new Caller({ wire, shards, now })
    const placement = placementOf(shards)
    const hands = this.#hands
    const transactions = new Transactions({ caller, origin, instance: this.#instance, hands, patienceMs })
    const emptyShards = new EmptyShards(shards, now ?? (() => performance.now()))
    this.#caller = caller
    this.#placement = placement
    this.#transactions = transactions
    this.#emptyShards = emptyShards
    this.#claims = new Claims({ caller, transactions, placement, emptyShards, hands })
    this.#hints = new Hints(origin)
  }

  /** The clock of the first shard, because the clocks of several servers differ. */
  now(): Promise<number> {
    return this.#caller.call<number>('now', [], 0)
  }

  async read<K extends Kind>(kind: K, id: string): Promise<Stored<Records[K]> | undefined> {
    const shard = this.#placement.ofRecord(kind, id)
    const reply = await this.#transactions.ask<readonly [number, Buffer] | null>('read', [kind, id], shard)
    return reply === null ? undefined : { value: valueOf<K>(reply[1]), version: reply[0] }
  }

  async list<K extends Kind>(kind: K, query: ListQuery): Promise<Listing<K>> {
    type Reply = readonly [Buffer, ...(Buffer | number)[]]
    const asks = this.#placement.ofKind(kind).map(
      (shard) =>
        (question: readonly unknown[]): Promise<Reply> =>
          this.#transactions.ask<Reply>('list', question, shard),
    )
    const { rows, next } = await listed(asks, kind, query)
    return listingOf<K>(
      rows.map(({ id, version, body }) => ({ id, version, value: valueOf<K>(body) })),
      next,
    )
  }

  async counts(kind: Kind, { owner, name }: Pick<Facets, 'owner' | 'name'>): Promise<Readonly<Record<string, number>>> {
    const replies = await this.#insist<readonly Buffer[]>(
      'counts',
      [kind, owner ?? false],
      this.#placement.ofKind(kind),
    )
    const found = new Map<string, number>()
    for (const [field, count] of replies.flatMap((reply) => pairsOf(reply))) {
      const [cellName, status] = unpack<readonly [string | false, string]>(field)
      if (name !== undefined && cellName !== name) continue
      found.set(status, (found.get(status) ?? 0) + Number(count.toString()))
    }
    return Object.fromEntries(found)
  }

  async peek(queue: Queue, ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    const places = this.#spread(ids, (id) => this.#placement.ofItem(queue, id))
    const views: (ItemView | undefined)[] = Array.from({ length: ids.length })
    await Promise.all(
      places.map(async ({ shard, entries }) => {
        const some = entries.map(([, id]) => id)
        const reply = await this.#transactions.ask<readonly (Buffer | null)[]>('peek', [queue, some], shard)
        for (const [at, [index, id]] of entries.entries()) {
          views[index] = viewOf({ queue, id }, reply[2 * at] ?? null, reply[2 * at + 1] ?? null)
        }
      }),
    )
    return views
  }

  async held(queue: Queue): Promise<readonly string[]> {
    const ids = new Set<string>()
    const heldIn = async (shard: number): Promise<void> => {
      let cursor = '0'
      do {
        const [next, ...found] = await this.#transactions.ask<readonly Buffer[]>('held', [queue, cursor], shard)
        for (const id of found) ids.add(id.toString())
        cursor = next?.toString() ?? '0'
      } while (cursor !== '0')
    }
    await Promise.all(this.#placement.ofQueue(queue).map(heldIn))
    return [...ids]
  }

  async lanes(queue: Queue): Promise<readonly LaneView[]> {
    const shards = this.#placement.ofQueue(queue)
    const replies = await this.#insist<readonly (Buffer | number)[]>('lanes', [queue], shards)
    const found = new Map<string, number>()
    for (const [lane, ready] of replies.flatMap((reply) => pairsOf(reply))) {
      found.set(textOf(lane), (found.get(textOf(lane)) ?? 0) + Number(ready))
    }
    return [...found].map(([lane, ready]) => ({ lane, ready }))
  }

  async oldest(queue: Queue, lane?: string): Promise<number | undefined> {
    const replies = await this.#insist<number>('oldest', [queue, lane ?? false], this.#placement.ofQueue(queue))
    const waited = Math.max(...replies)
    return waited < 0 ? undefined : waited
  }

  claim(queue: Queue, options: ClaimOptions): Promise<Claimed> {
    return this.#claims.claim(queue, options)
  }

  claimExpired(queue: Queue, options: { readonly limit: number; readonly leaseMs: number }): Promise<Claimed> {
    return this.#claims.claimExpired(queue, options)
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]> {
    const places = this.#spread(leases, ({ queue, id }) => this.#placement.ofItem(queue, id))
    const kept: boolean[] = Array.from({ length: leases.length }, () => false)
    await Promise.all(
      places.map(async ({ shard, entries }) => {
        const refs = entries.map(([, ref]) => ref)
        const replies = await this.#renewed(refs, leaseMs, shard)
        for (const [at, [index, { queue }]] of entries.entries()) {
          // Zero: lost; one: kept; a lane: kept, and claimable through it.
          const one = replies[at]
          kept[index] = one !== 0 && one !== undefined
          if (Buffer.isBuffer(one)) this.#announce(queue, one.toString(), shard)
          else if (one === 1) this.#emptyShards.soon(queue, shard, leaseMs)
        }
      }),
    )
    return kept
  }

  async commit(batch: Batch): Promise<'committed' | 'conflict'> {
    this.#caller.mustWork()
    const isWhole = this.#caller.shards === 1
    const shard = isWhole ? 0 : shardOf(batch, this.#placement)
    const outcome = await (isWhole
      ? this.#caller.send('commit', [new BatchMessage(batch, this.#writer)], 0)
      : shard === undefined
        ? this.#transactions.commit(partsOf(batch, this.#placement), batch.enqueue?.length ?? 0)
        : this.#commitIn(shard, batch))
    if (outcome === 0 || outcome === 'conflict') return 'conflict'
    for (const item of batch.enqueue ?? []) {
      const { queue, lane, delayMs, id, claimed } = item
      if (!isWhole) this.#emptyShards.enqueued(item, shard ?? this.#placement.ofItem(queue, id))
      if (delayMs <= 0 && claimed === undefined) this.#hints.announce(queue, lane)
    }
    return 'committed'
  }

  /** The server replies to a write only once its settings' guarantee is met: there is nothing more to wait for. */
  async sync(): Promise<void> {
    this.#caller.mustWork()
  }

  watch(queue: Queue, listener: (lane: string) => void): () => void {
    if (this.#closed === undefined) {
      this.#wire.listen(
        (message, shard) => {
          for (const [from, lane] of this.#hints.read(message)) this.#announce(from, lane, shard)
        },
        (isHearing) => this.#emptyShards.hearing(isHearing),
      )
    }
    return this.#hints.watch(queue, listener)
  }

  /** Releases the leases that this process still holds, so that others can claim the items at once. */
  close(): Promise<void> {
    this.#caller.shut()
    this.#closed ??= this.#transactions
      .quiet()
      .then(() => this.#release(this.#hands))
      .then(
        () => this.#wire.close(),
        // If a server cannot be reached, these leases end when their time is over.
        () => this.#wire.close(),
      )
    return this.#closed
  }

  /** Ends the leases that an earlier process of this name held itself when it ended. */
  async recover(): Promise<void> {
    if (this.#caller.shards > 1) await this.#transactions.recover()
    await this.#release(this.#instance)
  }

  async #commitIn(shard: number, batch: Batch): Promise<'committed' | 'conflict'> {
    for (;;) {
      const message = new BatchMessage(batch, this.#writer, this.#transactions.floor)
      const outcome = await this.#caller.send('commit', [message], shard)
      if (Buffer.isBuffer(outcome)) {
        await this.#transactions.clear(unpack(outcome), shard)
        continue
      }
      if (outcome === 0) return 'conflict'
      this.#transactions.raise(Number(outcome))
      return 'committed'
    }
  }

  /** Retries the entries that a transaction has locked, once it is over. */
  async #renewed(refs: readonly LeaseRef[], leaseMs: number, shard: number): Promise<readonly (Buffer | number)[]> {
    type Reply = readonly (Buffer | number)[]
    const named = refs.map(({ queue, id, token }) => [queue, id, token])
    const question = [named, leaseMs, this.#origin]
    if (this.#caller.shards === 1) return this.#caller.call<Reply>('renew', question, shard)
    const [pending, reply] = await this.#caller.call<readonly [Buffer, Reply]>('renew', question, shard)
    const blocked = refs.flatMap((ref, at) => (isBlockedReply(reply[at]) ? [{ ref, at }] : []))
    if (blocked.length === 0) return reply
    await this.#transactions.clear(pending.length === 0 ? [] : unpack(pending), shard)
    const rest = await this.#renewed(
      blocked.map(({ ref }) => ref),
      leaseMs,
      shard,
    )
    const answers = [...reply]
    for (const [index, { at }] of blocked.entries()) answers[at] = rest[index] ?? 0
    return answers
  }

  async #release(beginning: string): Promise<void> {
    const releaseIn = async (queue: Queue, shard: number, set: 'lease' | 'over'): Promise<void> => {
      let cursor = '0'
      do {
        const reply = await this.#caller.sendLast('release', [[queue, beginning, cursor, set]], shard)
        cursor = textOf(bytesOf(reply))
      } while (cursor !== '0')
    }
    const places = QUEUES.flatMap((queue) => this.#placement.ofQueue(queue).map((shard) => [queue, shard] as const))
    await Promise.all(
      places.map(async ([queue, shard]) => {
        await releaseIn(queue, shard, 'lease')
        await releaseIn(queue, shard, 'over')
      }),
    )
  }

  /** Repeats each call while its reply says that more has to be cleaned up before there can be a result. */
  #insist<T>(name: FunctionName, question: readonly unknown[], shards: readonly number[]): Promise<readonly T[]> {
    return Promise.all(
      shards.map(async (shard) => {
        for (;;) {
          const reply = await this.#transactions.ask<T | null>(name, question, shard)
          if (reply !== null) return reply
        }
      }),
    )
  }

  /** Entries with their positions in the list, by shard, in groups of at most what one call takes. */
  #spread<T>(
    list: readonly T[],
    shardOfOne: (one: T) => number,
  ): readonly { readonly shard: number; readonly entries: readonly (readonly [number, T])[] }[] {
    const groups: { readonly shard: number; readonly entries: (readonly [number, T])[] }[] = []
    const open = new Map<number, (readonly [number, T])[]>()
    for (const [index, one] of list.entries()) {
      const shard = shardOfOne(one)
      let entries = open.get(shard)
      if (entries === undefined || entries.length === CALL_MAX) {
        entries = []
        open.set(shard, entries)
        groups.push({ shard, entries })
      }
      entries.push([index, one])
    }
    return groups
  }

  #announce(queue: Queue, lane: string, shard: number): void {
    this.#emptyShards.disturb(queue, shard, lane)
    this.#hints.announce(queue, lane)
  }
}
