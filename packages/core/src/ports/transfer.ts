import { ImpresarioError } from '@impresario/protocol'
import type { Kind, Queue } from './storage.ts'

/**
 * What is needed to copy everything from one storage to another while no instance works on either.
 *
 * All times of a transfer are spans from one moment, which each of the two storages has on its own clock. So nothing shifts
 * against anything else however long the transfer takes, the same entry reads the same on both sides, and clocks that differ do
 * not matter. Meanwhile time goes on: a transfer is like a restart.
 */
export interface Origin {
  /** The moment of the transfer on this storage's clock, in milliseconds. */
  readonly at: number
  /** An item's number is `first + order * step` in this storage. */
  readonly first: number
  readonly step: number
}

/** A record. Facets that it does not have are `null`. */
export interface TransferRecord {
  readonly kind: Kind
  readonly id: string
  readonly version: number
  readonly owner: string | null
  readonly status: string | null
  readonly name: string | null
  /** Folded, as storages keep it. */
  readonly text: string | null
  /** What is left of its life. */
  readonly expiresMs: number | null
  /** JSON, as text: a storage that keeps text need not read it. */
  readonly value: string
}

/** An item. Claims without a named holder are released; claims of named holders stay. */
export interface TransferItem {
  readonly queue: Queue
  readonly id: string
  readonly lane: string
  readonly priority: number
  /** Its place among those that are due at the same moment. */
  readonly order: number
  /** Less than zero: it has been due for so long. */
  readonly dueMs: number
  readonly fallback: { readonly lane: string; readonly afterMs: number } | null
  /** Spans from the moment it is due, as in `Item`; so what has passed of them follows from `dueMs`. */
  readonly unclaimedMs: number | null
  readonly settleMs: number | null
  readonly runMs: number | null
  readonly deliveries: number
  /** The newest claim, if it has a named holder. Less than zero: it ended so long ago, and there was no claim since. */
  readonly lease: {
    readonly token: number
    readonly holder: string
    readonly endsMs: number
    /** When that claim runs out of time. */
    readonly runEndsMs: number | null
  } | null
  /** It expired at that moment while it was held, and was taken from its holder: it stays expired. */
  readonly ranOutMs: number | null
  /** JSON, as text. */
  readonly payload: string
}

export interface TransferPage {
  readonly records: readonly TransferRecord[]
  readonly items: readonly TransferItem[]
  /** Where the next page begins; nothing after the last. */
  readonly next: string | undefined
}

export interface PageSize {
  readonly entriesMax: number
  /** A page with more than one entry has no more bytes of values and payloads than this, roughly. */
  readonly bytesMax: number
}

/**
 * Left in a storage by a transfer. `moving` and `moved` on the storage that is left, `receiving` and `received` on the other one.
 * All but the last keep orchestrators from starting.
 */
export interface TransferMark {
  readonly state: 'moving' | 'moved' | 'receiving' | 'received'
  /** The same on both sides, and in no other move. */
  readonly move: string
  /** The run of the transfer that has set it: a newer one that goes on with the same transfer takes it from an older one. */
  readonly run: string
  /** Where the other side is, without secrets. */
  readonly other: string
  /** A date, for people. */
  readonly since: string
  /** Where the transfer goes on. Only it knows how to read this. */
  readonly progress?: string
}

/** How many entries there are, by kind and by queue, without those that have expired. */
export interface EntryCounts {
  readonly records: Readonly<Record<string, number>>
  readonly items: Readonly<Record<string, number>>
}

export interface Outline {
  /** This storage's clock. */
  readonly now: number
  /** No item's number is less than the first of these or greater than the second. Constant while no items are added. */
  readonly firstOrder: number
  readonly lastOrder: number
  /** No claim ever had a greater token. */
  readonly lastToken: number
}

/** The raw contents of a storage, for transfers only. */
export interface Transferable {
  mark(): Promise<TransferMark | undefined>
  setMark(mark: TransferMark | undefined): Promise<void>
  /** Who is at work on it now, as far as can be known; names for people. */
  users(): Promise<readonly string[]>
  outline(): Promise<Outline>
  counts(): Promise<EntryCounts>
  /** The page as this storage can hold it, where that is less than JavaScript can; it reads back the same. */
  fitted(page: TransferPage): TransferPage
  /** One page of everything that had not expired at the moment of the transfer, in an order that stays the same. */
  dump(origin: Origin, cursor: string | undefined, size: PageSize): Promise<TransferPage>
  /**
   * Writes a page, and with or after it the mark, if the one that is there is of the same run: asks `mustBeOwn`. To load the same
   * page twice is the same as once.
   */
  load(origin: Origin, page: TransferPage, mark: TransferMark): Promise<void>
  /** After the last page: whatever is kept about the entries beside them. New tokens will be greater than this one. */
  finish(lastToken: number): Promise<void>
  /** Deletes all entries; the mark stays. */
  clear(): Promise<void>
  close(): Promise<void>
}

const KINDS_TABLE: Readonly<Record<Kind, true>> = {
  job: true,
  worker: true,
  key: true,
  standing: true,
  quota: true,
  inbox: true,
  listener: true,
  schedule: true,
  delivery: true,
  endpoint: true,
  token: true,
  nonce: true,
  limit: true,
  hands: true,
  automation: true,
  subscription: true,
  event: true,
  audit: true,
  gate: true,
  condition: true,
  calendar: true,
  hook: true,
  secret: true,
  view: true,
  log: true,
  agent: true,
}

const QUEUES_TABLE: Readonly<Record<Queue, true>> = {
  turns: true,
  tasks: true,
  timers: true,
  mail: true,
  outbox: true,
  leaders: true,
  signals: true,
  firings: true,
  events: true,
}

/** Every kind and every queue there is, in the order of their names. */
export const KINDS: readonly Kind[] = namesIn(KINDS_TABLE)
export const QUEUES: readonly Queue[] = namesIn(QUEUES_TABLE)

/** Boundary: the keys of a table that has every name are these names. */
function namesIn<Name extends string>(table: Readonly<Record<Name, true>>): readonly Name[] {
  return (Object.keys(table) as Name[]).sort()
}

/** Boundary: only `markText` has written it. */
export function markOf(text: string | null | undefined): TransferMark | undefined {
  return text === null || text === undefined ? undefined : (JSON.parse(text) as TransferMark)
}

export function markText(mark: TransferMark): string {
  return JSON.stringify(mark)
}

/** Refuses to go on with a transfer that another run has taken over, or ended. */
export function mustBeOwn(found: TransferMark | undefined, own: TransferMark): void {
  if (found?.run === own.run && found.state === own.state) return
  throw new ImpresarioError('CONFLICT', 'Another "impresario migrate" has taken over this transfer.')
}

/** Refuses to work on a storage that a transfer has left, or has not filled yet. */
export function mustNotBeTransferred(mark: TransferMark | undefined): void {
  if (mark === undefined || mark.state === 'received') return
  const { state, other, since } = mark
  const undo = 'take the mark away with: impresario migrate --unmark <address of this storage>.'
  const messages = {
    moving: `This storage is being moved to ${other} since ${since}. If that was cut short, run the same "impresario migrate" again; if it was given up, ${undo}`,
    moved: `This storage was moved to ${other} on ${since}: set STORAGE_URL to that. What is here has been run there since; to run it here once more all the same, ${undo}`,
    receiving: `This storage holds only a part of what is being moved here from ${other} since ${since}. If that was cut short, run the same "impresario migrate" again.`,
  }
  throw new ImpresarioError('INVALID_CONFIGURATION', messages[state], { details: { move: mark.move, state } })
}
