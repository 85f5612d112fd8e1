import type { wire } from '@impresario/client'
import type { EventBody } from '@impresario/protocol'
import { useQuery } from '@tanstack/react-query'
import type { UseQueryResult } from '@tanstack/react-query'
import { ApiError, getPage } from './api.ts'
import type { AuditBody, PublishedBody } from './automation-queries.ts'
import { useLive } from './queries.ts'

const one = encodeURIComponent

/** An event is named by its place among all others, so that it is the first one before the place after it. */
export function useEvent(id: string): UseQueryResult<EventBody> {
  return useQuery({
    queryKey: ['event', id],
    queryFn: async ({ signal }) => {
      const [, at = '0', number = '0'] = /^(\d{1,15})-(\d{1,15})$/.exec(id) ?? []
      const { items } = await getPage<EventBody>('history', { before: `${at}-${Number(number) + 1}`, limit: 1 }, signal)
      const [found] = items
      if (found?.event_id !== id) throw new ApiError(404, 'NOT_FOUND', 'Event not found')
      return found
    },
    // It never changes.
    staleTime: Infinity,
    retry: false,
  })
}

export const usePublishedEvent = (id: string): UseQueryResult<PublishedBody> =>
  useLive(['published', id], `automations/events/${one(id)}`)
export const useAuditEntry = (id: string): UseQueryResult<AuditBody> => useLive(['audit', id], `audit/${one(id)}`)
export const useDelivery = (id: string): UseQueryResult<wire.WholeDeliveryBody> =>
  useLive(['delivery', id], `webhooks/deliveries/${one(id)}`)
export const useEndpoint = (id: string): UseQueryResult<wire.EndpointBody> =>
  useLive(['endpoint', id], `webhooks/endpoints/${one(id)}`)
export const useSchedule = (name: string): UseQueryResult<wire.ScheduleView> =>
  useLive(['schedule', name], `schedules/${one(name)}`)
