import { CLIENT_API_PREFIX, HEADERS, type Data } from '@impresario/protocol'
import { given, type Connection } from './connection.ts'
import { newJobId } from './job-id.ts'
import { listing, type Listing, type PageQuery } from './listing.ts'

/** One try to send a message. Times are Unix seconds, spans are seconds. */
export interface DeliveryAttempt {
  readonly at: number
  readonly duration: number
  /** What the receiver answered. */
  readonly status: number | null
  /** Why it does not count as delivered. */
  readonly error: string | null
}

/** A message to the outside, and what became of it. */
export interface Delivery {
  /** What receivers see as `webhook-id`. */
  readonly id: string
  readonly owner: string
  readonly job_id: string
  readonly event: string
  readonly url: string
  readonly endpoint_id: string
  readonly status: 'pending' | 'delivered' | 'failed'
  readonly created_at: number
  /** The oldest first. */
  readonly attempts: readonly DeliveryAttempt[]
  readonly next_attempt_at: number | null
  /** Why it waits, or why it was given up. */
  readonly note: string | null
  readonly ended_at: number | null
}

export interface WholeDelivery extends Delivery {
  /** What is sent. */
  readonly body: Data
}

/** How a secret is replaced. */
export interface RotateOptions {
  /** How long the old one is used beside it. */
  readonly overlapMs?: number | undefined
  readonly idempotencyKey?: string | undefined
}

/** A receiver of messages, and how it fares. */
export interface WebhookEndpoint {
  readonly id: string
  readonly owner: string
  /** Without its query. */
  readonly address: string
  readonly status: 'active' | 'open' | 'half_open' | 'disabled'
  readonly consecutive_failures: number
  readonly failing_since: number | null
  readonly last_success_at: number | null
  readonly last_failure_at: number | null
  readonly last_error: string | null
  readonly paused_until: number | null
  readonly disabled_at: number | null
  readonly disabled_reason: 'gone' | 'failing' | null
  readonly created_at: number
}

export interface WebhookSecret {
  readonly endpoint_id: string
  readonly secret: string
  /** Until then messages are signed with the secret before this one, too. */
  readonly old_secret_until: number | null
}

export interface DeliveryQuery extends PageQuery {
  readonly jobId?: string | undefined
  readonly event?: string | undefined
  readonly status?: Delivery['status'] | undefined
  /** Only those of this client. Admins may name any, others themselves. */
  readonly owner?: string | undefined
}

export interface EndpointQuery extends PageQuery {
  readonly owner?: string | undefined
}

const DELIVERIES = `${CLIENT_API_PREFIX}/webhooks/deliveries`
const ENDPOINTS = `${CLIENT_API_PREFIX}/webhooks/endpoints`

/** The log of messages to the outside, and those who get them. */
export class Webhooks {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Newest first. */
  deliveries({ jobId, event, status, owner, limit, cursor }: DeliveryQuery = {}): Listing<Delivery> {
    const query = { job_id: jobId, event, status, owner, limit }
    return listing<Delivery>(this.#connection, { path: DELIVERIES, query, cursor, read: believed })
  }

  async delivery(id: string): Promise<WholeDelivery> {
    return this.#get(`${DELIVERIES}/${encodeURIComponent(id)}`)
  }

  /** Sends a message once more, under the same id, also to an endpoint that is disabled. */
  async redeliver(id: string): Promise<WholeDelivery> {
    return this.#post(`${DELIVERIES}/${encodeURIComponent(id)}/redeliver`)
  }

  endpoints({ owner, limit, cursor }: EndpointQuery = {}): Listing<WebhookEndpoint> {
    const query = { owner, limit }
    return listing<WebhookEndpoint>(this.#connection, { path: ENDPOINTS, query, cursor, read: believed })
  }

  async endpoint(id: string): Promise<WebhookEndpoint> {
    return this.#get(`${ENDPOINTS}/${encodeURIComponent(id)}`)
  }

  /** Names an address that will get messages, to learn its secret beforehand. Nothing is sent. */
  async declare(url: string): Promise<WebhookEndpoint> {
    return this.#post(ENDPOINTS, { url }, true)
  }

  /** Lets an endpoint get messages again that was disabled, or has a pause. What waits for it is sent at once. */
  async enable(id: string): Promise<WebhookEndpoint & { readonly released: number }> {
    return this.#post(`${ENDPOINTS}/${encodeURIComponent(id)}/enable`, undefined, true)
  }

  /** What messages to an endpoint are signed with; for `verifyWebhook`. */
  async secret(id: string): Promise<WebhookSecret> {
    return this.#get(`${ENDPOINTS}/${encodeURIComponent(id)}/secret`)
  }

  /**
   * Replaces the secret. For a day, or so long as `overlapMs`, messages carry two signatures; 0 when it has leaked. It is
   * replaced once, also when an answer is lost and the call is repeated; with a key of your own, also over several calls.
   */
  async rotateSecret(id: string, options: RotateOptions = {}): Promise<WebhookSecret> {
    const overlap = options.overlapMs === undefined ? undefined : options.overlapMs / 1_000
    const headers = { [HEADERS.idempotencyKey]: options.idempotencyKey ?? newJobId() }
    const call = { method: 'POST', body: JSON.stringify(given({ overlap })), headers, repeatable: true } as const
    const path = `${ENDPOINTS}/${encodeURIComponent(id)}/rotate-secret`
    return believed<WebhookSecret>((await this.#connection.call(path, call)).body)
  }

  async #get<T>(path: string): Promise<T> {
    return believed<T>((await this.#connection.call(path, { repeatable: true })).body)
  }

  async #post<T>(path: string, request?: object, repeatable = false): Promise<T> {
    const body = request === undefined ? {} : { body: JSON.stringify(request) }
    return believed<T>((await this.#connection.call(path, { method: 'POST', repeatable, ...body })).body)
  }
}

/** The boundary at which a server's answer is believed. */
function believed<T>(body: unknown): T {
  return body as T
}
