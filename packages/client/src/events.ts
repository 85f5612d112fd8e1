import { given } from './connection.ts'
import type { Data } from '@impresario/protocol'
import { ask, askAll } from './asking.ts'
import { newJobId } from './job-id.ts'
import { listing, type Listing, type PageQuery } from './listing.ts'
import type { ClientTransport } from './transport.ts'
import type { Durations, EventCount, PublishedEvent, StoredEvent } from './views.ts'
import type { PublishedEventBody } from './wire-automations.ts'
import { fromWire } from './wire-case.ts'

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
  /** Only events before this one: its `eventId`, or the cursor of the page before. */
  readonly before?: string | undefined
}

export interface EventCountQuery extends EventFilter {
  /** Of each hour or day; one sum without it. */
  readonly per?: 'hour' | 'day' | undefined
}

export interface DurationQuery extends Pick<EventFilter, 'blueprint' | 'owner' | 'since' | 'until'> {
  /** Also for so many equal parts of that time. */
  readonly spans?: number | undefined
}

/** What has happened to all jobs and workers, as far as the server keeps it; and events for automations. */
export class Events {
  readonly #transport: ClientTransport

  constructor(transport: ClientTransport) {
    this.#transport = transport
  }

  /** Newest first: of the own jobs; for admins, of all jobs and of the workers. */
  list({ limit, before: first, ...filter }: EventQuery = {}): Listing<StoredEvent> {
    const query = given({ ...filterOf(filter), limit })
    return listing((before) => this.#transport.listEvents({ ...query, before }), fromWire, first)
  }

  /** Publishes an event to automations: each whose topic and filter fit runs once for it. */
  async publish(
    topic: string,
    payload: Data = null,
    { idempotencyKey, audience }: PublishOptions = {},
  ): Promise<PublishedEvent> {
    return ask<PublishedEventBody>(this.#transport.requests, {
      method: 'POST',
      path: PUBLISHED,
      body: given<unknown>({ topic, payload, audience }),
      key: idempotencyKey ?? newJobId(),
    })
  }

  /** Events that were published to automations, newest first. */
  published({
    cursor,
    ...query
  }: PageQuery & { readonly topic?: string; readonly owner?: string } = {}): Listing<PublishedEvent> {
    return askAll<PublishedEventBody>(this.#transport.requests, PUBLISHED, query, cursor)
  }

  /** A published event, with what automations made of it. */
  async get(id: string): Promise<PublishedEvent> {
    return ask<PublishedEventBody>(this.#transport.requests, { method: 'GET', path: [...PUBLISHED, id] })
  }

  /** How many there were, by name; of the last 24 hours, and per day of the last 30 days, unless the filter says more. */
  async counts({ per, ...filter }: EventCountQuery = {}): Promise<readonly EventCount[]> {
    return fromWire(await this.#transport.countEvents(given({ ...filterOf(filter), per })))
  }

  /** How long jobs and their stays in states took: of the last hour, unless the query says more. */
  async durations({ blueprint, owner, since, until, spans }: DurationQuery = {}): Promise<Durations> {
    const query = { blueprint, owner, since: timeText(since), until: timeText(until), spans }
    return fromWire(await this.#transport.durations(given(query)))
  }
}

const PUBLISHED = ['automations', 'events']

function filterOf({ event, since, until, ...names }: EventFilter): Readonly<Record<string, string | undefined>> {
  const events = typeof event === 'string' ? event : event?.join(',')
  return { event: events, since: timeText(since), until: timeText(until), ...names }
}

export interface PublishOptions {
  /** The same key is the same event, however often it is sent. */
  readonly idempotencyKey?: string | undefined
  /** `all`: automations of every owner. For admins. */
  readonly audience?: 'own' | 'all' | undefined
}

/** As queries name a moment. */
export function timeText(time: Date | string | number | undefined): string | undefined {
  return time instanceof Date ? time.toISOString() : time?.toString()
}
