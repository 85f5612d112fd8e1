import { Zone } from '@impresario/recurrence'
import type { EventCountQuery, EventFilter, EventListQuery } from '@impresario/history'
import { DAY_MS, HOUR_MS, ImpresarioError, LIMITS } from '@impresario/protocol'
import type * as schemas from '@impresario/protocol/schemas'
import type { Caller } from '../http/access.ts'
import { placeOf } from '../orchestrator/history.ts'
import { ownerFilter } from './job-access.ts'
import { momentOf } from './job-query.ts'

type ListQuery = ReturnType<typeof schemas.eventListQuery.parse>
type CountQuery = ReturnType<typeof schemas.eventCountQuery.parse>

/** What the history is asked for a page of a list. */
export function listQueryOf(caller: Caller, given: ListQuery): Omit<EventListQuery, 'limit'> {
  const { since, until, before } = given
  return {
    ...filterOf(caller, given),
    ...(since === undefined ? {} : { since: momentOf('since', since) }),
    ...(until === undefined ? {} : { until: momentOf('until', until) }),
    ...(before === undefined ? {} : { before: placeOf(before) }),
  }
}

/** What it is asked for counts. */
export function countQueryOf(
  caller: Caller,
  given: CountQuery,
  { now, timeZone }: { readonly now: number; readonly timeZone: string },
): EventCountQuery {
  // The present millisecond belongs to it.
  const until = given.until === undefined ? now + 1 : momentOf('until', given.until)
  const length = given.per === 'day' ? 30 * DAY_MS : DAY_MS
  const since = given.since === undefined ? Math.max(0, until - length) : momentOf('since', given.since)
  if (since >= until) throw new ImpresarioError('INVALID_REQUEST', '"since" in the query must lie before "until".')
  const edges = edgesOf({ since, until }, given.per, timeZone)
  return { ...filterOf(caller, given), edges, since }
}

function filterOf(caller: Caller, { event, job, worker, blueprint, owner }: ListQuery | CountQuery): EventFilter {
  return {
    ...ownerFilter(caller, owner),
    ...(event === undefined ? {} : { events: event.split(',').filter((name) => name !== '') }),
    ...(job === undefined ? {} : { jobId: job }),
    ...(worker === undefined ? {} : { workerId: worker }),
    ...(blueprint === undefined ? {} : { blueprint }),
  }
}

/** A day that begins in the hour that clocks skip begins with the change; one that begins twice, the first time. */
const DAY_RULES = { gap: 'first', fold: 'first' } as const

interface Span {
  readonly since: number
  readonly until: number
}

/** Where hours or days begin on the clocks of the zone, the one that is under way at `since` included. */
function edgesOf({ since, until }: Span, per: CountQuery['per'], timeZone: string): readonly number[] {
  if (per === undefined) return [since, until]
  const step = per === 'day' ? DAY_MS : HOUR_MS
  if ((until - since) / step > LIMITS.historySpansMax - 2) {
    throw new ImpresarioError(
      'INVALID_REQUEST',
      `From "since" to "until" there are more than ${LIMITS.historySpansMax - 2} of "per". Ask for less time at once, or count per day.`,
    )
  }
  const zone = new Zone(timeZone)
  const first = Math.floor(zone.localOf(since) / step) * step
  const edges = [per === 'day' ? zone.instantOf(first, DAY_RULES) : since - (zone.localOf(since) - first)]
  for (let index = 1; ; index += 1) {
    // A day has not always 24 hours, an hour always has its length.
    const edge = per === 'day' ? zone.instantOf(first + index * DAY_MS, DAY_RULES) : (edges[0] ?? 0) + index * HOUR_MS
    if (edge >= until) return [...edges, until]
    edges.push(edge)
  }
}
