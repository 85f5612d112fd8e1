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
import { commitParameters, mustBeStorable } from './batch-message.ts'
import { closedError } from './connections.ts'
import type { Connections } from './connections.ts'
import { GroupCommit } from './group-commit.ts'
import type { Hints } from './hints.ts'
import { listStatement } from './list-statement.ts'
import { leaseOf, storedOf, viewOf } from './rows.ts'
import type { ClaimRow, ItemRow, RecordRow } from './rows.ts'
import type { Session } from './session.ts'

export interface PostgresStorageParts {
  readonly connections: Connections
  readonly hints: Hints
  readonly session: Session
  readonly sessionId: number
  /** Quoted. */
  readonly schema: string
  readonly groupsMax: number
}

const ONCE = { isRepeatable: false } as const
const AGAIN = { isRepeatable: true } as const

/**
 * Storage in PostgreSQL, shared by any number of processes. `open` → `closed` by `close`, for good; while the server is away
 * calls are refused and nothing else changes.
 *
 * Every method is one call of one function in the database, hence one transaction: what a call did is durable when it
 * resolves, and `sync` has nothing to do.
 */
export class PostgresStorage implements Storage {
  readonly #parts: PostgresStorageParts
  readonly #commits: GroupCommit
  /** The lane whose turn was last, for claims that name no lanes. */
  readonly #turns = new Map<Queue, string>()
  #closed: Promise<void> | undefined = undefined

  constructor(parts: PostgresStorageParts) {
    this.#parts = parts
    this.#commits = new GroupCommit({ groupsMax: parts.groupsMax, write: (batches) => this.#write(batches) })
  }

  async read<K extends Kind>(kind: K, id: string): Promise<Stored<Records[K]> | undefined> {
    const { schema: s } = this.#parts
    const text = `SELECT version, data FROM ${s}.records
      WHERE kind = $1 AND id = $2 AND (expires_at IS NULL OR expires_at > (SELECT ${s}.now_ms()))`
    const [row] = await this.#call<RecordRow>(text, [kind, id], AGAIN)
    return row === undefined ? undefined : storedOf<K>(row)
  }

