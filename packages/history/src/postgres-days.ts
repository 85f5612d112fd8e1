import { DAY_MS } from '@impresario/protocol'
import type { ClientBase } from 'pg'
import type { Retention } from './history.ts'
import { inTransaction } from './postgres-connections.ts'

/**
 * Days prepared ahead, including today: after a server could not do it for two days, events still go to their own
 * partitions.
 */
const DAYS_AHEAD = 3
/** Events per transaction when old ones are removed row by row. */
const TRIM_LIMIT = 2_000
/** The lock under which one instance at a time removes events beyond the bounds. */
const LOCK_SPACE = 1_751_741_300

interface Day {
  /** `2026-01-31`. */
  readonly date: string
  readonly from: number
}

/** The day of an event, under which the ledger counts it. */
export function dateOf(ms: number): string {
  return new Date(Math.floor(ms / DAY_MS) * DAY_MS).toISOString().slice(0, 10)
}

/** A day's table is named after its date, so that each can be derived from the other. */
function tableOf(schema: string, date: string): string {
  return `"${schema}".history_${date.replaceAll('-', '')}`
}

async function daysOf(client: ClientBase, schema: string): Promise<readonly Day[]> {
  const { rows } = await client.query<{ readonly digits: string }>(
    `SELECT substring(c.relname FROM '^history_([0-9]{8})$') AS digits FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = $1::regclass AND c.relname ~ '^history_[0-9]{8}$' ORDER BY 1`,
    [`"${schema}".history`],
  )
  return rows.map(({ digits }) => {
    const date = `${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}`
    return { date, from: Date.parse(date) }
  })
}

/**
 * Creates the tables of today and the following days, where they are missing. If `history_other` already has events of
 * a day, they stay there: rows cannot be in two partitions, and nothing depends on where they are.
 */
async function prepareDays(client: ClientBase, schema: string, now: number): Promise<void> {
  const known = new Set((await daysOf(client, schema)).map(({ date }) => date))
  for (let ahead = 0; ahead < DAYS_AHEAD; ahead += 1) {
    const date = dateOf(now + ahead * DAY_MS)
    if (known.has(date)) continue
    const bounds = [date, dateOf(now + (ahead + 1) * DAY_MS)].map((day) => `${day} 00:00:00+00`)
    const { rowCount } = await client.query(
      `SELECT FROM "${schema}".history_other WHERE "timestamp" >= $1::timestamptz AND "timestamp" < $2::timestamptz LIMIT 1`,
      bounds,
    )
    if (rowCount !== 0) continue
    const [from = '', to = ''] = bounds
    await client.query(
      `CREATE TABLE ${tableOf(schema, date)} PARTITION OF "${schema}".history FOR VALUES FROM ('${from}') TO ('${to}')`,
    )
  }
}

/** In a transaction: whether this instance may change the days now. */
async function mayChange(client: ClientBase, schema: string): Promise<boolean> {
  // Creating or dropping a day locks the table briefly. A long read holds the lock; then it is retried in a minute.
  await client.query("SET LOCAL lock_timeout = '2s'")
  const { rows } = await client.query<{ readonly mine: boolean }>(
    'SELECT pg_try_advisory_xact_lock($1, hashtext($2)) AS mine',
    [LOCK_SPACE, schema],
  )
  return rows[0]?.mine === true
}

/** At the start. If another instance is doing it, there is nothing to do. */
export async function prepareDaysOnce(client: ClientBase, schema: string, now: number): Promise<void> {
  await inTransaction(client, async () => {
    if (await mayChange(client, schema)) await prepareDays(client, schema, now)
  })
}

/** Removes one portion of the events beyond the bounds. Returns the number of removed events. */
export function trimDays(client: ClientBase, schema: string, retention: Retention, now: number): Promise<number> {
  return inTransaction(client, async () => {
    if (!(await mayChange(client, schema))) return 0
    await prepareDays(client, schema, now)
    return (
      (await trimByAge(client, schema, now - retention.ageMs)) || (await trimBySize(client, schema, retention, now))
    )
  })
}

