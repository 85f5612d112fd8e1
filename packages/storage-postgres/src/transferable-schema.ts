import { markOf, markText, mustBeOwn } from '@impresario/core'
import type {
  EntryCounts,
  Transferable,
  TransferPage,
  TransferRecord,
  TransferMark,
  Origin,
  Outline,
  PageSize,
} from '@impresario/core'
import { isImpresarioError } from '@impresario/protocol'
import pg from 'pg'
import type { QueryResultRow } from 'pg'
import { parsedAddress } from './address.ts'
import { clientConfig, unavailable } from './connections.ts'
import { mustBeDurable } from './durability.ts'
import { migrate, mustBeNamespace, quoted } from './migrations.ts'
import { itemParameter, transferItem, transferRecord, recordParameter } from './transfer-rows.ts'
import type { TransferItemRow, TransferRecordRow } from './transfer-rows.ts'
import { NAMESPACE, refusalOf } from './open.ts'

/** The schema at this address, for a transfer; `undefined` if it does not exist and is not to be created. */
export async function openTransferableSchema(options: {
  readonly url: string
  readonly mayCreate: boolean
}): Promise<TransferableSchema | undefined> {
  const { url, namespace = NAMESPACE, strict = false } = parsedAddress(options.url)
  mustBeNamespace(namespace)
  const client = new pg.Client(clientConfig(url))
  // A connection that breaks rejects the query in progress. Without a listener the error would end the process.
  client.on('error', () => undefined)
  try {
    await client.connect()
    if (!options.mayCreate) {
      const found = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [namespace])
      if (found.rowCount === 0) {
        await client.end()
        return undefined
      }
    }
    await mustBeDurable(client, { strict, log: undefined })
    await migrate(client, namespace)
    return new TransferableSchema(client, quoted(namespace))
  } catch (error) {
    await client.end().catch(() => undefined)
    throw isImpresarioError(error) ? error : (refusalOf(error) ?? unavailable(error))
  }
}

/** Reads the tables in key order, each page in its own transaction. */
class TransferableSchema implements Transferable {
  readonly #client: pg.Client
  /** Quoted. */
  readonly #schema: string

  constructor(client: pg.Client, schema: string) {
    this.#client = client
    this.#schema = schema
  }

  async mark(): Promise<TransferMark | undefined> {
    const [row] = await this.#query<{ readonly mark: string }>(`SELECT mark FROM ${this.#schema}.moves`)
    return markOf(row?.mark)
  }

  async setMark(mark: TransferMark | undefined): Promise<void> {
    if (mark === undefined) await this.#query(`DELETE FROM ${this.#schema}.moves`)
    else await this.#writeMark(mark)
  }

