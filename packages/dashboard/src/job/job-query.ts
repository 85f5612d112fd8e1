import type { Query } from '../data/places.ts'

/** Without what is long: rows show none of it. */
export const ROW_FIELDS =
  'job_id,owner,blueprint_name,blueprint_version,status,current_state,progress,progress_message,error_message,error_code,created_at,updated_at,ended_at,version,approval,work,waits_for,parent_job_id'

/** Rows of the first page of a list. */
export const PAGE_ROWS = 50

/** Statuses by the question that somebody asks. */
export const GROUPS = {
  open: 'pending,running,waiting_for_worker,waiting_for_parallel,waiting_for_child,waiting_for_time,waiting_for_event,waiting_for_human',
  asking: 'waiting_for_human',
  quarantined: 'quarantined',
  finished: 'finished',
  failed: 'failed,error',
  cancelled: 'cancelled',
} as const
type Group = keyof typeof GROUPS

export const SPANS = ['hour', 'day', 'week', 'month'] as const
const SECONDS: Readonly<Record<string, number>> = { hour: 3_600, day: 86_400, week: 604_800, month: 2_592_000 }

/** When such a span began. Whole minutes, so that the same address asks the same question for a while. */
export function secondsAgo(name = ''): number | undefined {
  const span = SECONDS[name]
  return span === undefined ? undefined : Math.floor(Date.now() / 60_000) * 60 - span
}

/** What the API is asked for an address. */
export function queryOf(search: Readonly<Record<string, string>>): Query {
  const { show = '', blueprint, q, since = '', owner } = search
  return Object.fromEntries(
    Object.entries({
      status: isGroup(show) ? GROUPS[show] : undefined,
      blueprint,
      q,
      owner,
      created_after: secondsAgo(since),
      order: isOldestFirst(search) ? 'oldest' : undefined,
    }).filter(([, value]) => value !== undefined),
  )
}

/** A search looks back from the newest in any case. */
export function isOldestFirst({ order, q = '' }: Readonly<Record<string, string>>): boolean {
  return order === 'oldest' && q === ''
}

export function isGroup(name: string): name is Group {
  return Object.hasOwn(GROUPS, name)
}
