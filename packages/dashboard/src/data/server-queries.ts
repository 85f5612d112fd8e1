import type { wire } from '@impresario/client'
import type { EventCountBody, ListedJobBody } from '@impresario/protocol'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { InfiniteData, UseInfiniteQueryResult, UseMutationResult, UseQueryResult } from '@tanstack/react-query'
import { get, getPage, send } from './api.ts'
import type { Page } from './api.ts'
import { useRefreshMs } from './live.ts'
import { useLive, useLivePages } from './queries.ts'
import type { Query } from './places.ts'
import { useIsAdmin } from './session.ts'

/** What the server is. Only admins may ask. */
export function useSystem(): UseQueryResult<wire.SystemBody> {
  return useQuery({
    queryKey: ['system'],
    queryFn: ({ signal }) => get<wire.SystemBody>('admin/system', {}, signal),
    enabled: useIsAdmin(),
    refetchInterval: SYSTEM_MS,
  })
}

const SYSTEM_MS = 10_000

export const useAgents = (query: Query): UseInfiniteQueryResult<InfiniteData<Page<wire.AgentBody>>> =>
  useLivePages(['agents'], 'agents', query)
export const useAgent = (id: string): UseQueryResult<wire.AgentBody> =>
  useLive(['agent', id], `agents/${encodeURIComponent(id)}`)
export const useClients = (): UseQueryResult<readonly wire.ConfiguredClientBody[]> =>
  useLive(['clients'], 'admin/clients')
export const useQueues = (): UseQueryResult<readonly wire.QueueBody[]> => useLive(['queues'], 'queues')
export const useWorkerExplanation = (id: string): UseQueryResult<wire.WorkerExplanationBody> =>
  useLive(['worker', id, 'explain'], `workers/${encodeURIComponent(id)}/explain`)

interface Sent {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: object
}

/** Changes something; everything that is shown is read again. */
export function useChange<Answer = unknown>(): UseMutationResult<Answer, Error, Sent> {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ method, path, body }) => send<Answer>(method, path, body),
    onSuccess: () => {
      void queries.invalidateQueries()
    },
  })
}

/** The secret of a webhook endpoint. It is read when it is asked for, and not kept. */
export const useSecret = (endpoint: string): UseQueryResult<wire.WebhookSecretBody> =>
  useQuery({
    queryKey: ['secret', endpoint],
    queryFn: ({ signal }) =>
      get<wire.WebhookSecretBody>(`webhooks/endpoints/${encodeURIComponent(endpoint)}/secret`, {}, signal),
    gcTime: 0,
    staleTime: 0,
  })

/** How many tasks came and how many attempts ended lately. */
export interface Flow {
  readonly placed: number
  readonly ended: number
}

const FLOW_SECONDS = 300
const ENDS = new Set(['task_finished', 'task_failed', 'task_expired', 'task_abandoned'])

export function useTaskFlow(): UseQueryResult<Flow> {
  return useQuery({
    queryKey: ['event-counts', 'flow'],
    queryFn: async ({ signal }) => {
      const since = Math.floor(Date.now() / 1_000) - FLOW_SECONDS
      const counts = await get<readonly EventCountBody[]>('history/counts', { since }, signal)
      const sum = (isMeant: (event: string) => boolean): number =>
        counts.reduce((total, { event_type: event, count }) => (isMeant(event) ? total + count : total), 0)
      return { placed: sum((event) => event === 'task_dispatched'), ended: sum((event) => ENDS.has(event)) }
    },
    refetchInterval: FLOW_MS,
  })
}

const FLOW_MS = 10_000

/** The oldest job that waits for a worker; null if none does. */
export function useOldestWaiting(): UseQueryResult<ListedJobBody | null> {
  return useQuery({
    queryKey: ['jobs', 'oldest'],
    queryFn: async ({ signal }) => {
      const status = 'waiting_for_worker,waiting_for_parallel'
      const query = { status, order: 'oldest', fields: 'job_id,blueprint_name,created_at', limit: 1 }
      return (await getPage<ListedJobBody>('jobs', query, signal)).items[0] ?? null
    },
    refetchInterval: useRefreshMs('jobs'),
  })
}
