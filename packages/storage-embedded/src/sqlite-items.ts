import { AGEING_MS } from '@impresario/core'
import { PAYLOAD_KEPT_CHARS_MAX } from './entry.ts'
import type { OpenedItem, RestingPage } from './journal.ts'
import { RESTING_PAGE_ROWS } from './resting-items.ts'
import type { Database } from './sqlite-schema.ts'

export const ITEM_COLUMNS = `queue, id, lane, priority, seq, due_at AS dueAt, fallback_lane AS fallbackLane,
  fallback_at AS fallbackAt, settle_at AS settleAt, unclaimed_at AS unclaimedAt, run_ms AS runMs, run_at AS runAt, token,
  leased_until AS leasedUntil, holder, deliveries`

/** As `OpenedItem` has them. */
export const OPENED_COLUMNS = `${ITEM_COLUMNS},
  CASE WHEN octet_length(payload) <= ${PAYLOAD_KEPT_CHARS_MAX} THEN payload END AS payload`

/** Never claimed, nobody has it, and its time is not over. */
const RESTS = `token = 0 AND leased_until = 0 AND holder IS NULL AND run_at IS NULL AND deliveries = 0
  AND (fallback_at IS NULL OR fallback_at > :now) AND (settle_at IS NULL OR settle_at > :now)
  AND (unclaimed_at IS NULL OR unclaimed_at > :now)`

/** Later than any clock: SQLite has no infinity that can be read back from its text. */
const NEVER = '9e15'
const NEVER_AT = Number(NEVER)

/** All rows of a page, in their order: SQLite visits them by the primary key. */
const ROWS = `FROM items WHERE queue = :queue AND id > :after ORDER BY id LIMIT ${RESTING_PAGE_ROWS}`

const ALARM = `min(CASE WHEN due_at > :now THEN due_at ELSE ${NEVER} END, ifnull(fallback_at, ${NEVER}),
  ifnull(settle_at, ${NEVER}), ifnull(unclaimed_at, ${NEVER}))`

/**
 * A page as some long texts. A row as an object takes 4 µs, a value in a text a tenth of one: a million rows are read in a
 * second instead of ten.
 */
const PAGE = `SELECT count(*) AS count, max(id) AS lastId, sum(rests) AS resting, min(lane) AS firstLane, max(lane) AS lastLane,
  min(alarm) AS firstAlarm, CAST(group_concat(id, '') FILTER (WHERE rests) AS BLOB) AS ids,
  group_concat(octet_length(id)) FILTER (WHERE rests) AS idBytes, group_concat(seq) FILTER (WHERE rests) AS seqs,
  group_concat(rank) FILTER (WHERE rests) AS ranks
  FROM (SELECT id, lane, seq, due_at - priority * ${AGEING_MS} AS rank, ${ALARM} AS alarm, ${RESTS} AS rests ${ROWS})`

/** The rest, where the rows differ in it. */
const PAGE_DETAILS = `SELECT json_group_array(lane) AS lanes, group_concat(alarm) AS alarms, group_concat(asleep) AS asleep
  FROM (SELECT lane, ${ALARM} AS alarm, due_at > :now AS asleep, ${RESTS} AS rests ${ROWS}) WHERE rests`

/** Those that do not rest. */
const OTHERS = `SELECT ${OPENED_COLUMNS} FROM items WHERE queue = :queue AND id > :after AND id <= :last AND NOT (${RESTS})`

interface PageRow {
  readonly count: number
  readonly lastId: string
  readonly resting: number
  readonly firstLane: string
  readonly lastLane: string
  readonly firstAlarm: number
  readonly ids: Uint8Array
  readonly idBytes: string
  readonly seqs: string
  readonly ranks: string
}

interface DetailsRow {
  readonly lanes: string
  readonly alarms: string
  readonly asleep: string
}

/** What is in the file at the start. */
export function openedItems(db: Database, now: number, restingMin: number): Iterable<OpenedItem | RestingPage> {
  const { count } = db.prepare('SELECT count(*) AS count FROM items').get() as { readonly count: number }
  // Row by row: loading many at once would double the memory that they need.
  return count < restingMin ? itemRows(db.prepare(`SELECT ${OPENED_COLUMNS} FROM items`).iterate()) : pages(db, now)
}

function* pages(db: Database, now: number): Generator<OpenedItem | RestingPage> {
  const queues = db.prepare('SELECT DISTINCT queue FROM items').all() as readonly { readonly queue: string }[]
  const page = db.prepare(PAGE)
  const details = db.prepare(PAGE_DETAILS)
  const others = db.prepare(OTHERS)
  for (const { queue } of queues) {
    let after = ''
    for (;;) {
      const where = { now, queue, after }
      const row = pageIn(page.get(where))
      if (row.count === 0) break
      const isPlain = row.firstLane === row.lastLane && row.firstAlarm >= NEVER_AT
      if (row.resting > 0) yield pageOf(queue, row, isPlain ? undefined : detailsIn(details.get(where)))
      if (row.resting < row.count) yield* itemRows(others.all({ ...where, last: row.lastId }))
      if (row.count < RESTING_PAGE_ROWS) break
      after = row.lastId
    }
  }
}

function pageOf(queue: string, row: PageRow, details: DetailsRow | undefined): RestingPage {
  const plain = {
    queue,
    ids: row.ids,
    idBytes: numbersIn(row.idBytes),
    lanes: row.firstLane,
    seqs: numbersIn(row.seqs),
    ranks: numbersIn(row.ranks),
  }
  if (details === undefined) return plain
  return {
    ...plain,
    lanes: JSON.parse(details.lanes) as readonly string[],
    alarms: numbersIn(details.alarms).map((at) => (at >= NEVER_AT ? Infinity : Math.floor(at))),
    asleep: details.asleep.split(',').map((flag) => flag === '1'),
  }
}

function numbersIn(text: string): readonly number[] {
  return text.split(',').map(Number)
}

/** Type boundary: strict tables that only this package writes, read by column name. */
function pageIn(row: unknown): PageRow {
  return row as PageRow
}

function detailsIn(row: unknown): DetailsRow {
  return row as DetailsRow
}

function itemRows(rows: Iterable<unknown>): Iterable<OpenedItem> {
  return rows as Iterable<OpenedItem>
}
