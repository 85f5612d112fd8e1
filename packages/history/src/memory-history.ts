import { FirstInOrder } from '@impresario/core'
import type { Json } from '@impresario/protocol'
import { WriteRefusedError } from './history.ts'
import type {
  EventBatch,
  EventCount,
  EventCountQuery,
  EventFilter,
  EventListQuery,
  EventPosition,
  HistoryStore,
  JobHistoryQuery,
  PageBounds,
  Retention,
  EventPage,
  StoredEvent,
  WorkerHistoryQuery,
} from './history.ts'
import { spansOf } from './spans.ts'
import type { Span } from './spans.ts'

/** Approximate size of one event in memory without its texts. */
const EVENT_BYTES = 400
/** Applies regardless of the configured size of a database. */
const BYTES_MAX = 256 * 1_048_576

/** History that ends with the process, for storages that do so too. */
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

  async ofJob(jobId: string, { since = 0, ...bounds }: JobHistoryQuery): Promise<EventPage> {
    return firstOf(this.#events, (event) => event.jobId === jobId && event.at >= since, byPosition, bounds)
  }

  async ofWorker(workerId: string, query: WorkerHistoryQuery): Promise<EventPage> {
    const isOwn = (event: StoredEvent): boolean => event.workerId === workerId && event.jobId === undefined
    return newest(this.#events, isOwn, query)
  }

  async list(query: EventListQuery): Promise<EventPage> {
    return newest(this.#events, (event) => fits(event, query), query)
  }

  async counts(query: EventCountQuery): Promise<readonly EventCount[]> {
    const spans = spansOf(query)
    const found = spans.map(() => new Map<string, number>())
    for (const event of this.#events) {
      const counts = fits(event, query) ? found[spanAt(spans, event.at)] : undefined
      counts?.set(event.event, (counts.get(event.event) ?? 0) + 1)
    }
    return spans.flatMap(({ from }, index) =>
      [...(found[index] ?? [])]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([event, count]) => ({ from, event, count })),
    )
  }

  async trim({ ageMs, bytesMax }: Retention, now: number): Promise<number> {
    const room = Math.min(bytesMax, BYTES_MAX)
    if (this.#bytes <= room && this.#oldest >= now - ageMs) return 0
    const before = this.#events.length
    const young = this.#events.filter(({ at }) => at >= now - ageMs).toSorted(byPosition)
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

function byPosition(a: EventPosition, b: EventPosition): number {
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
  isMeant: (event: StoredEvent) => boolean,
  { since = 0, until, before, ...bounds }: Omit<EventListQuery, keyof EventFilter>,
): EventPage {
  const isWanted = (event: StoredEvent): boolean =>
    isMeant(event) &&
    event.at >= since &&
    (until === undefined || event.at < until) &&
    (before === undefined || byPosition(event, before) < 0)
  return firstOf(events, isWanted, (a, b) => byPosition(b, a), bounds)
}

/** The first events in that order, limited by number and by bytes. */
function firstOf(
  events: readonly StoredEvent[],
  isWanted: (event: StoredEvent) => boolean,
  compare: (a: EventPosition, b: EventPosition) => number,
  { limit, bytesMax = Number.POSITIVE_INFINITY }: PageBounds,
): EventPage {
  const chosen = new FirstInOrder<StoredEvent>(limit, compare)
  for (const event of events) if (isWanted(event)) chosen.add(event)
  const first = chosen.first()
  let bytes = 0
  const enough = first.findIndex((event) => (bytes += sizeOf(event)) >= bytesMax)
  const isCut = enough !== -1 && enough < first.length - 1
  return isCut ? Object.assign(first.slice(0, enough + 1), { isCut: true as const }) : first
}

/** The index of the span that contains a timestamp; -1 for none. Spans are contiguous. */
function spanAt(spans: readonly Span[], at: number): number {
  let low = 0
  let high = spans.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const span = spans[middle]
    if (span === undefined || (at >= span.since && at < span.until)) return middle
    if (at < span.since) high = middle - 1
    else low = middle + 1
  }
  return -1
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