  async list<K extends Kind>(
    kind: K,
    query: ListQuery,
  ): Promise<readonly (Stored<Records[K]> & { readonly id: string })[]> {
    const { text, values } = listStatement(this.#parts.schema, kind, query)
    const rows = await this.#call<RecordRow>(text, values, AGAIN)
    return rows.map((row) => ({ id: row.id, ...storedOf<K>(row) }))
  }

  async counts(kind: Kind, { owner, name }: Pick<Facets, 'owner' | 'name'>): Promise<Readonly<Record<string, number>>> {
    const { schema: s } = this.#parts
    type Count = { readonly status: string; readonly n: number }
    const text = `SELECT status, n FROM ${s}.counted($1, $2, $3)`
    const rows = await this.#call<Count>(text, [kind, owner ?? null, name ?? null], AGAIN)
    return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
  }

  async peek(queue: Queue, ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    if (ids.length === 0) return []
    const { schema: s } = this.#parts
    const text = `SELECT i.id, i.lane, i.priority, i.payload, i.deliveries, i.due_at - t.now AS due_in, i.token, i.holder,
        i.leased_until - t.now AS ends_in
      FROM (SELECT ${s}.now_ms() AS now OFFSET 0) t, ${s}.items i WHERE i.queue = $1 AND i.id = ANY ($2::text[])`
    const rows = await this.#call<ItemRow>(text, [queue, ids], AGAIN)
    const byId = new Map(rows.map((row) => [row.id, viewOf(queue, row)]))
    return ids.map((id) => byId.get(id))
  }

  async lanes(queue: Queue): Promise<readonly LaneView[]> {
    return this.#call<LaneView>(`SELECT lane, ready FROM ${this.#parts.schema}.lanes($1)`, [queue], AGAIN)
  }

  async claim(queue: Queue, options: ClaimOptions): Promise<Claimed> {
    const { schema, sessionId } = this.#parts
    const { lanes, limit, leaseMs, holder } = options
    const text = `SELECT * FROM ${schema}.claim($1, $2, $3, $4, $5, $6, $7)`
    const after = this.#turns.get(queue) ?? null
    const values = [queue, lanes ?? null, limit, Math.ceil(leaseMs), holder ?? null, sessionId, after]
    const rows = await this.#call<ClaimRow>(text, values, ONCE)
    const turn = rows.at(-2)?.turn ?? undefined
    if (lanes === undefined && turn !== undefined) this.#turns.set(queue, turn)
    return claimedOf(queue, rows)
  }

  async claimExpired(
    queue: Queue,
    { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
  ): Promise<Claimed> {
    const { schema, sessionId } = this.#parts
    const text = `SELECT * FROM ${schema}.claim_expired($1, $2, $3, $4)`
    return claimedOf(queue, await this.#call<ClaimRow>(text, [queue, limit, Math.ceil(leaseMs), sessionId], ONCE))
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]> {
    if (leases.length === 0) return []
    const { schema, hints } = this.#parts
    const { rows: refs, places } = inOrder(leases)
    type Renewed = { readonly n: number; readonly lane: string; readonly ready: boolean }
    const values = [JSON.stringify(refs), Math.ceil(leaseMs)]
    const text = `SELECT n, lane, ready FROM ${schema}.renew($1, $2)`
    // A hand-back that is sent twice answers false the second time, so that it is not repeated blindly.
    const rows = await this.#call<Renewed>(text, values, leaseMs > 0 ? AGAIN : ONCE)
    const renewed = new Set(rows.map(({ n }) => n))
    for (const { n, lane, ready } of rows) {
      const queue = refs[n]?.q
      if (ready && queue !== undefined) hints.tell(queue, lane)
    }
    const seen = new Set<number>()
    return places.map((n) => {
      // The same claim, handed back a second time, names nothing any more.
      if (leaseMs <= 0 && seen.has(n)) return false
      seen.add(n)
      return renewed.has(n)
    })
  }

  async commit(batch: Batch): Promise<'committed' | 'conflict'> {
    this.#mustBeOpen()
    mustBeStorable(batch)
    const outcome = await this.#commits.commit(batch)
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
    await this.#commits.drain()
    try {
      // Without the server there is nothing to hand back to: the others find out by themselves.
      await session.end().catch(() => undefined)
      await hints.stop()
    } finally {
      await connections.close()
    }
  }

  async #write(batches: readonly Batch[]): Promise<ReadonlySet<number>> {
    const text = `SELECT ${this.#parts.schema}.commit($1, $2, $3, $4, $5, $6) AS conflicts`
    const [row] = await this.#parts.connections.call<{ readonly conflicts: readonly number[] }>(
      text,
      commitParameters(batches),
      ONCE,
    )
    return new Set(row?.conflicts)
  }

  /** Each lane once: whoever listens looks at all that there is. */
  #announce({ enqueue = [] }: Batch): void {
    const told = new Set<string>()
    for (const { queue, lane, delayMs } of enqueue) {
      const name = `${queue} ${lane}`
      if (delayMs > 0 || told.has(name)) continue
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

function claimedOf(queue: Queue, rows: readonly ClaimRow[]): Claimed {
  const leases: Lease[] = []
  let nextInMs: number | undefined
  for (const row of rows) {
    if (row.id === null) nextInMs = row.next_in ?? undefined
    else leases.push(leaseOf(queue, row, row.id))
  }
  return { leases, nextInMs }
}

interface RefRow {
  readonly n: number
  readonly q: Queue
  readonly i: string
  readonly t: number
}

/** The claims, each once, in the order in which everybody locks; and where among them each of the given ones is. */
function inOrder(leases: readonly LeaseRef[]): {
  readonly rows: readonly RefRow[]
  readonly places: readonly number[]
} {
  const nameOf = ({ queue, id, token }: LeaseRef): string => `i ${queue} ${id} ${token}`
  const unique = new Map(leases.map((lease) => [nameOf(lease), lease]))
  const names = [...unique.keys()].sort()
  const places = new Map(names.map((name, n) => [name, n]))
  const rows = names.flatMap((name, n) => {
    const lease = unique.get(name)
    return lease === undefined ? [] : [{ n, q: lease.queue, i: lease.id, t: lease.token }]
  })
  return { rows, places: leases.map((lease) => places.get(nameOf(lease)) ?? -1) }
}
