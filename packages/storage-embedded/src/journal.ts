/** A stored record as the journal keeps it: what it can filter by, and the rest as JSON text. */
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
  /** At most so many records that have expired by `time` are deleted. */
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
}

export interface Opened {
  /** Higher at every opening, and durable before this returns. */
  readonly epoch: number
  /** The latest time that was ever written; the clock must not start before it. */
  readonly time: number
  readonly items: Iterable<ItemRow>
  readonly counts: Iterable<CountRow>
}

/** What `EmbeddedStorage` needs of a disk. It never has more than one write under way. */
export interface Journal {
  open(): Opened
  /** One transaction; resolves when it is durable. */
  write(changes: Changes): Promise<void>
  read(kind: string, id: string): RecordRow | undefined
  /** So many records by their ids, from this one on. */
  readFrom(kind: string, id: string, limit: number): readonly RecordRow[]
  /** Newest first by id. */
  list(kind: string, query: JournalQuery): readonly RecordRow[]
  /** Records that expire after the one moment and not after the other, in any order. */
  expiring(after: number, until: number): readonly ExpiringRow[]
  /** The greatest id of a kind, so that a new greater one is known to be new without a look. */
  lastId(kind: string): string | undefined
  close(): Promise<void>
}
