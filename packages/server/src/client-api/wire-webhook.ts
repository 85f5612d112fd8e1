import { shownJobId } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import type { Json } from '@impresario/protocol'
import { DELIVERY_STATUSES } from '@impresario/webhooks'
import type { Delivery, DeliverySummary, Endpoint, EndpointSecret } from '@impresario/webhooks'
import { z } from 'zod'

const moment = z.number().describe('Unix seconds.')
const perhaps = moment.nullable()

export const deliveryParams = z.object({ delivery_id: z.string().describe('Id of a message: its header webhook-id.') })
export const webhookEndpointParams = z.object({ endpoint_id: z.string().describe('Id of a webhook endpoint.') })

const page = {
  limit: z.coerce.number().int().min(1).max(LIMITS.pageSizeMax).optional().describe('Entries on one page.'),
  cursor: z.string().optional().describe('From the header X-Next-Cursor of the page before.'),
  owner: z.string().optional().describe('Only those of this client. Admins may name any, others themselves.'),
}

export const deliveryQuery = z.looseObject({
  job_id: z.string().min(1).max(800).optional().describe('Only messages about this job.'),
  event: z.string().min(1).max(LIMITS.identifierCharsMax).optional().describe('Only messages of this event.'),
  status: z.enum(DELIVERY_STATUSES).optional().describe('Only messages that are so.'),
  ...page,
})

export const endpointListQuery = z.looseObject(page)

export const deliveryAttempt = z.object({
  at: moment,
  duration: z.number().describe('Seconds.'),
  status: z.number().nullable().describe('What the receiver answered.'),
  error: z.string().nullable().describe('Why it does not count as delivered.'),
})

const deliveryFields = {
  id: z.string().describe('What receivers see as webhook-id.'),
  owner: z.string(),
  job_id: z.string(),
  event: z.string(),
  url: z.string(),
  endpoint_id: z.string(),
  status: z.enum(DELIVERY_STATUSES),
  created_at: moment,
  attempts: z.array(deliveryAttempt).describe('The newest forty, the oldest first.'),
  next_attempt_at: perhaps,
  note: z.string().nullable().describe('Why it waits, or why it was given up.'),
  ended_at: perhaps,
}

export const deliveryBody = z.object({ ...deliveryFields, body: z.unknown().describe('What is sent.') })
export const listedDelivery = z.object(deliveryFields)
export const deliveryList = z.array(listedDelivery)

export const webhookEndpointBody = z.object({
  id: z.string(),
  owner: z.string(),
  address: z.string().describe('The address without its query.'),
  status: z.enum(['active', 'open', 'half_open', 'disabled']),
  consecutive_failures: z.number(),
  failing_since: perhaps,
  last_success_at: perhaps,
  last_failure_at: perhaps,
  last_error: z.string().nullable(),
  paused_until: perhaps.describe('Nothing is sent before then; messages wait.'),
  disabled_at: perhaps,
  disabled_reason: z.enum(['gone', 'failing']).nullable(),
  created_at: moment,
})
export const enabledEndpointBody = webhookEndpointBody.extend({
  released: z.int().describe('Messages that waited for it and are sent now.'),
})
export const webhookEndpointList = z.array(webhookEndpointBody)

export const declareEndpointRequest = z.strictObject({ url: z.string().min(1).max(4_096) })

/** A week. If a receiver needs longer to change, rotate once more. */
const OVERLAP_S_MAX = 604_800

export const rotateSecretRequest = z.strictObject({
  overlap: z
    .number()
    .min(0)
    .max(OVERLAP_S_MAX)
    .nullish()
    .describe('Seconds in which messages are signed with the old secret too. A day without it; 0 when it has leaked.'),
})

export const webhookSecretBody = z.object({
  endpoint_id: z.string(),
  secret: z.string().describe('Begins with whsec_.'),
  old_secret_until: perhaps.describe('Until then messages are signed with the secret before this one, too.'),
})

type DeliveryBody = z.output<typeof deliveryBody>
type EndpointBody = z.output<typeof webhookEndpointBody>

export function wireDelivery(delivery: DeliverySummary): Omit<DeliveryBody, 'body'> {
  return {
    id: delivery.messageId,
    owner: delivery.clientId,
    job_id: shownJobId(delivery.jobId),
    event: delivery.event,
    url: delivery.url,
    endpoint_id: delivery.endpointId,
    status: delivery.status,
    created_at: delivery.at / 1_000,
    attempts: delivery.attempts.map(({ at, durationMs, status, error }) => ({
      at: at / 1_000,
      duration: durationMs / 1_000,
      status,
      error,
    })),
    next_attempt_at: seconds(delivery.nextAttemptAt),
    note: delivery.note,
    ended_at: seconds(delivery.endedAt),
  }
}

export function wholeDelivery(delivery: Delivery): Omit<DeliveryBody, 'body'> & { readonly body: Json } {
  return { ...wireDelivery(delivery), body: delivery.body }
}

export function wireEndpoint(id: string, endpoint: Endpoint, now: number): EndpointBody {
  const { disabled, waitUntil } = endpoint
  return {
    id,
    owner: endpoint.clientId,
    address: endpoint.address,
    status: statusOf(endpoint, now),
    consecutive_failures: endpoint.failures,
    failing_since: seconds(endpoint.failingSince),
    last_success_at: seconds(endpoint.lastSuccessAt),
    last_failure_at: seconds(endpoint.lastFailureAt),
    last_error: endpoint.lastError,
    paused_until: waitUntil !== null && waitUntil > now ? waitUntil / 1_000 : null,
    disabled_at: seconds(disabled?.at ?? null),
    disabled_reason: disabled?.reason ?? null,
    created_at: endpoint.createdAt / 1_000,
  }
}

/** An open circuit whose wait is over lets one message through. */
function statusOf({ disabled, circuit, waitUntil }: Endpoint, now: number): EndpointBody['status'] {
  if (disabled !== null) return 'disabled'
  if (circuit === 'closed') return 'active'
  return waitUntil !== null && waitUntil > now ? 'open' : 'half_open'
}

export function wireSecret(
  endpointId: string,
  { secret, oldSecretUntil }: EndpointSecret,
): z.output<typeof webhookSecretBody> {
  return { endpoint_id: endpointId, secret, old_secret_until: seconds(oldSecretUntil ?? null) }
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1_000
}
