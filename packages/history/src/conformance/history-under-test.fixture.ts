import { randomUUID } from 'node:crypto'
import type { EventListQuery, HistoryEvent, HistoryStore, StoredEvent } from '../history.ts'

/** A location where a history is kept. Opening it twice gives two instances of the same history. */
interface HistoryLocation {
  open(): Promise<HistoryStore>
}

export interface HistoryUnderTest {
  /** Written events are still there after all instances have closed. */
  readonly isDurable: boolean
  /** A new and empty one. */
  readonly place: () => Promise<HistoryLocation>
}

/** One store for cases that do not affect each other, and separate locations for the rest. */
export interface Ground {
  readonly store: () => HistoryStore
  readonly place: () => Promise<HistoryLocation>
}

export const AT = 1_700_000_000_000

/** Names that no other case uses. */
export function fresh(): { readonly jobId: string; readonly workerId: string; readonly owner: string } {
  const id = randomUUID()
  return { jobId: `job ${id}`, workerId: `worker ${id}`, owner: `client ${id}` }
}

/** Writes like a separate process, batch after batch. */
export class Pen {
  readonly #store: HistoryStore
  readonly writer = randomUUID()
  number = 0

  constructor(store: HistoryStore) {
    this.#store = store
  }

  async write(...events: readonly HistoryEvent[]): Promise<void> {
    this.number += 1
    await this.again(...events)
  }

  /** Sends the newest batch once more. */
  async again(...events: readonly HistoryEvent[]): Promise<void> {
    await this.#store.write({ writer: this.writer, number: this.number, events })
  }
}

export const namesOf = (events: readonly HistoryEvent[]): readonly string[] => events.map(({ event }) => event)

/** All pages of a list, one after the other. */
export async function allPages(store: HistoryStore, query: EventListQuery): Promise<readonly StoredEvent[]> {
  const all: StoredEvent[] = []
  for (;;) {
    const last = all.at(-1)
    const page = await store.list({ ...query, ...(last && { before: { at: last.at, id: last.id } }) })
    if (page.length === 0) return all
    all.push(...page)
  }
}
