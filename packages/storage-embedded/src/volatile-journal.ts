import { AGEING_MS } from '@impresario/core'
import { firstBytes } from './journal.ts'
import type {
  Changes,
  CountRow,
  ExpiringRow,
  ItemRow,
  Journal,
  JournalQuery,
  Opened,
  RecordRow,
  RestingPage,
} from './journal.ts'
import { RESTING_PAGE_ROWS } from './resting-items.ts'

export interface VolatileJournalOptions {
  /**
   * Awaited before a write takes effect. A write that never resolves is lost in the crash; a rejection is a failed
   * disk.
   */
  readonly beforeWrite?: (changes: Changes) => Promise<void>
}

export interface VolatileJournal extends Journal {
  /** The same disk after a crash: written data is there, and writes of the old process no longer arrive. */
  reopened(): VolatileJournal
}

interface Image {
  epoch: number
  time: number
  readonly records: Map<string, RecordRow>
  /** The names of the records that expire. */
  readonly mortal: Set<string>
  readonly counts: Map<string, CountRow>
  readonly items: Map<string, ItemRow>
  /** Which journal may write. */
  owner: object | undefined
}

/** A disk in memory, for tests and simulations: deterministic, without timers. */
export function createVolatileJournal(options: VolatileJournalOptions = {}): VolatileJournal {
  const image = { records: new Map(), mortal: new Set<string>(), counts: new Map(), items: new Map() }
  return onImage({ epoch: 0, time: 0, ...image, owner: undefined }, options)
}

function onImage(image: Image, options: VolatileJournalOptions): VolatileJournal {
  const self = {}
  return {
    open(): Opened {
      image.owner = self
      image.epoch++
      const { epoch, time } = image
      return { epoch, time, items: openedItems([...image.items.values()]), counts: [...image.counts.values()] }
    },
    async write(changes) {
      await options.beforeWrite?.(changes)
      if (image.owner !== self) throw new Error('The process that wrote this is gone.')
      return apply(image, changes)
    },
    read: (kind, id) => image.records.get(keyOf(kind, id)),
    readFrom: (kind, id, limit, charsMax) => {
      const rows = listOf(image, kind, { from: id, now: -Infinity, limit: Infinity }).toReversed().slice(0, limit)
      return [...firstBytes(rows, charsMax)]
    },
    list: (kind, query) => {
      const found = listOf(image, kind, query)
      return query.bytesMax === undefined ? found : [...firstBytes(found, query.bytesMax)]
    },
    floor: (kind, { owner, statuses, before, from }, looksMax) => {
      const range = { ...(before === undefined ? {} : { before }), ...(from === undefined ? {} : { from }) }
      const by = { ...(owner === undefined ? {} : { owner }), ...(statuses === undefined ? {} : { statuses }) }
      return listOf(image, kind, { ...by, ...range, now: -Infinity, limit: looksMax })[looksMax - 1]?.id
    },
    itemsFrom: (queue, id, limit) =>
      inOrder([...image.items.values()].filter((row) => row.queue === queue && bytewise(row.id, id) >= 0)).slice(
        0,
        limit,
      ),
    item: (queue, id) => image.items.get(keyOf(queue, id)),
    itemsDue: (queue, after, until) =>
      [...image.items.values()].filter((row) => row.queue === queue && row.dueAt > after && row.dueAt <= until),
    payload: (queue, id) => image.items.get(keyOf(queue, id))?.payload,
    expiring: (after, until) => expiringOf(image, after, until),
    lastId: (kind) => listOf(image, kind, { now: -Infinity, limit: 1 })[0]?.id,
    async close() {
      if (image.owner === self) image.owner = undefined
    },
    reopened: () => onImage(image, options),
  }
}

/** True if expired records are left. */
function apply(image: Image, changes: Changes): boolean {
  image.epoch = changes.epoch
  image.time = changes.time
  applyItems(image, changes)
  return applyRecords(image, changes)
}

function applyItems(image: Image, { items, leases, removed }: Changes): void {
  for (const { queue, id } of removed) image.items.delete(keyOf(queue, id))
  // Copies, so that the text is built now: in a change it is built when it is read.
  for (const row of items) image.items.set(keyOf(row.queue, row.id), { ...row })
  for (const row of leases) {
    const key = keyOf(row.queue, row.id)
    const old = image.items.get(key)
    if (old !== undefined) image.items.set(key, { ...old, ...row })
  }
}

