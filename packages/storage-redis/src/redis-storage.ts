import type {
  Batch,
  Claimed,
  ClaimOptions,
  Facets,
  ItemView,
  Kind,
  LaneView,
  Lease,
  LeaseRef,
  ListQuery,
  Queue,
  Records,
  Storage,
  Stored,
} from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { encodedBatch, pack, unpack, valueOf } from './codec.ts'
import type { Connection } from './connection.ts'
import type { Durability } from './durability.ts'
import { foldedText } from '@impresario/core'
import type { FunctionName } from './library.ts'

const QUEUES: readonly Queue[] = ['turns', 'tasks', 'timers', 'mail', 'outbox', 'leaders']

/** Leases of one claim, views of one look: each is one call of the server, which does nothing else meanwhile. */
const CALL_MAX = 1_000
/** Records that one call of a list looks through: about a millisecond of the server. */
const PAGE_MAX = 500

export interface RedisStorageParts {
  readonly connection: Connection
  /** Names this process, also after a restart: what it had in its own hands is set free when it comes back. */
  readonly instance: string
  /** Names this object, so that it does not take its own hints for those of others. */
  readonly origin: string
  readonly durability: Durability
  /** The time of a test. Without it the server's own clock counts, for all instances alike. */
  readonly now?: () => number
}

type LeaseReply = readonly [token: number, lane: string, priority: number, deliveries: number, left: number | false]
type ViewReply = readonly [
  lane: string,
  priority: number,
  deliveries: number,
  dueInMs: number,
  token: number | false,
  holder: string | false,
  endsInMs: number,
]

/**
 * Storage on Redis, shared by any number of processes. Every method is one call of a server function, or a few where what is
 * to be read has no bound; each call is atomic, and all of them go by the server's clock.
 *
 * `open` → `closed` by `close`, for good. While the server cannot be reached, calls wait for it a little and then reject;
 * one that was on its way when the connection broke rejects at once, and its outcome is unknown.
 */
export class RedisStorage implements Storage {
  /** What the server's settings promise about acknowledged writes. */
  readonly durability: Durability
  readonly #connection: Connection
  /** What the names of this process and of those before it begin with; and its own. */
  readonly #instance: string
  readonly #hands: string
  readonly #origin: string
  readonly #now: (() => number) | undefined
  readonly #listeners = new Map<Queue, Set<(lane: string) => void>>()
  #closed: Promise<void> | undefined = undefined

  constructor({ connection, instance, origin, durability, now }: RedisStorageParts) {
    this.#connection = connection
    this.#instance = `${instance}\n`
    this.#hands = `${instance}\n${origin}`
    this.#origin = origin
    this.#now = now
    this.durability = durability
  }

  async read<K extends Kind>(kind: K, id: string): Promise<Stored<Records[K]> | undefined> {
    const reply = await this.#call<readonly [number, Buffer] | null>('read', [kind, id])
    return reply === null ? undefined : { value: valueOf<K>(reply[1]), version: reply[0] }
  }

  async list<K extends Kind>(
    kind: K,
    query: ListQuery,
  ): Promise<readonly (Stored<Records[K]> & { readonly id: string })[]> {
    const { owner = false, name = false, from = false, search = '', limit } = query
    const statuses = statusesOf(query)
    const needle = search === '' ? false : foldedText(search)
    const isFiltered = owner !== false || name !== false || statuses !== false || needle !== false
    const found: (Stored<Records[K]> & { readonly id: string })[] = []
    let before: string | false = query.before ?? false
    while (found.length < limit) {
      const left = Math.min(limit - found.length, PAGE_MAX)
      const most = isFiltered ? PAGE_MAX : left
      const question: readonly unknown[] = [kind, owner, statuses, name, before, from, needle, left, most]
      const [cursor, ...rows] = await this.#call<readonly [Buffer, ...(Buffer | number)[]]>('list', question)
      for (const [id, version, body] of triplesOf(rows)) {
        found.push({ id: textOf(id), version: Number(version), value: valueOf<K>(bytesOf(body)) })
      }
      const next = cursor.toString()
      if (next !== '') before = next
      else if (rows.length === 3 * left && left === PAGE_MAX) before = found.at(-1)?.id ?? false
      else break
    }
    return found
  }

