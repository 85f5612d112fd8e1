/**
 * A stored record as the journal keeps it: what it can filter by, and the rest as JSON text. In a write the text is made
 * when it is read, so that a large write need not be in memory as a whole.
 */
export interface RecordRow {
  readonly kind: string
  readonly id: string
  readonly version: number
  readonly owner: string | null
  readonly status: string | null
  readonly name: string | null
  /** Folded, so that to search in it is to compare characters. */
  readonly text: string | null
  /** The record is gone from this moment on, whether the row is still there or not. */
  readonly expiresAt: number | null
  readonly data: string
}

/** The part of a record that nearly every write changes. */
export type RecordUpdate = Omit<RecordRow, 'owner' | 'name'>

/** What must be known of a record before it expires. */
export type ExpiringRow = Pick<RecordRow, 'kind' | 'id' | 'owner' | 'status' | 'name'> & { readonly expiresAt: number }

/** How many records share a kind, an owner, a name and a status. */
export interface CountRow {
  readonly kind: string
  readonly owner: string | null
  readonly name: string | null
  readonly status: string
  readonly count: number
}

/** The part of an item that claims change. Without a named holder it carries no lease. */
export interface LeaseRow {
  readonly queue: string
  readonly id: string
  /** All times are absolute, in milliseconds on the storage's clock; `null` is never. */
  readonly runAt: number | null
  readonly token: number
  readonly leasedUntil: number
  readonly holder: string | null
  readonly deliveries: number
}

export interface ItemRow extends LeaseRow {
  readonly lane: string
  readonly priority: number
  readonly seq: number
  readonly dueAt: number
  readonly payload: string
  readonly fallbackLane: string | null
  readonly fallbackAt: number | null
  readonly settleAt: number | null
  readonly unclaimedAt: number | null
  readonly runMs: number | null
}

/** Everything that changed since the last write, as its net effect: no two rows touch the same thing. */
export interface Changes {
  readonly time: number
  readonly epoch: number
  /** Whole records, new or replaced. */
  readonly records: readonly RecordRow[]
  /** Records that are there already and keep their owner and name. */
  readonly updates: readonly RecordUpdate[]
  readonly dropped: readonly { readonly kind: string; readonly id: string }[]
  /** At most so many records that have expired by `time` are deleted; fewer, if they are large. */
  readonly sweepMax: number
  /** Counts that have changed. They leave out whatever has expired by `time`, deleted or not. */
  readonly counts: readonly CountRow[]
  /** Whole rows, new or replaced. */
  readonly items: readonly ItemRow[]
  /** Rows that are there already and have another lease. */
  readonly leases: readonly LeaseRow[]
  readonly removed: readonly { readonly queue: string; readonly id: string }[]
}

export interface JournalQuery {
  readonly owner?: string
  readonly name?: string
  readonly statuses?: readonly string[]
  readonly before?: string
  readonly from?: string
  /** Folded. */
  readonly search?: string
  /** What has expired by then is not listed. */
  readonly now: number
  readonly limit: number
  /** The list ends with the record whose text makes it so long. */
  readonly bytesMax?: number
}

/** An item as it was left. A payload that is too long to be kept in memory is `null`, and asked for when it is needed. */
export type OpenedItem = Omit<ItemRow, 'payload'> & { readonly payload: string | null }

export interface Opened {
  /** Higher at every opening, and durable before this returns. */
  readonly epoch: number
  /** The latest time that was ever written; the clock must not start before it. */
  readonly time: number
  readonly items: Iterable<OpenedItem>
  readonly counts: Iterable<CountRow>
}

/** What `EmbeddedStorage` needs of a disk. It never has more than one write under way. */
export interface Journal {
  open(): Opened
  /** One transaction; resolves when it is durable. True if records are left that have expired by then. */
  write(changes: Changes): Promise<boolean>
  read(kind: string, id: string): RecordRow | undefined
  /** So many records by their ids, from this one on; fewer, and at least one, where their data is longer than that. */
  readFrom(kind: string, id: string, limit: number, charsMax: number): readonly RecordRow[]
  /** Newest first by id. */
  list(kind: string, query: JournalQuery): readonly RecordRow[]
  /**
   * Where a list that looks through so many records has to stop: the id of the last of them, whether the filter takes it or
   * not. `undefined` when there are no more than that.
   */
  floor(kind: string, query: JournalQuery, looksMax: number): string | undefined
  /** Records that expire after the one moment and not after the other, in any order. */
  expiring(after: number, until: number): readonly ExpiringRow[]
  /** The payload of a stored item, as JSON text. */
  payload(queue: string, id: string): string | undefined
  /** The greatest id of a kind, so that a new greater one is known to be new without a look. */
  lastId(kind: string): string | undefined
  /** Calls `listener` when something is wrong with the disk that no write has met yet. */
  onBroken?(listener: (error: Error) => void): void
  close(): Promise<void>
}

/** Up to the one that makes it so many bytes. */
export function* firstBytes(rows: Iterable<RecordRow>, bytesMax: number): Iterable<RecordRow> {
  let bytes = 0
  for (const row of rows) {
    yield row
    bytes += row.data.length
    if (bytes >= bytesMax) return
  }
}