  async users(): Promise<readonly string[]> {
    const rows = await this.#query<{ readonly name: string }>(
      `SELECT coalesce(instance, 'session ' || id) AS name FROM ${this.#schema}.sessions
       WHERE alive_until > clock_timestamp() ORDER BY 1`,
    )
    return rows.map(({ name }) => name)
  }

  async outline(): Promise<Outline> {
    const s = this.#schema
    const [row] = await this.#query<Outline>(
      `SELECT ${s}.now_ms() AS now, coalesce(min(seq), 0) AS "firstOrder", coalesce(max(seq), 0) AS "lastOrder",
        (SELECT last_value FROM ${s}.tokens) AS "lastToken" FROM ${s}.items`,
    )
    return row ?? { now: 0, firstOrder: 0, lastOrder: 0, lastToken: 0 }
  }

  async counts(): Promise<EntryCounts> {
    const s = this.#schema
    type Count = { readonly name: string; readonly n: number }
    const records = await this.#query<Count>(
      `SELECT kind AS name, count(*) AS n FROM ${s}.records
       WHERE expires_at IS NULL OR expires_at > (SELECT ${s}.now_ms()) GROUP BY kind`,
    )
    const items = await this.#query<Count>(`SELECT queue AS name, count(*) AS n FROM ${s}.items GROUP BY queue`)
    const countsOf = (rows: readonly Count[]): Readonly<Record<string, number>> =>
      Object.fromEntries(rows.map(({ name, n }) => [name, n]))
    return { records: countsOf(records), items: countsOf(items) }
  }

  /** PostgreSQL's text type cannot hold U+0000. It is removed from search text, where it is never searched for. */
  fitted(page: TransferPage): TransferPage {
    const fit = (record: TransferRecord): TransferRecord =>
      record.text?.includes('\0') === true ? { ...record, text: record.text.replaceAll('\0', '\uFFFD') } : record
    return { ...page, records: page.records.map(fit) }
  }

  /** First the records, then the items. A cursor consists of the table and the key of the last row of a page. */
  async dump(origin: Origin, cursor: string | undefined, size: PageSize): Promise<TransferPage> {
    const [table, ...after] = cursor === undefined ? (['records', '', ''] as const) : cursorOf(cursor)
    if (table === 'records') {
      const columns = 'kind, id, version, owner, status, name, text, expires_at, data'
      const from = `${this.#schema}.records WHERE (kind, id) > ($1, $2) AND (expires_at IS NULL OR expires_at > $5)`
      const sql = pageStatement({ columns, from, key: 'kind, id', body: 'data' })
      const rows = await this.#page<TransferRecordRow>(sql, [...after, size.entriesMax, size.bytesMax, origin.at])
      const last = rows.at(-1)
      const next = last === undefined || isLast(rows, size) ? ['items', '', ''] : ['records', last.kind, last.id]
      return { records: rows.map((row) => transferRecord(row, origin)), items: [], next: JSON.stringify(next) }
    }
    const columns = `queue, id, seq, priority, token, due_at, leased_until, settle_at, unclaimed_at, run_ms, run_at,
      fallback_at, deliveries, closing, lane, fallback_lane, holder, payload`
    const from = `${this.#schema}.items WHERE (queue, id) > ($1, $2)`
    const sql = pageStatement({ columns, from, key: 'queue, id', body: 'payload' })
    const rows = await this.#page<TransferItemRow>(sql, [...after, size.entriesMax, size.bytesMax])
    const last = rows.at(-1)
    const next = last === undefined || isLast(rows, size) ? undefined : JSON.stringify(['items', last.queue, last.id])
    return { records: [], items: rows.map((row) => transferItem(row, origin)), next }
  }

  async load(origin: Origin, { records, items }: TransferPage, mark: TransferMark): Promise<void> {
    const s = this.#schema
    const recordRows = records.map(recordParameter)
    const itemRows = items.map((item) => itemParameter(item, origin))
    await this.#transaction(async () => {
      const [row] = await this.#query<{ readonly mark: string }>(`SELECT mark FROM ${s}.moves FOR UPDATE`)
      mustBeOwn(markOf(row?.mark), mark)
      if (recordRows.length > 0) await this.#query(loadRecords(s), [JSON.stringify(recordRows), origin.at])
      if (itemRows.length > 0) await this.#query(loadItems(s), [JSON.stringify(itemRows), origin.at])
      await this.#writeMark(mark)
    })
  }

  async finish(lastToken: number): Promise<void> {
    const s = this.#schema
    await this.#transaction(async () => {
      await this.#query(`DELETE FROM ${s}.counts`)
      await this.#query(
        `INSERT INTO ${s}.counts (kind, status, owner, name, stripe, n)
         SELECT kind, status, coalesce(owner, ''), coalesce(name, ''), 0, count(*) FROM ${s}.records
         WHERE status IS NOT NULL GROUP BY 1, 2, 3, 4`,
      )
      await this.#query(`SELECT setval('${s}.tokens', greatest($1::bigint, (SELECT last_value FROM ${s}.tokens)))`, [
        lastToken,
      ])
      await this.#query(
        `SELECT setval('${s}.orders', greatest((SELECT max(seq) FROM ${s}.items), (SELECT last_value FROM ${s}.orders)))`,
      )
    })
    await this.#query(`ANALYZE ${s}.records, ${s}.items`)
  }

  async clear(): Promise<void> {
    const s = this.#schema
    await this.#query(`TRUNCATE ${s}.records, ${s}.items, ${s}.counts`)
  }

  async close(): Promise<void> {
    await this.#client.end()
  }

  async #writeMark(mark: TransferMark): Promise<void> {
    await this.#query(
      `INSERT INTO ${this.#schema}.moves (mark) VALUES ($1) ON CONFLICT (one) DO UPDATE SET mark = excluded.mark`,
      [markText(mark)],
    )
  }

  /** Uses the key's index, regardless of the statistics of tables that were just filled. */
  #page<R extends QueryResultRow>(sql: string, values: readonly unknown[]): Promise<readonly R[]> {
    return this.#transaction(async () => {
      await this.#query('SET LOCAL enable_seqscan = off')
      await this.#query('SET LOCAL enable_bitmapscan = off')
      return this.#query<R>(sql, values)
    })
  }

  async #transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.#query('BEGIN')
    try {
      const result = await work()
      await this.#query('COMMIT')
      return result
    } catch (error) {
      await this.#client.query('ROLLBACK').catch(() => undefined)
      throw error
    }
  }

  async #query<R extends QueryResultRow>(sql: string, values: readonly unknown[] = []): Promise<readonly R[]> {
    try {
      const { rows } = await this.#client.query<R>(sql, [...values])
      return rows
    } catch (error) {
      throw refusalOf(error) ?? unavailable(error)
    }
  }
}

