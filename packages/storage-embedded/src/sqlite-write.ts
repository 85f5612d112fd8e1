import type { Changes, CountRow, ItemRow, LeaseRow, RecordRow, RecordUpdate } from './journal.ts'

/**
 * Lets a write check whether anything has expired. The check takes a hundredth of the time of a sweep that finds
 * nothing.
 */
export const HAS_EXPIRED = 'SELECT 1 FROM records WHERE expires_at <= ? LIMIT 1'
/** Oldest first, with the size of the data in bytes, which SQLite knows without reading the data. */
export const EXPIRED = `SELECT kind, id, octet_length(data) AS size FROM records WHERE expires_at <= ?
  ORDER BY expires_at LIMIT ?`
export const DROP = 'DELETE FROM records WHERE kind = ? AND id = ?'
/** The positions of these two in the list of statements below. */
export const DROP_AT = 5
export const SWEEP_AT = 6

/** The statements that a write uses, in the order in which it uses them. */
export const WRITE_STATEMENTS: readonly string[] = [
  'DELETE FROM items WHERE queue = ? AND id = ?',
  'INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  'UPDATE items SET run_at = ?, token = ?, leased_until = ?, holder = ?, deliveries = ? WHERE queue = ? AND id = ?',
  `INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET
   version = excluded.version, owner = excluded.owner, status = excluded.status, name = excluded.name,
   text = excluded.text, expires_at = excluded.expires_at, data = excluded.data`,
  'UPDATE records SET version = ?, status = ?, text = ?, expires_at = ?, data = ? WHERE kind = ? AND id = ?',
  DROP,
  // The sweep deletes as many records as its byte limit allows. It runs after the records are written, because one of
  // them may replace a row that has expired since.
  EXPIRED,
  'INSERT OR REPLACE INTO counts VALUES (?, ?)',
  'DELETE FROM counts WHERE key = ?',
  'UPDATE meta SET epoch = ?, time = ?',
]

/** The number of values that one run of each statement takes. */
const WIDTHS: readonly number[] = [2, 17, 7, 9, 7, 2, 2, 2, 1, 2]

/**
 * Characters of one message to the thread. A larger write is sent as several messages inside one transaction: a single
 * string could not exceed 512 MB, and building more than this at once blocks the event loop for tens of milliseconds.
 */
const PART_CHARS_MAX = 2_097_152

/**
 * A write, or part of one, in the form that is sent to the thread: one long text and two arrays of numbers. Cloning
 * rows of values took 25 µs per job on the main thread; this takes 9.
 */
export interface PackedWrite {
  /** Whether the transaction begins and ends with this part. */
  readonly isFirst: boolean
  readonly isLast: boolean
  /** For each statement, the number of values per run and the number of runs. */
  readonly parts: readonly (readonly [width: number, runs: number])[]
  /** For each value, the length of its text, or one of the two constants below. */
  readonly shape: Int32Array
  readonly text: string
  readonly numbers: Float64Array
}
const IS_NULL = -1
export const IS_NUMBER = -2

/** The parts of a write. The rows of a part are read, and their texts built, only when that part is requested. */
export function* pack(changes: Changes, charsMax = PART_CHARS_MAX): Generator<PackedWrite, void> {
  const values = new Values()
  for (const row of rowsOf(changes, values)) {
    values.ran(row)
    if (values.chars >= charsMax) yield values.packed(false)
  }
  yield values.packed(true)
}

