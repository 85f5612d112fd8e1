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
import { listingOf } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { commitParameters, mustBeStorable, touchesOf, weightOf } from './batch-message.ts'
import { Claims } from './claims.ts'
import { closedError } from './connections.ts'
import type { Connections } from './connections.ts'
import type { Durability } from './durability.ts'
import { GroupCommit } from './group-commit.ts'
import type { Hints } from './hints.ts'
import { floorStatement, isScan, listStatement, statusesOf, waysOf } from './list-statement.ts'
import type { Way } from './list-statement.ts'
import { Reads } from './reads.ts'
import { Renewals } from './renewals.ts'
import { storedOf } from './rows.ts'
import type { RecordRow } from './rows.ts'
import type { Session } from './session.ts'
import { isStorable, mustBeStorableName, storableQuery } from './storable-name.ts'
import { oldestStatement } from './oldest-statement.ts'

export interface PostgresStorageParts {
  readonly connections: Connections
  readonly hints: Hints
  readonly session: Session
  readonly sessionId: number
  /** Quoted. */
  readonly schema: string
  readonly groupsMax: number
  readonly durability: Durability
}

type Outcome = 'committed' | 'conflict'

const AGAIN = { isRepeatable: true } as const
/** One round trip and one disk flush of the server for this many batches; more would only make the first ones wait. */
const COMMITS_MAX = 128
/** Limit of their data in memory. A larger statement would be built, sent and parsed in one piece. */
const COMMIT_BYTES_MAX = 4_194_304

/**
 * Storage in PostgreSQL, shared by any number of processes. `open` → `closed` by `close`, which is final. While the
 * server is unreachable, calls are refused and nothing else changes.
 *
 * Functions in the database do the work, and each call of one is a transaction: its effect is durable when the call
 * resolves, and `sync` has nothing to do. Calls that are made at the same time are sent together, in one group per
 * kind.
 */
export class PostgresStorage implements Storage {
  readonly durability: Durability
  readonly #parts: PostgresStorageParts
  readonly #commits: GroupCommit<Batch, Outcome>
  readonly #claims: Claims
  readonly #renewals: Renewals
  readonly #reads: Reads
  #closed: Promise<void> | undefined = undefined

