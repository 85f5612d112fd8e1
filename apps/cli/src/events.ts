import type { EventCount, EventCountQuery, EventQuery, StoredEvent } from '@impresario/client'
import { EXIT } from './failure.ts'
import { printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { table } from './table.ts'
import { localTime, span } from './time.ts'

export interface EventListOptions extends GlobalOptions, EventQuery {
  readonly limit: number
}
export interface EventCountOptions extends GlobalOptions, EventCountQuery {}

const PAGE = 1_000

/** Events of all jobs and workers, newest first. */
export function listEvents(options: EventListOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { limit, event, job, worker, blueprint, owner, since, until } = options
    const filter = { event, job, worker, blueprint, owner, since, until }
    const events = await client.events.list({ ...filter, limit: Math.min(limit, PAGE) }).all(limit)
    if (screen.isJson) printJson(screen, events)
    else screen.out(events.length === 0 ? 'No matching events.' : eventTable(screen, events))
    return EXIT.ok
  })
}

function eventTable(screen: Screen, events: readonly StoredEvent[]): string {
  return table(screen, events, [
    { title: 'when', cell: (event) => localTime(event.timestamp) },
    { title: 'what', cell: (event) => event.eventType.replaceAll('_', ' ') },
    { title: 'job', cell: (event) => event.jobId ?? '' },
    { title: 'blueprint', cell: (event) => event.blueprint ?? '' },
    { title: 'state', cell: (event) => event.state ?? '' },
    { title: 'worker', cell: (event) => event.workerId ?? '' },
    {
      title: 'took',
      cell: (event) => (event.durationMs === null ? '' : span(event.durationMs / 1_000)),
      align: 'right',
    },
    { title: 'note', cell: (event) => event.note ?? '' },
  ])
}

/** How many events there were, by name, and by hour or day. */
export function countEvents(options: EventCountOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { per, event, job, worker, blueprint, owner, since, until } = options
    const counts = await client.events.counts({ per, event, job, worker, blueprint, owner, since, until })
    if (screen.isJson) printJson(screen, counts)
    else screen.out(counts.length === 0 ? 'No matching events.' : countTable(screen, counts))
    return EXIT.ok
  })
}

function countTable(screen: Screen, counts: readonly EventCount[]): string {
  return table(screen, counts, [
    // As the clocks of the server show it: by these its hours and days begin.
    { title: 'since', cell: (one) => one.time.slice(0, 16).replace('T', ' ') },
    { title: 'what', cell: (one) => one.eventType.replaceAll('_', ' ') },
    { title: 'count', cell: (one) => String(one.count), align: 'right' },
  ])
}