  async counts(kind: Kind, { owner, name }: Pick<Facets, 'owner' | 'name'>): Promise<Readonly<Record<string, number>>> {
    const reply = await this.#insist<readonly Buffer[]>('counts', [kind, owner ?? false])
    const found = new Map<string, number>()
    for (const [field, count] of pairsOf(reply)) {
      const [cellName, status] = unpack<readonly [string | false, string]>(field)
      if (name !== undefined && cellName !== name) continue
      found.set(status, (found.get(status) ?? 0) + Number(count.toString()))
    }
    return Object.fromEntries(found)
  }

  async peek(queue: Queue, ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    const views: (ItemView | undefined)[] = []
    for (let start = 0; start < ids.length; start += CALL_MAX) {
      const some = ids.slice(start, start + CALL_MAX)
      const reply = await this.#call<readonly (Buffer | null)[]>('peek', [queue, some])
      for (const [index, id] of some.entries()) {
        views.push(viewOf({ queue, id }, reply[2 * index] ?? null, reply[2 * index + 1] ?? null))
      }
    }
    return views
  }

  async lanes(queue: Queue): Promise<readonly LaneView[]> {
    const reply = await this.#insist<readonly (Buffer | number)[]>('lanes', [queue])
    return pairsOf(reply).map(([lane, ready]) => ({ lane: textOf(lane), ready: Number(ready) }))
  }

