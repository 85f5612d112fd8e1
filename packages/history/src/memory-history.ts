import type {
  HistoryEvent,
  HistoryStore,
  JobHistoryQuery,
  Retention,
  StoredEvent,
  WorkerHistoryQuery,
} from './history.ts'

/** A rough size of one event in memory, for the bound in bytes. */
const EVENT_BYTES = 400

/** History that ends with the process, for storages that do too. */
export class MemoryHistory implements HistoryStore {
  #events: StoredEvent[] = []
  #lastId = 0

  async write(events: readonly HistoryEvent[]): Promise<void> {
    for (const event of events) {
      this.#lastId += 1
      this.#events.push({ ...event, id: this.#lastId })
    }
  }

  async ofJob(jobId: string, { since = 0, limit }: JobHistoryQuery): Promise<readonly StoredEvent[]> {
    const found = this.#events.filter((event) => event.jobId === jobId && event.at >= since)
    return found.toSorted((a, b) => a.at - b.at || a.id - b.id).slice(0, limit)
  }

  async ofWorker(workerId: string, { before, limit }: WorkerHistoryQuery): Promise<readonly StoredEvent[]> {
    const isWanted = (event: StoredEvent): boolean =>
      event.workerId === workerId && event.jobId === undefined && (before === undefined || event.id < before)
    return this.#events.filter(isWanted).toReversed().slice(0, limit)
  }

  async trim({ ageMs, bytesMax }: Retention, now: number): Promise<number> {
    const before = this.#events.length
    const room = Math.floor(bytesMax / EVENT_BYTES)
    this.#events = this.#events.slice(Math.max(0, before - room)).filter(({ at }) => at >= now - ageMs)
    return before - this.#events.length
  }

  async close(): Promise<void> {
    this.#events = []
  }
}
