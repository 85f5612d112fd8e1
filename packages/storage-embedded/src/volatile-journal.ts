import type { Changes, ItemRow, Journal, JournalQuery, Opened, RecordRow } from './journal.ts'

export interface VolatileJournalOptions {
  /** Awaited before a write takes effect. What never resolves is lost in the crash; a rejection is a failed disk. */
  readonly beforeWrite?: (changes: Changes) => Promise<void>
}

export interface VolatileJournal extends Journal {
  /** The same disk after a crash: what was written is there, and writes of the old process no longer arrive. */
  reopened(): VolatileJournal
}

interface Image {
  epoch: number
  time: number
  readonly records: Map<string, RecordRow>
  readonly items: Map<string, ItemRow>
  /** Which journal may write. */
  owner: object | undefined
}

/** A disk in memory, for tests and simulations: deterministic, without timers. */
export function createVolatileJournal(options: VolatileJournalOptions = {}): VolatileJournal {
  return onImage({ epoch: 0, time: 0, records: new Map(), items: new Map(), owner: undefined }, options)
}

function onImage(image: Image, options: VolatileJournalOptions): VolatileJournal {
  const self = {}
  return {
    open(): Opened {
      image.owner = self
      image.epoch++
      return { epoch: image.epoch, time: image.time, items: [...image.items.values()] }
    },
    async write(changes) {
      await options.beforeWrite?.(changes)
      if (image.owner !== self) throw new Error('The process that wrote this is gone.')
      apply(image, changes)
    },
    read: (kind, id) => image.records.get(keyOf(kind, id)),
    list: (kind, query) => listOf(image, kind, query),
    lastId: (kind) => listOf(image, kind, { limit: 1 })[0]?.id,
    async close() {
      if (image.owner === self) image.owner = undefined
    },
    reopened: () => onImage(image, options),
  }
}

function apply(image: Image, { epoch, time, records, updates, items, leases, removed }: Changes): void {
  image.epoch = epoch
  image.time = time
  for (const { queue, id } of removed) image.items.delete(keyOf(queue, id))
  for (const row of items) image.items.set(keyOf(row.queue, row.id), row)
  for (const row of leases) {
    const key = keyOf(row.queue, row.id)
    const old = image.items.get(key)
    if (old !== undefined) image.items.set(key, { ...old, ...row })
  }
  for (const row of records) image.records.set(keyOf(row.kind, row.id), row)
  for (const row of updates) {
    const key = keyOf(row.kind, row.id)
    const old = image.records.get(key)
    if (old !== undefined) image.records.set(key, { ...old, ...row })
  }
}

function listOf(image: Image, kind: string, query: JournalQuery): readonly RecordRow[] {
  return [...image.records.values()]
    .filter(
      (row) =>
        row.kind === kind &&
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