interface Paged {
  readonly columns: string
  readonly from: string
  readonly key: string
  readonly body: string
}

/** Up to `$3` rows after the key `$1, $2`, limited to `$4` bytes of bodies, but at least one. */
function pageStatement({ columns, from, key, body }: Paged): string {
  return `SELECT * FROM (
      SELECT ${columns}, row_number() OVER keys AS place, sum(octet_length(${body})) OVER keys AS bytes,
        count(*) OVER () AS total
      FROM (SELECT ${columns} FROM ${from} ORDER BY ${key} LIMIT $3) few WINDOW keys AS (ORDER BY ${key})
    ) page WHERE place = 1 OR bytes <= $4 ORDER BY place`
}

function isLast(rows: readonly { readonly total: number }[], { entriesMax }: PageSize): boolean {
  const total = rows[0]?.total ?? 0
  return total < entriesMax && rows.length === total
}

function loadRecords(s: string): string {
  return `INSERT INTO ${s}.records (kind, id, version, expires_at, owner, status, name, text, data)
    SELECT r.k, r.i, r.v, $2::bigint + r.e, r.o, r.s, r.m, r.t, r.d
    FROM json_to_recordset($1::json)
      AS r(k text, i text, v integer, e bigint, o text, s text, m text, t text, d text)
    ON CONFLICT (kind, id) DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at,
      owner = excluded.owner, status = excluded.status, name = excluded.name, text = excluded.text, data = excluded.data`
}

/** Times are durations from the moment of the transfer (`u`, `x`) or from when the item is due (`fa`, `s`, `f`). */
function loadItems(s: string): string {
  return `INSERT INTO ${s}.items (queue, id, seq, rank, priority, token, session, due_at, leased_until, alarm_at, expired_at,
      settle_at, unclaimed_at, run_ms, run_at, fallback_at, deliveries, state, fallback_on, closing, lane, fallback_lane,
      holder, payload)
    SELECT p.q, p.i, p.o, ${s}.rank_of(at.due, p.p), p.p, p.k, NULL, at.due, at.until,
      ${s}.alarm_of(t.now, st.state, at.due, at.until, ex.at, at.fallback), ex.at,
      at.settle, at.first, p.r, at.run, at.fallback, p.n, st.state, coalesce(at.fallback <= t.now, false), p.c, p.l, p.fl,
      p.h, p.d
    FROM (SELECT ${s}.now_ms() AS now OFFSET 0) t, json_to_recordset($1::json) AS p(q text, i text, o bigint,
      p double precision, k bigint, w bigint, u bigint, x bigint, fa bigint, s bigint, f bigint, r bigint, n integer,
      c boolean, l text, fl text, h text, d text)
    CROSS JOIN LATERAL (SELECT $2::bigint + p.w AS due, coalesce($2::bigint + p.u, 0) AS until, $2::bigint + p.x AS run,
      $2::bigint + p.w + p.fa AS fallback, $2::bigint + p.w + p.s AS settle, $2::bigint + p.w + p.f AS first) AS at
    CROSS JOIN LATERAL (SELECT ${s}.expiry_of(at.until, at.settle, at.first, at.run, p.n) AS at) AS ex
    CROSS JOIN LATERAL (SELECT ${s}.state_of(t.now, at.due, at.until, ex.at, p.c) AS state) AS st
    ON CONFLICT (queue, id) DO UPDATE SET seq = excluded.seq, rank = excluded.rank, priority = excluded.priority,
      token = excluded.token, session = NULL, due_at = excluded.due_at, leased_until = excluded.leased_until,
      alarm_at = excluded.alarm_at, expired_at = excluded.expired_at, settle_at = excluded.settle_at,
      unclaimed_at = excluded.unclaimed_at, run_ms = excluded.run_ms, run_at = excluded.run_at,
      fallback_at = excluded.fallback_at, deliveries = excluded.deliveries, state = excluded.state,
      fallback_on = excluded.fallback_on, closing = excluded.closing, lane = excluded.lane,
      fallback_lane = excluded.fallback_lane, holder = excluded.holder, payload = excluded.payload`
}

/** Type boundary of cursors: only `dump` creates them. */
function cursorOf(cursor: string): readonly ['records' | 'items', string, string] {
  return JSON.parse(cursor) as readonly ['records' | 'items', string, string]
}
