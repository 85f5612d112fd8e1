import type { HistoryEvent, HistoryQuery, HistoryStore, Retention, StoredEvent } from './history.ts'

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

  async ofJob(jobId: string, query: HistoryQuery): Promise<readonly StoredEvent[]> {
    return this.#select((event) => event.jobId === jobId, query)
  }

  async ofWorker(workerId: string, query: HistoryQuery): Promise<readonly StoredEvent[]> {
    return this.#select((event) => event.workerId === workerId, query)
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

  #select(isWanted: (event: StoredEvent) => boolean, { after = 0, since = 0, limit }: HistoryQuery): StoredEvent[] {
    return this.#events.filter((event) => event.id > after && event.at >= since && isWanted(event)).slice(0, limit)
  }
}
