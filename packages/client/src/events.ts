import { CLIENT_PATHS, type EventBody, type EventCountBody } from '@impresario/protocol'
import type { Connection } from './connection.ts'
import { listing, type Listing } from './listing.ts'

export interface EventFilter {
  /** One name of an event, or several. */
  readonly event?: string | readonly string[] | undefined
  readonly job?: string | undefined
  readonly worker?: string | undefined
  readonly blueprint?: string | undefined
  /** Only events of this client's jobs. Admins may name any, others themselves. */
  readonly owner?: string | undefined
  /** At or after this moment: a date, or ISO 8601 with its offset, or Unix seconds. */
  readonly since?: Date | string | number | undefined
  /** Before this moment. */
  readonly until?: Date | string | number | undefined
}

export interface EventQuery extends EventFilter {
  /** Events per page. */
  readonly limit?: number | undefined
  /** Only events before this one: its `event_id`, or the cursor of the page before. */
  readonly before?: string | undefined
}

export interface EventCountQuery extends EventFilter {
  /** Of each hour or day; one sum without it. */
  readonly per?: 'hour' | 'day' | undefined
}

/** What has happened to all jobs and workers, as far as the server keeps it. */
export class Events {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Newest first: of the own jobs; for admins, of all jobs and of the workers. */
  list({ limit, before, ...filter }: EventQuery = {}): Listing<EventBody> {
    return listing(this.#connection, {
      path: CLIENT_PATHS.events,
      query: { ...filterOf(filter), limit },
      cursor: before,
      cursorName: 'before',
      read: eventOf,
    })
  }

  /** How many there were, by name; of the last 24 hours, and per day of the last 30 days, unless the filter says more. */
  async counts({ per, ...filter }: EventCountQuery = {}): Promise<readonly EventCountBody[]> {
    const query = { ...filterOf(filter), per }
    const { body } = await this.#connection.call(CLIENT_PATHS.eventCounts, { query, repeatable: true })
    return countsOf(body)
  }
}

function filterOf({ event, since, until, ...names }: EventFilter): Readonly<Record<string, string | undefined>> {
  const events = typeof event === 'string' ? event : event?.join(',')
  return { event: events, since: timeOf(since), until: timeOf(until), ...names }
}

function timeOf(time: Date | string | number | undefined): string | undefined {
  return time instanceof Date ? time.toISOString() : time?.toString()
}

/** The boundaries at which a server's answer is believed. */
function eventOf(body: unknown): EventBody {
  return body as EventBody
}
function countsOf(body: unknown): readonly EventCountBody[] {
  return body as readonly EventCountBody[]
}
