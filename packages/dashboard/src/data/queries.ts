import type { wire } from '@impresario/client'
import { stringifyExact } from '@impresario/protocol'
import type {
  BulkReply,
  CommandReply,
  DashboardBody,
  DurationsBody,
  HistoryBody,
  JobBody,
  ListedJobBody,
  ListedQuarantinedBody,
  WorkerBody,
  WorkerHistoryBody,
  EventBody,
  EventCountBody,
  FileListBody,
  LogLineBody,
} from '@impresario/protocol'
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type {
  InfiniteData,
  QueryClient,
  UseInfiniteQueryResult,
  UseMutationResult,
  UseQueryResult,
} from '@tanstack/react-query'
import { GROUPS, PAGE_ROWS, ROW_FIELDS } from '../job/job-query.ts'
import { get, getPage, request, send } from './api.ts'
import type { Page } from './api.ts'
import { rootUrl } from './places.ts'
import type { Query } from './places.ts'
import { useRefreshMs } from './live.ts'

type Pages<T> = UseInfiniteQueryResult<InfiniteData<Page<T>>>

function useLivePages<T>(key: readonly unknown[], path: string, query: Query, limit = PAGE_ROWS): Pages<T> {
  return useInfiniteQuery({
    queryKey: [...key, query],
    queryFn: ({ pageParam, signal }) => getPage<T>(path, { ...query, limit, cursor: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    refetchInterval: useRefreshMs(key[0]),
  })
}

function useLive<T>(key: readonly unknown[], path: string, query: Query = {}): UseQueryResult<T> {
  return useQuery({
    queryKey: [...key, query],
    queryFn: ({ signal }) => get<T>(path, query, signal),
    refetchInterval: useRefreshMs(key[0]),
  })
}

/** What changes seldom. */
function useCalm<T>(key: readonly unknown[], path: string, query: Query = {}, isWanted = true): UseQueryResult<T> {
  return useQuery({
    queryKey: [...key, query],
    queryFn: ({ signal }) => get<T>(path, query, signal),
    enabled: isWanted,
    staleTime: 60_000,
  })
}

export const useJobs = (query: Query, limit?: number): Pages<ListedJobBody> =>
  useLivePages(['jobs'], 'jobs', { ...query, fields: ROW_FIELDS }, limit)
export const useJob = (id: string): UseQueryResult<JobBody> => useLive(['job', id], `jobs/${encodeURIComponent(id)}`)
export const useCounts = (): UseQueryResult<DashboardBody> => useLive(['counts'], 'dashboard')
export const useWorkers = (): Pages<WorkerBody> => useLivePages(['workers'], 'workers', {}, 500)
export const useWorker = (id: string): UseQueryResult<WorkerBody> =>
  useLive(['worker', id], `workers/${encodeURIComponent(id)}`)
/** Jobs whose tasks a worker has at the moment, among the newest ones that have work. */
export function useHeldJobs(worker: string): UseQueryResult<HeldJobs> {
  return useQuery({
    queryKey: ['jobs', 'of worker', worker],
    queryFn: async ({ signal }) => {
      const query = { status: 'waiting_for_worker,waiting_for_parallel', fields: ROW_FIELDS, limit: HELD_LOOKED_AT }
      const { items, next }: Page<ListedJobBody> = await getPage('jobs', query, signal)
      return {
        jobs: items.filter(({ work }) => work?.workers.includes(worker) === true),
        isPartial: next !== undefined,
      }
    },
    refetchInterval: useRefreshMs('jobs'),
  })
}

interface HeldJobs {
  readonly jobs: readonly ListedJobBody[]
  /** There are more jobs with work than were looked at. */
  readonly isPartial: boolean
}

export const HELD_LOOKED_AT = 100

export const useWorkerHistory = (id: string): Pages<WorkerHistoryBody> =>
  useLivePages(['worker', id, 'history'], `workers/${encodeURIComponent(id)}/history`, {})
export const useQuarantine = (query: Query): Pages<ListedQuarantinedBody> =>
  useLivePages(['quarantine'], 'quarantine', query, 100)
export const useBlueprints = (): UseQueryResult<readonly wire.BlueprintView[]> => useCalm(['blueprints'], 'blueprints')
export const useBlueprint = (name: string, version?: number, isWanted = true): UseQueryResult<wire.BlueprintView> =>
  useCalm(['blueprint', name], `blueprints/${encodeURIComponent(name)}`, { version }, isWanted)
export const useSchedules = (): UseQueryResult<readonly wire.ScheduleView[]> => useLive(['schedules'], 'schedules')
export const useEvents = (query: Query): Pages<EventBody> => useEventPages(query)

/** Lists of events go on before the oldest one of a page. */
function useEventPages(query: Query): Pages<EventBody> {
  return useInfiniteQuery({
    queryKey: ['events', query],
    queryFn: ({ pageParam, signal }) =>
      getPage<EventBody>('history', { ...query, limit: 100, before: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    refetchInterval: useRefreshMs('events'),
  })
}

/** How long jobs and states took. It is read seldom: it looks at many events. */
export const useDurations = (query: Query): UseQueryResult<DurationsBody> =>
  useQuery({
    queryKey: ['durations', query],
    queryFn: ({ signal }) => get<DurationsBody>('history/durations', query, signal),
    staleTime: 5_000,
    refetchInterval: DURATIONS_MS,
    placeholderData: (before) => before,
  })

const DURATIONS_MS = 15_000

export const useEventCounts = (query: Query): UseQueryResult<readonly EventCountBody[]> =>
  useLive(['event-counts'], 'history/counts', query)

/** All that happened to a job, up to a number that a page can hold. */
export function useJobHistory(id: string, version: number | undefined): UseQueryResult<readonly HistoryBody[]> {
  return useQuery({
    queryKey: ['job', id, 'history', version],
    queryFn: async ({ signal, client }) => {
      const all = [...longHistory(client, id)]
      let after = all.at(-1)?.event_id
      do {
        const page: Page<HistoryBody> = await getPage(
          `jobs/${encodeURIComponent(id)}/history`,
          { limit: 1_000, after },
          signal,
        )
        all.push(...page.items)
        after = page.next
      } while (after !== undefined && all.length < HISTORY_MAX)
      return all
    },
    placeholderData: (before) => before,
  })
}

const HISTORY_MAX = 50_000
/** A history of this length is not read again from its beginning; what is new is added to it. */
const LONG_HISTORY = 2_000

function longHistory(client: QueryClient, id: string): readonly HistoryBody[] {
  let known: readonly HistoryBody[] = []
  for (const [, data] of client.getQueriesData<readonly HistoryBody[]>({ queryKey: ['job', id, 'history'] })) {
    if (data !== undefined && data.length >= LONG_HISTORY && data.length > known.length) known = data
  }
  return known
}

/** Lines come without a change of the job, so that they are asked for while it is open. */
export function useJobLog(id: string, isOpen: boolean): UseQueryResult<readonly LogLineBody[]> {
  return useQuery({
    queryKey: ['job', id, 'log'],
    queryFn: ({ signal }) => get<readonly LogLineBody[]>(`jobs/${encodeURIComponent(id)}/log`, {}, signal),
    refetchInterval: isOpen ? LOG_MS : false,
  })
}

const LOG_MS = 2_000

export function useJobFiles(id: string): UseInfiniteQueryResult<InfiniteData<FileListBody>> {
  return useInfiniteQuery({
    queryKey: ['job', id, 'files'],
    queryFn: ({ pageParam, signal }) =>
      get<FileListBody>(`jobs/${encodeURIComponent(id)}/files`, { after: pageParam, limit: 100 }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  })
}

export function useExplanation(id: string, version: number | undefined): UseQueryResult<wire.ExplanationBody> {
  return useQuery({
    queryKey: ['job', id, 'explain', version],
    queryFn: ({ signal }) => get<wire.ExplanationBody>(`jobs/${encodeURIComponent(id)}/explain`, {}, signal),
    placeholderData: (before) => before,
    refetchInterval: useRefreshMs('job'),
  })
}

/** Open jobs by state, as many as can be looked at in a moment. */
export interface StateCounts {
  readonly counts: ReadonlyMap<string, number>
  /** There are more open jobs than were counted. */
  readonly isPartial: boolean
}

const COUNTED_PAGES = 20

export function useStateCounts(blueprint: string): UseQueryResult<StateCounts> {
  return useQuery({
    queryKey: ['jobs', 'states', blueprint],
    queryFn: async ({ signal }) => {
      const counts = new Map<string, number>()
      const query = { blueprint, status: GROUPS.open, fields: 'current_state', limit: 100 }
      let cursor: string | undefined
      for (let page = 0; page < COUNTED_PAGES; page += 1) {
        const { items, next }: Page<ListedJobBody> = await getPage('jobs', { ...query, cursor }, signal)
        for (const { current_state: state } of items) counts.set(state, (counts.get(state) ?? 0) + 1)
        if (next === undefined) return { counts, isPartial: false }
        cursor = next
      }
      return { counts, isPartial: true }
    },
    placeholderData: (before) => before,
    refetchInterval: useRefreshMs('jobs'),
  })
}

export interface Readiness {
  readonly status: string
  readonly components: Readonly<Record<string, { readonly status: string; readonly reason?: string | null }>>
}

/** A server that is not ready answers with 503 and the same body. */
export function useReadiness(): UseQueryResult<Readiness> {
  return useQuery({
    queryKey: ['ready'],
    queryFn: async () => (await request(rootUrl('_public/ready'))).json() as Promise<Readiness>,
    refetchInterval: 10_000,
  })
}

/** What becomes of one command. */
interface Outcome<Answer> {
  readonly onSuccess?: (answer: Answer) => void
  readonly onError?: (error: Error) => void
}

interface Command<Given, Answer = CommandReply> extends Pick<
  UseMutationResult<Answer, Error, Given>,
  'isPending' | 'error' | 'mutateAsync'
> {
  readonly mutate: (given: Given, outcome?: Outcome<Answer>) => void
}

/**
 * Sends a command; everything that is shown is read again when it is done. The outcome is told even if what sent it is gone
 * by then: a question disappears as soon as it is answered, and somebody wants to know that it was.
 */
function useCommand<Given, Answer = CommandReply>(run: (given: Given) => Promise<Answer>): Command<Given, Answer> {
  const queries = useQueryClient()
  const { mutateAsync, isPending, error } = useMutation({
    mutationFn: run,
    onSettled: () => {
      void queries.invalidateQueries()
    },
  })
  return {
    isPending,
    error,
    mutateAsync,
    mutate: (given, { onSuccess = () => undefined, onError = () => undefined } = {}) => {
      mutateAsync(given).then(onSuccess, onError)
    },
  }
}

export const useCancel = (): Command<{ readonly id: string; readonly reason?: string }> =>
  useCommand(({ id, reason }) =>
    send('POST', `jobs/${encodeURIComponent(id)}/cancel`, reason === undefined || reason === '' ? {} : { reason }),
  )
export const useRetry = (): Command<{ readonly id: string; readonly change?: object }> =>
  useCommand(({ id, change = {} }) => send('POST', `jobs/${encodeURIComponent(id)}/retry`, change))
export const useDiscard = (): Command<string> =>
  useCommand((id) => send('POST', `jobs/${encodeURIComponent(id)}/discard`, {}))
export const useBulk = (): Command<
  { readonly verb: 'retry' | 'discard'; readonly ids: readonly string[] },
  BulkReply
> => useCommand(({ verb, ids }) => send('POST', `quarantine/${verb}`, { ids }))
export const useRerun = (): Command<{ readonly id: string; readonly body: object }, { readonly job_id: string }> =>
  useCommand(({ id, body }) => send('POST', `jobs/${encodeURIComponent(id)}/rerun`, body))
export const useStart = (): Command<object, { readonly job_id: string }> =>
  useCommand((job) => send('POST', 'jobs', job))
export const usePost = (): Command<{ readonly path: string; readonly body?: unknown }, unknown> =>
  useCommand(({ path, body }) => send('POST', path, body))

interface Decision {
  readonly id: string
  readonly decision: string
  readonly visit: number
  readonly comment?: string
  readonly data?: Readonly<Record<string, unknown>>
}

export const useDecide = (): Command<Decision> =>
  useCommand(async ({ id, ...decision }) => {
    const url = rootUrl(`_public/webhooks/approval/${encodeURIComponent(id)}`)
    await request(url, { method: 'POST', body: stringifyExact(decision) })
    return { status: 'approval_received', job_id: id }
  })

export { useLive, useLivePages, useCalm }