  async claim(queue: Queue, { lanes, limit, leaseMs, holder }: ClaimOptions): Promise<Claimed> {
    const names = lanes === undefined ? false : [...new Set(lanes)]
    const question = [queue, names, Math.min(limit, CALL_MAX), leaseMs, holder ?? false, this.#hands]
    return claimedOf(queue, await this.#call('claim', question))
  }

  async claimExpired(
    queue: Queue,
    { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
  ): Promise<Claimed> {
    const question = [queue, Math.min(limit, CALL_MAX), leaseMs, this.#hands]
    return claimedOf(queue, await this.#call('claim_expired', question))
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]> {
    const kept: boolean[] = []
    for (let start = 0; start < leases.length; start += CALL_MAX) {
      const some = leases.slice(start, start + CALL_MAX)
      const refs = some.map(({ queue, id, token }) => [queue, id, token])
      // Zero: lost; one: kept; a lane: kept, and claimable through it.
      const reply = await this.#call<readonly (Buffer | number)[]>('renew', [refs, leaseMs, this.#origin])
      for (const [index, { queue }] of some.entries()) {
        const one = reply[index]
        kept.push(one !== 0 && one !== undefined)
        if (Buffer.isBuffer(one)) this.#announce(queue, one.toString())
      }
    }
    return kept
  }

  async commit(batch: Batch): Promise<'committed' | 'conflict'> {
    this.#mustWork()
    const outcome = await this.#connection.call('commit', [this.#time(), ...encodedBatch(batch, this.#origin)])
    if (outcome !== 1) return 'conflict'
    for (const { queue, lane, delayMs } of batch.enqueue ?? []) if (delayMs <= 0) this.#announce(queue, lane)
    return 'committed'
  }

  /** The server answers a write when it has made of it what its settings promise: there is nothing more to wait for. */
  async sync(): Promise<void> {
    this.#mustWork()
  }

  watch(queue: Queue, listener: (lane: string) => void): () => void {
    if (this.#closed === undefined) this.#connection.listen((message) => this.#hear(message))
    const listeners = this.#listeners.get(queue) ?? new Set()
    this.#listeners.set(queue, listeners)
    // A wrapper of its own, so that one function can watch twice and stop once.
    const entry = (lane: string): void => listener(lane)
    listeners.add(entry)
    return () => listeners.delete(entry)
  }

  /** What this process still holds is free for the others at once. */
  close(): Promise<void> {
    this.#closed ??= this.#release(this.#hands).then(
      () => this.#connection.close(),
      // A server that cannot be reached ends these leases by itself, when their time is over.
      () => this.#connection.close(),
    )
    return this.#closed
  }

  /** Ends what an earlier process of this name had in its own hands when it ended. */
  async recover(): Promise<void> {
    await this.#release(this.#instance)
  }

  async #release(beginning: string): Promise<void> {
    for (const queue of QUEUES) {
      let cursor = '0'
      do {
        const reply = await this.#connection.call('release', [this.#time(), pack([queue, beginning, cursor])])
        cursor = textOf(bufferOf(reply))
      } while (cursor !== '0')
    }
  }

  /** The boundary where a reply gets its shape: only the library of this package makes it. */
  async #call<T>(name: FunctionName, question: readonly unknown[]): Promise<T> {
    this.#mustWork()
    return (await this.#connection.call(name, [this.#time(), pack(question)])) as T
  }

  /** Asks again while the answer is that more has to be cleared away before there can be one. */
  async #insist<T>(name: FunctionName, question: readonly unknown[]): Promise<T> {
    for (;;) {
      const reply = await this.#call<T | null>(name, question)
      if (reply !== null) return reply
    }
  }

  #time(): string {
    return this.#now === undefined ? '' : String(this.#now())
  }

  #hear(message: Buffer): void {
    const [origin, ...names] = unpack<readonly string[]>(message)
    if (origin === this.#origin) return
    for (const [queue, lane] of pairsOf(names)) this.#announce(queueOf(queue), lane)
  }

  #announce(queue: Queue, lane: string): void {
    const listeners = this.#listeners.get(queue)
    if (listeners === undefined) return
    for (const listener of listeners) listener(lane)
  }

  #mustWork(): void {
    if (this.#closed !== undefined) throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The storage is closed.')
  }
}

function statusesOf({ status, statuses }: ListQuery): readonly string[] | false {
  if (status === undefined) return statuses ?? false
  return statuses === undefined || statuses.includes(status) ? [status] : []
}

function claimedOf(queue: Queue, [next, ...rows]: readonly [number, ...(Buffer | number)[]]): Claimed {
  const leases: Lease[] = triplesOf(rows).map(([id, meta, body]) => {
    const [token, lane, priority, deliveries, left] = unpack<LeaseReply>(bytesOf(meta))
    const expiresInMs = left === false ? undefined : left
    return { queue, id: textOf(id), token, lane, priority, payload: unpack(bytesOf(body)), deliveries, expiresInMs }
  })
  return { leases, nextInMs: next < 0 ? undefined : next }
}

function viewOf(name: Pick<ItemView, 'queue' | 'id'>, meta: Buffer | null, body: Buffer | null): ItemView | undefined {
  if (meta === null || body === null) return undefined
  const [lane, priority, deliveries, dueInMs, token, holder, endsInMs] = unpack<ViewReply>(meta)
  const lease = token === false ? undefined : { token, holder: holder === false ? undefined : holder, endsInMs }
  return { ...name, lane, priority, payload: unpack(body), deliveries, dueInMs, lease }
}

function pairsOf<T>(flat: readonly T[]): readonly (readonly [T, T])[] {
  const pairs: (readonly [T, T])[] = []
  for (let index = 0; index + 1 < flat.length; index += 2) pairs.push([flat[index] as T, flat[index + 1] as T])
  return pairs
}

function triplesOf<T>(flat: readonly T[]): readonly (readonly [T, T, T])[] {
  const triples: (readonly [T, T, T])[] = []
  for (let index = 0; index + 2 < flat.length; index += 3) {
    triples.push([flat[index] as T, flat[index + 1] as T, flat[index + 2] as T])
  }
  return triples
}

function bytesOf(value: Buffer | number): Buffer {
  if (typeof value === 'number') throw new TypeError('The server answered a number where bytes belong')
  return value
}

function bufferOf(value: unknown): Buffer {
  if (!Buffer.isBuffer(value)) throw new TypeError('The server answered something else where bytes belong')
  return value
}

function textOf(value: Buffer | number): string {
  return value.toString()
}

/** The boundary where a name from a hint becomes a queue again: only this package sends it. */
function queueOf(name: string): Queue {
  return name as Queue
}
