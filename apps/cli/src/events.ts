import type { DurationQuery, EventCount, EventCountQuery, EventQuery, StoredEvent } from '@impresario/client'
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
export interface DurationOptions extends GlobalOptions, DurationQuery {}
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

/** How long jobs took, and below each its states. */
export function showDurations(options: DurationOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { blueprint, owner, since, until } = options
    const found = await client.events.durations({ blueprint, owner, since, until })
    if (screen.isJson) printJson(screen, found)
    else {
      const rows = found.blueprints.flatMap((job) => [
        { ...job, state: '' },
        ...found.states.filter((state) => state.blueprint === job.blueprint),
      ])
      screen.out(rows.length === 0 ? 'No job has ended in this time.' : durationTable(screen, rows))
      if (found.isPartial) screen.out(`Only since ${localTime(found.since)}: there were too many events before.`)
    }
    return EXIT.ok
  })
}

interface DurationRow {
  readonly blueprint: string
  readonly state: string
  readonly count: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly maxMs: number
}

function durationTable(screen: Screen, rows: readonly DurationRow[]): string {
  const took = (ms: number): string => span(ms / 1_000)
  return table(screen, rows, [
    { title: 'blueprint', cell: (one) => one.blueprint },
    { title: 'state', cell: (one) => one.state },
    { title: 'count', cell: (one) => String(one.count), align: 'right' },
    { title: 'p50', cell: (one) => took(one.p50Ms), align: 'right' },
    { title: 'p95', cell: (one) => took(one.p95Ms), align: 'right' },
    { title: 'longest', cell: (one) => took(one.maxMs), align: 'right' },
  ])
}

function countTable(screen: Screen, counts: readonly EventCount[]): string {
  return table(screen, counts, [
    // As the clocks of the server show it: by these its hours and days begin.
    { title: 'since', cell: (one) => one.time.slice(0, 16).replace('T', ' ') },
    { title: 'what', cell: (one) => one.eventType.replaceAll('_', ' ') },
    { title: 'count', cell: (one) => String(one.count), align: 'right' },
  ])
}
