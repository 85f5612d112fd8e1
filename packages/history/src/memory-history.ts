import type { Json } from '@impresario/protocol'
import { WriteRefusedError } from './history.ts'
import type {
  EventBatch,
  EventCount,
  EventCountQuery,
  EventFilter,
  EventListQuery,
  EventPlace,
  HistoryStore,
  JobHistoryQuery,
  Retention,
  StoredEvent,
  WorkerHistoryQuery,
} from './history.ts'
import { spansOf } from './spans.ts'

/** A rough size of one event in memory without its texts. */
const EVENT_BYTES = 400
/** However large a database may become. */
const BYTES_MAX = 256 * 1_048_576

/** History that ends with the process, for storages that do too. */
export class MemoryHistory implements HistoryStore {
  #events: StoredEvent[] = []
  #bytes = 0
  #oldest = Number.POSITIVE_INFINITY
  #lastId = 0
  readonly #lastBatch = new Map<string, number>()

  async open(): Promise<void> {
    // There is nothing that could be missing.
  }

  async write({ writer, number, events }: EventBatch): Promise<void> {
    if (number <= (this.#lastBatch.get(writer) ?? 0)) return
    if (!events.every(({ at }) => Number.isFinite(at))) {
      throw new WriteRefusedError('An event has no time.', { isPartly: true })
    }
    this.#lastBatch.set(writer, number)
    for (const event of events) {
      this.#lastId += 1
      this.#events.push({ ...event, at: Math.round(event.at), id: this.#lastId })
      this.#bytes += sizeOf(event)
      this.#oldest = Math.min(this.#oldest, event.at)
    }
  }

  async ofJob(jobId: string, { since = 0, limit }: JobHistoryQuery): Promise<readonly StoredEvent[]> {
    const found = this.#events.filter((event) => event.jobId === jobId && event.at >= since)
    return found.toSorted(byPlace).slice(0, limit)
  }

  async ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<readonly StoredEvent[]> {
    const own = this.#events.filter((event) => event.workerId === workerId && event.jobId === undefined)
    return newest(own, query)
  }

  async list(query: EventListQuery): Promise<readonly StoredEvent[]> {
    return newest(
      this.#events.filter((event) => fits(event, query)),
      query,
    )
  }

  async counts(query: EventCountQuery): Promise<readonly EventCount[]> {
    const wanted = this.#events.filter((event) => fits(event, query))
    return spansOf(query).flatMap(({ from, since, until }) => {
      const counts = new Map<string, number>()
      for (const { at, event } of wanted) {
        if (at >= since && at < until) counts.set(event, (counts.get(event) ?? 0) + 1)
      }
      return [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([event, count]) => ({ from, event, count }))
    })
  }

  async trim({ ageMs, bytesMax }: Retention, now: number): Promise<number> {
    const room = Math.min(bytesMax, BYTES_MAX)
    if (this.#bytes <= room && this.#oldest >= now - ageMs) return 0
    const before = this.#events.length
    const young = this.#events.filter(({ at }) => at >= now - ageMs).toSorted(byPlace)
    let bytes = young.reduce((sum, event) => sum + sizeOf(event), 0)
    let first = 0
    for (const event of young) {
      if (bytes <= room) break
      bytes -= sizeOf(event)
      first += 1
    }
    this.#events = young.slice(first)
    this.#bytes = bytes
    this.#oldest = this.#events[0]?.at ?? Number.POSITIVE_INFINITY
    return before - this.#events.length
  }

  async close(): Promise<void> {
    this.#events = []
  }
}

function byPlace(a: EventPlace, b: EventPlace): number {
  return a.at - b.at || a.id - b.id
}

function fits(event: StoredEvent, { events, owner, blueprint, jobId, workerId }: EventFilter): boolean {
  return (
    (events === undefined || events.includes(event.event)) &&
    (owner === undefined || event.owner === owner) &&
    (blueprint === undefined || event.blueprint === blueprint) &&
    (jobId === undefined || event.jobId === jobId) &&
    (workerId === undefined || event.workerId === workerId)
  )
}

function newest(
  events: readonly StoredEvent[],
  { since = 0, until, before, limit }: Omit<EventListQuery, keyof EventFilter>,
): readonly StoredEvent[] {
  const isWanted = (event: StoredEvent): boolean =>
    event.at >= since &&
    (until === undefined || event.at < until) &&
    (before === undefined || byPlace(event, before) < 0)
  return events
    .filter(isWanted)
    .toSorted((a, b) => byPlace(b, a))
    .slice(0, limit)
}

function sizeOf({
  note,
  snapshot,
}: {
  readonly note?: string | undefined
  readonly snapshot?: Json | undefined
}): number {
  return EVENT_BYTES + (note?.length ?? 0) * 2 + jsonSize(snapshot)
}

function jsonSize(value: Json | undefined): number {
  if (typeof value === 'string') return value.length * 2
  if (typeof value !== 'object' || value === null) return 8
  let size = 16
  for (const [key, part] of Object.entries(value)) size += key.length + jsonSize(part)
  return size
}
