/**
 * A stored record as the journal keeps it: the columns that it can filter by, and the rest as JSON text. In a write the
 * text is built when it is read, so that a large write never has to be in memory as a whole.
 */
export interface RecordRow {
  readonly kind: string
  readonly id: string
  readonly version: number
  readonly owner: string | null
  readonly status: string | null
  readonly name: string | null
  /** Case-folded, so that a search only compares characters. */
  readonly text: string | null
  /** The record no longer exists from this time on, whether the row is still there or not. */
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

/** The part of an item that claims change. Without a named holder it has no lease. */
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
  /** Records that exist already and keep their owner and name. */
  readonly updates: readonly RecordUpdate[]
  readonly dropped: readonly { readonly kind: string; readonly id: string }[]
  /** At most this many records that have expired by `time` are deleted; fewer if they are large. */
  readonly sweepMax: number
  /** Counts that have changed. They exclude all records that have expired by `time`, deleted or not. */
  readonly counts: readonly CountRow[]
  /** Whole rows, new or replaced. */
  readonly items: readonly ItemRow[]
  /** Rows that exist already and get another lease. */
  readonly leases: readonly LeaseRow[]
  readonly removed: readonly { readonly queue: string; readonly id: string }[]
}

export interface JournalQuery {
  readonly owner?: string
  readonly name?: string
  readonly statuses?: readonly string[]
  readonly before?: string
  readonly from?: string
  /** Case-folded. */
  readonly search?: string
  /** Records that have expired by then are not listed. */
  readonly now: number
  readonly limit: number
  /** The list ends with the record whose text reaches this length. */
  readonly bytesMax?: number
}

/** An item as the previous process left it. A payload that is too long for memory is `null` and is read on request. */
export type OpenedItem = Omit<ItemRow, 'payload'> & { readonly payload: string | null }

/**
 * Items of one queue that may stay in the journal until they are needed: without a lease and never claimed. In the order of
 * their ids, byte by byte, over all pages of the queue. No page has more than `RESTING_PAGE_ROWS`.
 */
export interface RestingPage {
  readonly queue: string
  /** One after the other, in UTF-8, and how long each of them is. */
  readonly ids: Uint8Array
  readonly idBytes: readonly number[]
  /** One name where all are in the same lane. */
  readonly lanes: string | readonly string[]
  readonly seqs: readonly number[]
  /** See `Entry.rank`. */
  readonly ranks: readonly number[]
  /** When something is to be done about each: it is due, another lane may take it, or its time is over. */
  readonly alarms?: readonly number[]
  /** Those that are not due yet. */
  readonly asleep?: readonly boolean[]
}

export interface Opened {
  /** Incremented at every opening, and durable before this returns. */
  readonly epoch: number
  /** The latest time that was ever written. The clock must not start before it. */
  readonly time: number
  /** Every item, by itself or in a page. With fewer than `restingMin` items there are no pages. */
  items(now: number, restingMin: number): Iterable<OpenedItem | RestingPage>
  readonly counts: Iterable<CountRow>
}

/** What `EmbeddedStorage` requires of a disk. At most one write is in progress at a time. */
export interface Journal {
  open(): Opened
  /** One transaction; resolves when it is durable. True if records remain that have expired by then. */
  write(changes: Changes): Promise<boolean>
  read(kind: string, id: string): RecordRow | undefined
  /**
   * This many records in id order, starting with this one; fewer, but at least one, if their data is longer than the
   * limit.
   */
  readFrom(kind: string, id: string, limit: number, charsMax: number): readonly RecordRow[]
  /** Newest first by id. */
  list(kind: string, query: JournalQuery): readonly RecordRow[]
  /**
   * Where a list that scans this many records has to stop: the id of the last of them, whether the filter matches it or
   * not. `undefined` when there are no more than that.
   */
  floor(kind: string, query: JournalQuery, looksMax: number): string | undefined
  /** Records that expire after the first time and not after the second, in any order. */
  expiring(after: number, until: number): readonly ExpiringRow[]
  /** So many stored items of a queue in the order of their ids, starting with this one. */
  itemsFrom(queue: string, id: string, limit: number): readonly OpenedItem[]
  /** A stored item. */
  item(queue: string, id: string): OpenedItem | undefined
  /** The stored items of a queue that are due after the first time and not after the second. */
  itemsDue(queue: string, after: number, until: number): readonly OpenedItem[]
  /** The payload of a stored item, as JSON text. */
  payload(queue: string, id: string): string | undefined
  /** The greatest id of a kind, so that a greater one is known to be new without a lookup. */
  lastId(kind: string): string | undefined
  /** Calls `listener` when the disk has an error that no write has encountered yet. */
  onBroken?(listener: (error: Error) => void): void
  close(): Promise<void>
}

/** Takes rows up to the one that reaches this many bytes. */
export function* firstBytes(rows: Iterable<RecordRow>, bytesMax: number): Iterable<RecordRow> {
  let bytes = 0
  for (const row of rows) {
    yield row
    bytes += row.data.length
    if (bytes >= bytesMax) return
  }
}