function applyRecords(image: Image, { time, records, updates, dropped, sweepMax, counts }: Changes): boolean {
  for (const row of records) setRecord(image, { ...row })
  for (const row of updates) {
    const old = image.records.get(keyOf(row.kind, row.id))
    if (old !== undefined) setRecord(image, { ...old, ...row })
  }
  const expired = expiringOf(image, -Infinity, time)
  for (const { kind, id } of [...dropped, ...expired.slice(0, sweepMax)]) {
    image.records.delete(keyOf(kind, id))
    image.mortal.delete(keyOf(kind, id))
  }
  for (const row of counts) {
    const key = JSON.stringify([row.kind, row.owner, row.name, row.status])
    if (row.count === 0) image.counts.delete(key)
    else image.counts.set(key, row)
  }
  return expired.length > sweepMax
}

function setRecord(image: Image, row: RecordRow): void {
  const key = keyOf(row.kind, row.id)
  image.records.set(key, row)
  if (row.expiresAt === null) image.mortal.delete(key)
  else image.mortal.add(key)
}

function expiringOf(image: Image, after: number, until: number): readonly ExpiringRow[] {
  const found: ExpiringRow[] = []
  for (const key of image.mortal) {
    const row = image.records.get(key)
    if (row === undefined || row.expiresAt === null) continue
    if (row.expiresAt > after && row.expiresAt <= until) found.push({ ...row, expiresAt: row.expiresAt })
  }
  return found
}

function listOf(image: Image, kind: string, query: JournalQuery): readonly RecordRow[] {
  return [...image.records.values()]
    .filter(
      (row) =>
        row.kind === kind &&
        (row.expiresAt === null || row.expiresAt > query.now) &&
        (query.from === undefined || row.id >= query.from) &&
        (query.search === undefined || row.text?.includes(query.search) === true) &&
        (query.before === undefined || row.id < query.before) &&
        (query.owner === undefined || row.owner === query.owner) &&
        (query.name === undefined || row.name === query.name) &&
        (query.statuses === undefined || (row.status !== null && query.statuses.includes(row.status))),
    )
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, query.limit)
}

function keyOf(group: string, id: string): string {
  return `${group}/${id}`
}

function bytewise(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

function inOrder(rows: readonly ItemRow[]): readonly ItemRow[] {
  return rows.toSorted((a, b) => bytewise(a.id, b.id))
}

function openedItems(rows: readonly ItemRow[]): Opened['items'] {
  return (now, restingMin) => {
    if (rows.length < restingMin) return rows
    const rests = rows.filter((row) => mayRest(row, now))
    return [...rows.filter((row) => !mayRest(row, now)), ...pagesOf(rests, now)]
  }
}

/** The same as the condition in SQL: see `sqlite-items.ts`. */
function mayRest(row: ItemRow, now: number): boolean {
  const ends = [row.fallbackAt, row.settleAt, row.unclaimedAt]
  const isFree = row.token === 0 && row.leasedUntil === 0 && row.holder === null && row.runAt === null
  return isFree && row.deliveries === 0 && ends.every((at) => at === null || at > now)
}

function* pagesOf(rows: readonly ItemRow[], now: number): Generator<RestingPage> {
  for (const queue of new Set(rows.map((row) => row.queue))) {
    const all = inOrder(rows.filter((row) => row.queue === queue))
    for (let at = 0; at < all.length; at += RESTING_PAGE_ROWS) {
      yield pageOf(queue, all.slice(at, at + RESTING_PAGE_ROWS), now)
    }
  }
}

function pageOf(queue: string, rows: readonly ItemRow[], now: number): RestingPage {
  const alarmOf = ({ dueAt, fallbackAt, settleAt, unclaimedAt }: ItemRow): number =>
    Math.min(dueAt > now ? dueAt : Infinity, ...[fallbackAt, settleAt, unclaimedAt].map((end) => end ?? Infinity))
  return {
    queue,
    ids: Buffer.from(rows.map(({ id }) => id).join('')),
    idBytes: rows.map(({ id }) => Buffer.byteLength(id)),
    lanes: rows.map(({ lane }) => lane),
    seqs: rows.map(({ seq }) => seq),
    ranks: rows.map(({ dueAt, priority }) => dueAt - priority * AGEING_MS),
    alarms: rows.map(alarmOf),
    asleep: rows.map(({ dueAt }) => dueAt > now),
  }
}
