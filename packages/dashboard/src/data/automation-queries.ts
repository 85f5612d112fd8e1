import type { wire } from '@impresario/client'
import type { Json } from '@impresario/protocol'
import type { InfiniteData, UseInfiniteQueryResult, UseQueryResult } from '@tanstack/react-query'
import type { Page, Query } from './api.ts'
import { useCalm, useLive, useLivePages } from './queries.ts'

type Pages<T> = UseInfiniteQueryResult<InfiniteData<Page<T>>>
type JsonRecord = Readonly<Record<string, Json>>

export interface AutomationBody {
  readonly id: string
  readonly owner: string
  readonly status: string
  readonly revision: number
  readonly title: string
  readonly definition: JsonRecord
  readonly when: readonly string[]
  readonly next_run_at: number | null
  readonly snoozed: { readonly until: number; readonly by: string; readonly reason: string | null } | null
  readonly created_at: number
  readonly updated_at: number
  readonly updated_by: string
}

export interface PreviewBody {
  readonly words: readonly string[]
  readonly firings: readonly { readonly at: number; readonly local: string; readonly notes: readonly string[] }[]
  readonly left_out: readonly { readonly at: number; readonly local: string; readonly reason: string }[]
}

interface StepError {
  readonly code: string
  readonly message: string
}

export interface RunListed {
  readonly id: string
  readonly automation_id: string
  readonly title: string
  readonly owner: string
  readonly status: string
  readonly trigger: JsonRecord & { readonly kind?: string }
  readonly attempt: number
  readonly output: Json
  readonly error: StepError | null
  readonly created_at: number
  readonly ended_at: number | null
}

export interface RunStep {
  readonly id: string
  readonly status: string
  readonly input: Json
  readonly condition: JsonRecord | null
  readonly output: Json
  readonly attempts: number
  readonly started_at: string
  readonly ended_at: string | null
  readonly error: StepError | null
}

export interface RunBody extends RunListed {
  readonly steps: readonly RunStep[]
  readonly attempts: readonly {
    readonly attempt: number
    readonly error: StepError | null
    readonly steps: readonly RunStep[]
  }[]
}

export interface AuditBody {
  readonly id: string
  readonly at: number
  readonly actor: string
  readonly action: string
  readonly subject: string
  readonly details: JsonRecord
}

export interface PublishedBody {
  readonly id: string
  readonly topic: string
  readonly payload: Json
  readonly published_at: number
  readonly runs: readonly JsonRecord[] | null
}

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
