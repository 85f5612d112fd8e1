import type { Item, Put, Stored } from '@impresario/core'
import type { JsonObject } from '@impresario/protocol'
import { endpointAddress, endpointId } from './endpoint.ts'
import type { OutgoingMessage } from './message.ts'

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

/** One try to send. `status` is the receiver's, if it gave one; `error` says in a sentence why it did not count. */
export type Attempt = {
  readonly at: number
  readonly durationMs: number
  readonly status: number | null
  readonly error: string | null
}

/**
 * A message and its state: `pending` → `delivered`, or `failed` when its attempts are used up or there is no receiver to
 * take it. A redelivery makes it `pending` again, with all attempts. It is kept for `retentionMs` after its last change.
 */
export type Delivery = OutgoingMessage & {
  readonly endpointId: string
  readonly status: DeliveryStatus
  /** The newest ones. */
  readonly attempts: readonly Attempt[]
  /** Since it was enqueued last. */
  readonly tries: number
  readonly nextAttemptAt: number | null
  /** It was requested by its id: the next attempt is made whatever the state of the endpoint. */
  readonly isForced: boolean
  /** Why it waits, or why it failed. */
  readonly note: string | null
  readonly endedAt: number | null
}

/** As a list shows it: without what is sent. */
export type DeliverySummary = Omit<Delivery, 'body'>

/** Three redeliveries of ten attempts each; older ones are of no use. */
const ATTEMPTS_KEPT = 40

export function newDelivery(message: OutgoingMessage): Delivery {
  return {
    ...message,
    endpointId: endpointOf(message),
    status: 'pending',
    attempts: [],
    tries: 0,
    nextAttemptAt: null,
    isForced: false,
    note: null,
    endedAt: null,
  }
}

function endpointOf({ clientId, url }: Pick<OutgoingMessage, 'clientId' | 'url'>): string {
  return endpointId(clientId, endpointAddress(url))
}

/** The boundary where a record gets its type back. This file makes them, but for the first: `pendingDelivery` of core. */
export function asDelivery({ value, version }: Stored<JsonObject>): Stored<Delivery> {
  const delivery = value as unknown as Delivery
  if (delivery.endpointId !== undefined) return { value: delivery, version }
  return { value: { ...delivery, endpointId: endpointOf(delivery) }, version }
}

export function putDelivery(value: Delivery, version: number, retentionMs: number): Put {
  const { messageId, clientId, status, event, jobId } = value
  return {
    kind: 'delivery',
    id: messageId,
    value,
    version,
    facets: { owner: clientId, status, name: event, text: jobId },
    expiresMs: retentionMs,
  }
}

/** The message's item in the outbox. Its id is the message's, so that there is never more than one. */
export function outboxItem(
  { messageId, url, clientId, jobId, event, at, body, tracing }: OutgoingMessage,
  delayMs: number,
  priority = 0,
): Item {
  const message: OutgoingMessage = { messageId, url, clientId, jobId, event, at, body }
  const payload = tracing === undefined ? message : { ...message, tracing }
  return { queue: 'outbox', id: messageId, lane: clientId, priority, delayMs, payload }
}

export function attempted(delivery: Delivery, attempt: Attempt): Delivery {
  return {
    ...delivery,
    attempts: [...delivery.attempts, attempt].slice(-ATTEMPTS_KEPT),
    tries: delivery.tries + 1,
    isForced: false,
  }
}

export function arrived(delivery: Delivery, now: number): Delivery {
  return { ...delivery, status: 'delivered', nextAttemptAt: null, note: null, endedAt: now }
}

export function givenUp(delivery: Delivery, note: string, now: number): Delivery {
  return { ...delivery, status: 'failed', nextAttemptAt: null, isForced: false, note, endedAt: now }
}

export function waiting(delivery: Delivery, nextAttemptAt: number, note: string | null): Delivery {
  return { ...delivery, status: 'pending', nextAttemptAt, note, endedAt: null }
}

/** It does not wait any longer; the attempts that it had count. */
export function freed(delivery: Delivery, now: number): Delivery {
  return waiting(delivery, now, 'the endpoint was enabled')
}

export function redelivered(delivery: Delivery, now: number): Delivery {
  return { ...waiting(delivery, now, 'redelivery was asked for'), tries: 0, isForced: true }
}