async function trimByAge(client: ClientBase, schema: string, cutoff: number): Promise<number> {
  if (!Number.isFinite(cutoff)) return 0
  const [oldest] = await daysOf(client, schema)
  if (oldest !== undefined && oldest.from + DAY_MS <= cutoff) return dropDay(client, schema, oldest.date)
  const removed = await removeRows(client, schema, `"${schema}".history_other`, { before: cutoff, limit: TRIM_LIMIT })
  if (removed === 0) {
    await client.query(`DELETE FROM "${schema}".ledger WHERE day < $1::date - 1`, [dateOf(cutoff)])
  }
  return removed
}

/** Removes whole days while the excess is larger than a day, then single rows, oldest first. */
async function trimBySize(client: ClientBase, schema: string, { bytesMax }: Retention, now: number): Promise<number> {
  const { rows } = await client.query<{ readonly events: number; readonly bytes: number }>(
    `SELECT coalesce(sum(events), 0)::float8 AS events, coalesce(sum(bytes), 0)::float8 AS bytes FROM "${schema}".ledger`,
  )
  const { events = 0, bytes = 0 } = rows[0] ?? {}
  const excess = bytes - bytesMax
  if (excess <= 0) return 0
  const first = await client.query<{ readonly place: string; readonly day: string; readonly bytes: number }>(
    `SELECT h.tableoid::regclass::text AS place, (h."timestamp" AT TIME ZONE 'UTC')::date::text AS day,
      (SELECT coalesce(sum(bytes), 0)::float8 FROM "${schema}".ledger l
        WHERE l.day = (h."timestamp" AT TIME ZONE 'UTC')::date) AS bytes
      FROM "${schema}".history h ORDER BY h."timestamp", h.event_id LIMIT 1`,
  )
  const [oldest] = first.rows
  if (oldest === undefined) {
    // There are no rows, regardless of the ledger.
    await client.query(`DELETE FROM "${schema}".ledger`)
    return 0
  }
  const isWhole = oldest.day < dateOf(now) && oldest.bytes <= excess && !oldest.place.endsWith('history_other')
  if (isWhole) return dropDay(client, schema, oldest.day)
  const limit = Math.min(TRIM_LIMIT, Math.max(1, Math.ceil((excess * events) / bytes)))
  return removeRows(client, schema, oldest.place, { limit })
}

async function dropDay(client: ClientBase, schema: string, date: string): Promise<number> {
  await client.query(`DROP TABLE ${tableOf(schema, date)}`)
  const { rows } = await client.query<{ readonly events: number }>(
    `WITH gone AS (DELETE FROM "${schema}".ledger WHERE day = $1::date RETURNING events)
      SELECT coalesce(sum(events), 0)::float8 AS events FROM gone`,
    [date],
  )
  return Math.max(1, rows[0]?.events ?? 0)
}

/** Its oldest rows, up to a limit. Each removes its share of the day's bytes from the ledger. */
async function removeRows(
  client: ClientBase,
  schema: string,
  place: string,
  { before, limit }: { readonly before?: number; readonly limit: number },
): Promise<number> {
  const condition = before === undefined ? '' : 'WHERE "timestamp" < to_timestamp($2)'
  const { rows } = await client.query<{ readonly events: number }>(
    `WITH gone AS (
        DELETE FROM ${place} WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM ${place} ${condition} ORDER BY "timestamp", event_id LIMIT $1))
        RETURNING ("timestamp" AT TIME ZONE 'UTC')::date AS day),
      days AS (SELECT day, count(*) AS events FROM gone GROUP BY day),
      shares AS (
        SELECT d.day, d.events, coalesce(d.events * sum(l.bytes) / nullif(sum(l.events), 0), 0)::bigint AS bytes
        FROM days d LEFT JOIN "${schema}".ledger l ON l.day = d.day GROUP BY d.day, d.events),
      written AS (
        INSERT INTO "${schema}".ledger AS l (day, writer, batch, events, bytes)
        SELECT day, '', 0, -events, -bytes FROM shares
        ON CONFLICT (day, writer) DO UPDATE SET events = l.events + excluded.events, bytes = l.bytes + excluded.bytes)
      SELECT coalesce(sum(events), 0)::float8 AS events FROM days`,
    before === undefined ? [limit] : [limit, before / 1_000],
  )
  return rows[0]?.events ?? 0
}