  constructor(parts: PostgresStorageParts) {
    this.#parts = parts
    this.durability = parts.durability
    const { connections, schema, hints, groupsMax, sessionId: session } = parts
    this.#commits = new GroupCommit({
      groupsMax,
      sizeMax: COMMITS_MAX,
      touches: touchesOf,
      weigh: weightOf,
      weightMax: COMMIT_BYTES_MAX,
      send: (batches) => this.#write(batches),
    })
    this.#claims = new Claims({ connections, schema, session, groupsMax })
    this.#renewals = new Renewals({ connections, schema, onReady: (queue, lane) => hints.tell(queue, lane) })
    this.#reads = new Reads({ connections, schema })
  }

  async now(): Promise<number> {
    // A double, because the driver returns a bigint as text.
    const text = `SELECT ${this.#parts.schema}.now_ms()::double precision AS at`
    const [row] = await this.#call<{ readonly at: number }>(text, [], AGAIN)
    if (row === undefined) throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The database did not return its time.')
    return row.at
  }

  async read<K extends Kind>(kind: K, id: string): Promise<Stored<Records[K]> | undefined> {
    this.#mustBeOpen()
    // Names that cannot exist must not be sent in a group, because the server would refuse the other calls as well.
    return isStorable(id) ? this.#reads.read(kind, id) : undefined
  }

  async list<K extends Kind>(kind: K, query: ListQuery): Promise<Listing<K>> {
    const storable = storableQuery(query)
    if (storable === undefined) return []
    if (statusesOf(storable)?.length === 0 || storable.limit < 1) return []
    const way = await this.#wayOf(kind, storable)
    const isBounded = storable.looksMax !== undefined && isScan(way, storable)
    const { text, values } = listStatement(this.#parts.schema, kind, storable, way, isBounded)
    const found = await this.#call<ListRow>(text, values, AGAIN)
    const floor = found[0]?.floor ?? undefined
    // Where nothing fits, the one row only tells how far back that was looked.
    const rows = found.filter(isRecord)
    const last = rows.at(-1)
    const isCut = last?.total !== undefined && last.total > rows.length
    const next = isCut ? last.id : rows.length < storable.limit ? floor : undefined
    return listingOf<K>(
      rows.map((row) => ({ id: row.id, ...storedOf<K>(row) })),
      next,
    )
  }

  /** The index that a list walks: of several the one that leads further back with so many looks. */
  async #wayOf(kind: Kind, query: ListQuery): Promise<Way> {
    const ways = waysOf(kind, query)
    const [first = 'id'] = ways
    if (ways.length === 1) return first
    const { text, values } = floorStatement(this.#parts.schema, kind, query, ways)
    const [row] = await this.#call<Readonly<Record<string, string | null>>>(text, values, AGAIN)
    const reached = ways.map((way, index) => ({ way, floor: row?.[`w${index}`] ?? undefined }))
    return reached.reduce((a, b) => (isFurther(b.floor, a.floor) ? b : a)).way
  }

  async counts(kind: Kind, { owner, name }: Pick<Facets, 'owner' | 'name'>): Promise<Readonly<Record<string, number>>> {
    if (!isStorable(owner, name)) return {}
    const { schema: s } = this.#parts
    type Count = { readonly status: string; readonly n: number }
    const text = `SELECT status, n FROM ${s}.counted($1, $2, $3)`
    const rows = await this.#call<Count>(text, [kind, owner ?? null, name ?? null], AGAIN)
    return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
  }

  async peek(queue: Queue, ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    this.#mustBeOpen()
    const storable = ids.filter((id) => isStorable(id))
    const views = storable.length === 0 ? [] : await this.#reads.peek(queue, storable)
    if (storable.length === ids.length) return views
    let index = 0
    return ids.map((id) => (isStorable(id) ? views[index++] : undefined))
  }

  /**
   * Reads the whole queue, a second for a million items: an additional index would cost every claim more than a start
   * gains.
   */
  async held(queue: Queue): Promise<readonly string[]> {
    const { schema: s } = this.#parts
    const text = `SELECT id FROM ${s}.items WHERE queue = $1 AND state = 2 AND holder IS NOT NULL AND leased_until > ${s}.now_ms()`
    const rows = await this.#call<{ readonly id: string }>(text, [queue], AGAIN)
    return rows.map(({ id }) => id)
  }

  async lanes(queue: Queue): Promise<readonly LaneView[]> {
    return this.#call<LaneView>(`SELECT lane, ready FROM ${this.#parts.schema}.lanes($1)`, [queue], AGAIN)
  }

  async oldest(queue: Queue, lane?: string): Promise<number | undefined> {
    if (!isStorable(lane)) return undefined
    const { schema: s } = this.#parts
    // Finds what is due by now, in a statement of its own: the one that looks would not see it.
    await this.#call(`SELECT ${s}.ready_lanes($1, 1)`, [queue], AGAIN)
    const [row] = await this.#call<{ readonly waited: number | null }>(
      oldestStatement(s, lane !== undefined),
      lane === undefined ? [queue] : [queue, lane],
      AGAIN,
    )
    const waited = row?.waited ?? undefined
    return waited === undefined ? undefined : Math.max(0, waited)
  }

  async claim(queue: Queue, options: ClaimOptions): Promise<Claimed> {
    this.#mustBeOpen()
    mustBeStorableName(options.holder)
    const lanes = options.lanes?.filter((lane) => isStorable(lane))
    return this.#claims.claim(queue, lanes === undefined ? options : { ...options, lanes })
  }

  async claimExpired(queue: Queue, options: { readonly limit: number; readonly leaseMs: number }): Promise<Claimed> {
    this.#mustBeOpen()
    return this.#claims.claimExpired(queue, options)
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]> {
    this.#mustBeOpen()
    const storable = leases.filter(({ id }) => isStorable(id))
    const renewed = storable.length === 0 ? [] : await this.#renewals.renew(storable, leaseMs)
    if (storable.length === leases.length) return renewed
    let index = 0
    return leases.map(({ id }) => isStorable(id) && renewed[index++] === true)
  }

  async commit(batch: Batch): Promise<Outcome> {
    this.#mustBeOpen()
    mustBeStorable(batch)
    const outcome = await this.#commits.ask(batch)
    if (outcome === 'committed') this.#announce(batch)
    return outcome
  }

  async sync(): Promise<void> {
    this.#mustBeOpen()
  }

  watch(queue: Queue, listener: (lane: string) => void): () => void {
    return this.#parts.hints.watch(queue, listener)
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    const { session, hints, connections } = this.#parts
    await Promise.all([this.#commits.drain(), this.#claims.drain(), this.#renewals.drain(), this.#reads.drain()])
    try {
      // Without the server the leases cannot be handed back: other processes notice the missing heartbeats.
      await session.end().catch(() => undefined)
      await hints.stop()
    } finally {
      await connections.close()
    }
  }

  async #write(batches: readonly Batch[]): Promise<readonly Outcome[]> {
    const text = `SELECT ${this.#parts.schema}.commit($1, $2, $3, $4) AS conflicts`
    type Row = { readonly conflicts: readonly number[] }
    const [row] = await this.#parts.connections.call<Row>(text, commitParameters(batches, this.#parts.sessionId), {
      isRepeatable: false,
    })
    const conflicts = new Set(row?.conflicts)
    return batches.map((_, index) => (conflicts.has(index) ? 'conflict' : 'committed'))
  }

  /** Each lane once: a listener checks all items of the lane anyway. */
  #announce({ enqueue = [] }: Batch): void {
    const told = new Set<string>()
    for (const { queue, lane, delayMs, claimed } of enqueue) {
      const name = `${queue} ${lane}`
      if (delayMs > 0 || claimed !== undefined || told.has(name)) continue
      told.add(name)
      this.#parts.hints.tell(queue, lane)
    }
  }

  async #call<R extends object>(
    text: string,
    values: readonly unknown[],
    options: { readonly isRepeatable: boolean },
  ): Promise<readonly R[]> {
    this.#mustBeOpen()
    return this.#parts.connections.call<R>(text, values, options)
  }

  #mustBeOpen(): void {
    if (this.#closed !== undefined) throw closedError()
  }
}

/** A row of a list. `id` is null in the one row of a bounded list in which nothing fits. */
type ListRow = { readonly total?: number; readonly floor?: string | null } & (RecordRow | { readonly id: null })

function isRecord(row: ListRow): row is ListRow & RecordRow {
  return row.id !== null
}

/** Without a floor it leads to the end of its records. */
function isFurther(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return a === undefined && b !== undefined
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0
}
