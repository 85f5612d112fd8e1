import { randomUUID } from 'node:crypto'
import type { EventListQuery, HistoryEvent, HistoryStore, StoredEvent } from '../history.ts'

/** A place where a history is kept. Whoever opens it twice has two instances of the same. */
interface HistoryLocation {
  open(): Promise<HistoryStore>
}

export interface HistoryUnderTest {
  /** What was written is there after everybody has closed. */
  readonly isDurable: boolean
  /** A new and empty one. */
  readonly place: () => Promise<HistoryLocation>
}

/** One store for cases that leave each other alone, and places of their own for the rest. */
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

/** Writes as a process of its own, batch after batch. */
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

  /** The newest batch once more. */
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
