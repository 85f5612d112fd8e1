import type { wire } from '@impresario/client'
import { useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import type { InfiniteData, UseInfiniteQueryResult, UseMutationResult, UseQueryResult } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { get, getPage, request, send } from './api.ts'
import { apiUrl } from './places.ts'
import type { Page } from './api.ts'
import type { Query } from './places.ts'
import { useCalm, useLive, useLivePages } from './queries.ts'
import { stringifyExact } from '@impresario/protocol'

type Pages<T> = UseInfiniteQueryResult<InfiniteData<Page<T>>>

export type AutomationBody = wire.AutomationBody
export type PreviewBody = wire.PreviewBody
export type RunListed = wire.ListedRunBody
export type RunStep = wire.RunStepBody
export type RunBody = wire.RunBody
export type RunStatus = wire.RunStatusName
export type RehearsedStep = wire.RehearsedStepBody
export type AuditBody = wire.AuditEntryBody
export type PublishedBody = wire.PublishedEventBody
export type ToolBody = wire.ToolBody

const one = encodeURIComponent

export const useAutomations = (query: Query): Pages<AutomationBody> =>
  useLivePages(['automations'], 'automations', query)
export const useAutomation = (id: string): UseQueryResult<AutomationBody> =>
  useLive(['automation', id], `automations/${one(id)}`)
export const usePreview = (id: string): UseQueryResult<PreviewBody> =>
  useLive(['automation', id, 'preview'], `automations/${one(id)}/preview`, { count: 10 })
export const useRuns = (query: Query): Pages<RunListed> => useLivePages(['runs'], 'runs', query)
export const useRun = (id: string): UseQueryResult<RunBody> => useLive(['run', id], `runs/${one(id)}`)
export const useAudit = (query: Query): Pages<AuditBody> => useLivePages(['audit'], 'audit', query)
export const usePublished = (query: Query): Pages<PublishedBody> =>
  useLivePages(['published'], 'automations/events', query)
export const useDeliveries = (query: Query): Pages<wire.DeliveryBody> =>
  useLivePages(['deliveries'], 'webhooks/deliveries', query)
export const useEndpoints = (): Pages<wire.EndpointBody> => useLivePages(['endpoints'], 'webhooks/endpoints', {})
export const useAccount = (): UseQueryResult<wire.AccountBody> => useCalm(['account'], 'account')
export const useTools = (): UseQueryResult<readonly ToolBody[]> => useCalm(['tools'], 'tools')

type Definition = Readonly<Record<string, unknown>>

const TYPING_MS = 350

/** When a definition that is still being written would run. Asked for when no key was pressed for a moment. */
export function usePreviewOf(definition: Definition): UseQueryResult<PreviewBody> {
  const { title } = definition
  // What has no title yet runs at the same times.
  const text = stringifyExact({ ...definition, title: title === '' || title === undefined ? '…' : title })
  const [asked, setAsked] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text), TYPING_MS)
    return () => clearTimeout(timer)
  }, [text])
  return useQuery({
    queryKey: ['preview-of', asked],
    queryFn: async ({ signal }) => {
      const url = apiUrl('automations/preview', { count: 10 })
      return (await (await request(url, { method: 'POST', body: asked, signal })).json()) as PreviewBody
    },
    retry: false,
    staleTime: 30_000,
    placeholderData: (before) => before,
  })
}

interface Saved {
  readonly id: string | undefined
  readonly definition: Definition
}

export function useSaveAutomation(): UseMutationResult<AutomationBody, Error, Saved> {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ id, definition }) =>
      id === undefined
        ? send<AutomationBody>('POST', 'automations', definition)
        : send<AutomationBody>('PUT', `automations/${one(id)}`, definition),
    onSuccess: () => queries.invalidateQueries(),
  })
}

export function usePreviewRun(): UseMutationResult<
  wire.PreviewRunBody,
  Error,
  { readonly definition: Definition; readonly event: Definition }
> {
  return useMutation({ mutationFn: (body) => send<wire.PreviewRunBody>('POST', 'automations/preview_run', body) })
}

/** So many runs and automations a calendar asks for. That there are more is said. */
const CALENDAR_RUNS = 500
const CALENDAR_AUTOMATIONS = 50

export interface CalendarData {
  readonly runs: readonly RunListed[]
  readonly firings: readonly { readonly at: number; readonly automation: AutomationBody }[]
  readonly isPartial: boolean
  readonly isPending: boolean
  readonly error: Error | null
}

/** Runs between two moments (Unix seconds), and firings that are still to come until the second one. */
export function useCalendar(from: number, until: number): CalendarData {
  const runs = useQuery({
    queryKey: ['runs', 'calendar', from, until],
    queryFn: async ({ signal }) => {
      const items: RunListed[] = []
      let cursor: string | undefined
      do {
        const query = { created_after: from, created_before: until, limit: 100, cursor }
        const page: Page<RunListed> = await getPage('runs', query, signal)
        items.push(...page.items)
        cursor = page.next
      } while (cursor !== undefined && items.length < CALENDAR_RUNS)
      return { items, next: cursor }
    },
  })
  const automations = useQuery({
    queryKey: ['automations', 'calendar'],
    queryFn: ({ signal }) =>
      getPage<AutomationBody>('automations', { status: 'active', limit: CALENDAR_AUTOMATIONS }, signal),
  })
  const planned = (automations.data?.items ?? []).filter(({ next_run_at: next }) => next !== null && next < until)
  const previews = useQueries({
    queries: planned.map((automation) => ({
      queryKey: ['automation', automation.id, 'calendar'],
      queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
        get<PreviewBody>(`automations/${one(automation.id)}/preview`, { count: 100 }, signal),
    })),
  })
  const firings = planned.flatMap((automation, index) =>
    (previews[index]?.data?.firings ?? []).filter(({ at }) => at < until).map(({ at }) => ({ at, automation })),
  )
  const cut = previews.some(({ data }) => {
    const last = data?.firings.at(-1)
    return data?.is_complete === false && last !== undefined && last.at < until
  })
  return {
    runs: runs.data?.items ?? [],
    firings,
    isPartial: cut || runs.data?.next !== undefined || automations.data?.next !== undefined,
    isPending: runs.isPending || automations.isPending,
    error: runs.error ?? automations.error,
  }
}