/** Packs rows one after the other and records which statement each row is for. */
function* rowsOf(changes: Changes, values: Values): Generator<number, void> {
  const { time, counts } = changes
  for (const { queue, id } of changes.removed) {
    values.text(queue)
    values.text(id)
    yield 0
  }
  for (const row of changes.items) {
    packItem(values, row)
    yield 1
  }
  for (const row of changes.leases) {
    packLease(values, row)
    yield 2
  }
  for (const row of changes.records) {
    packRecord(values, row)
    yield 3
  }
  for (const row of changes.updates) {
    packUpdate(values, row)
    yield 4
  }
  for (const { kind, id } of changes.dropped) {
    values.text(kind)
    values.text(id)
    yield 5
  }
  values.number(time)
  values.number(changes.sweepMax)
  yield SWEEP_AT
  for (const row of counts) {
    if (row.count === 0) continue
    values.text(countKeyOf(row))
    values.number(row.count)
    yield 7
  }
  for (const row of counts) {
    if (row.count > 0) continue
    values.text(countKeyOf(row))
    yield 8
  }
  values.number(changes.epoch)
  values.number(time)
  yield 9
}

function packUpdate(values: Values, row: RecordUpdate): void {
  values.number(row.version)
  values.text(row.status)
  values.text(row.text)
  values.number(row.expiresAt)
  values.text(row.data)
  values.text(row.kind)
  values.text(row.id)
}

function packRecord(values: Values, row: RecordRow): void {
  values.text(row.kind)
  values.text(row.id)
  values.number(row.version)
  values.text(row.owner)
  values.text(row.status)
  values.text(row.name)
  values.text(row.text)
  values.number(row.expiresAt)
  values.text(row.data)
}

/** One text for all the facets of a count, because a primary key column cannot be null. */
export function countKeyOf({ kind, owner, name, status }: Omit<CountRow, 'count'>): string {
  return JSON.stringify([kind, owner, name, status])
}

/** Type boundary where that text becomes a row again. Only this package writes it. */
export function countFrom({ key, count }: { readonly key: string; readonly count: number }): CountRow {
  const [kind, owner, name, status] = JSON.parse(key) as readonly [string, string | null, string | null, string]
  return { kind, owner, name, status, count }
}

function packItem(values: Values, row: ItemRow): void {
  values.text(row.queue)
  values.text(row.id)
  values.text(row.lane)
  values.number(row.priority)
  values.number(row.seq)
  values.number(row.dueAt)
  values.text(row.payload)
  values.text(row.fallbackLane)
  values.number(row.fallbackAt)
  values.number(row.settleAt)
  values.number(row.unclaimedAt)
  values.number(row.runMs)
  values.number(row.runAt)
  values.number(row.token)
  values.number(row.leasedUntil)
  values.text(row.holder)
  values.number(row.deliveries)
}

function packLease(values: Values, row: LeaseRow): void {
  values.number(row.runAt)
  values.number(row.token)
  values.number(row.leasedUntil)
  values.text(row.holder)
  values.number(row.deliveries)
  values.text(row.queue)
  values.text(row.id)
}

/** The values of one part after the other. */
class Values {
  #isFirst = true
  #runs = WIDTHS.map(() => 0)
  #shape: number[] = []
  #texts: string[] = []
  #numbers: number[] = []
  /** Characters of the part so far. */
  chars = 0

  text(value: string | null): void {
    if (value === null) {
      this.#shape.push(IS_NULL)
      return
    }
    this.#shape.push(value.length)
    this.#texts.push(value)
    this.chars += value.length
  }

  number(value: number | null): void {
    if (value === null) {
      this.#shape.push(IS_NULL)
      return
    }
    this.#shape.push(IS_NUMBER)
    this.#numbers.push(value)
  }

  /** Marks a row of this statement as complete. */
  ran(statement: number): void {
    this.#runs[statement] = (this.#runs[statement] ?? 0) + 1
  }

  /** Everything added since the last part. */
  packed(isLast: boolean): PackedWrite {
    const part: PackedWrite = {
      isFirst: this.#isFirst,
      isLast,
      parts: WIDTHS.map((width, index) => [width, this.#runs[index] ?? 0]),
      shape: Int32Array.from(this.#shape),
      text: this.#texts.join(''),
      numbers: Float64Array.from(this.#numbers),
    }
    this.#isFirst = false
    this.#runs = WIDTHS.map(() => 0)
    this.#shape = []
    this.#texts = []
    this.#numbers = []
    this.chars = 0
    return part
  }
}
