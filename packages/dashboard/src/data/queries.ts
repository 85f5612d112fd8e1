import type { wire } from '@impresario/client'
import type {
  BulkReply,
  CommandReply,
  DashboardBody,
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
  ScheduleBody,
} from '@impresario/protocol'
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { InfiniteData, UseInfiniteQueryResult, UseMutationResult, UseQueryResult } from '@tanstack/react-query'
import { get, getPage, rootUrl, request, send } from './api.ts'
import type { Page, Query } from './api.ts'
import { useRefreshMs } from './live.ts'

/** Without what is long: rows show none of it. */
const ROW_FIELDS =
  'job_id,owner,blueprint_name,blueprint_version,status,current_state,progress,progress_message,error_message,error_code,created_at,updated_at,ended_at,version,approval,work,waits_for,parent_job_id'

type Pages<T> = UseInfiniteQueryResult<InfiniteData<Page<T>>>

function useLivePages<T>(key: readonly unknown[], path: string, query: Query, limit = 50): Pages<T> {
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
function useCalm<T>(key: readonly unknown[], path: string, query: Query = {}): UseQueryResult<T> {
  return useQuery({
    queryKey: [...key, query],
    queryFn: ({ signal }) => get<T>(path, query, signal),
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
export const useWorkerHistory = (id: string): Pages<WorkerHistoryBody> =>
  useLivePages(['worker', id, 'history'], `workers/${encodeURIComponent(id)}/history`, {})
export const useQuarantine = (query: Query): Pages<ListedQuarantinedBody> =>
  useLivePages(['quarantine'], 'quarantine', query, 100)
export const useBlueprints = (): UseQueryResult<readonly wire.BlueprintView[]> => useCalm(['blueprints'], 'blueprints')
export const useBlueprint = (name: string, version?: number): UseQueryResult<wire.BlueprintView> =>
  useCalm(['blueprint', name], `blueprints/${encodeURIComponent(name)}`, { version })
export const useSchedules = (): UseQueryResult<readonly ScheduleBody[]> => useLive(['schedules'], 'schedules')
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

export const useEventCounts = (query: Query): UseQueryResult<readonly EventCountBody[]> =>
  useLive(['event-counts'], 'history/counts', query)

/** All that happened to a job, up to a number that a page can hold. */
export function useJobHistory(id: string, version: number | undefined): UseQueryResult<readonly HistoryBody[]> {
  return useQuery({
    queryKey: ['job', id, 'history', version],
    queryFn: async ({ signal }) => {
      const all: HistoryBody[] = []
      let after: string | undefined
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

type Command<Given, Answer = CommandReply> = UseMutationResult<Answer, Error, Given>

/** Sends a command; everything that is shown is read again when it is done. */
function useCommand<Given, Answer = CommandReply>(run: (given: Given) => Promise<Answer>): Command<Given, Answer> {
  const queries = useQueryClient()
  return useMutation({ mutationFn: run, onSettled: () => queries.invalidateQueries() })
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
}

export const useDecide = (): Command<Decision> =>
  useCommand(async ({ id, ...decision }) => {
    const url = rootUrl(`_public/webhooks/approval/${encodeURIComponent(id)}`)
    await request(url, { method: 'POST', body: JSON.stringify(decision) })
    return { status: 'approval_received', job_id: id }
  })

export { useLive, useLivePages, useCalm }
