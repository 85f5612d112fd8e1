/** A stored record as the journal keeps it: what it can filter by, and the rest as JSON text. */
export interface RecordRow {
  readonly kind: string
  readonly id: string
  readonly version: number
  readonly owner: string | null
  readonly status: string | null
  readonly name: string | null
  readonly data: string
}

/** The part of a record that nearly every write changes. */
export type RecordUpdate = Omit<RecordRow, 'owner' | 'name'>

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
  readonly limit: number
}

export interface Opened {
  /** Higher at every opening, and durable before this returns. */
  readonly epoch: number
  /** The latest time that was ever written; the clock must not start before it. */
  readonly time: number
  readonly items: Iterable<ItemRow>
}

/** What `EmbeddedStorage` needs of a disk. It never has more than one write under way. */
export interface Journal {
  open(): Opened
  /** One transaction; resolves when it is durable. */
  write(changes: Changes): Promise<void>
  read(kind: string, id: string): RecordRow | undefined
  /** Newest first by id. */
  list(kind: string, query: JournalQuery): readonly RecordRow[]
  /** The greatest id of a kind, so that a new greater one is known to be new without a look. */
  lastId(kind: string): string | undefined
  close(): Promise<void>
}
