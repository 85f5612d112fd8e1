import { given } from './connection.ts'
import { newJobId } from './job-id.ts'
import { listing, type Listing, type PageQuery } from './listing.ts'
import type { ClientTransport } from './transport.ts'
import type { Delivery, EnabledEndpoint, WebhookEndpoint, WebhookSecret, WholeDelivery } from './views.ts'
import { fromWire } from './wire-case.ts'

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

/** How a secret is replaced. */
export interface RotateOptions {
  /** How long the old one is used beside it. */
  readonly overlapMs?: number | undefined
  readonly idempotencyKey?: string | undefined
}

/** The log of messages to the outside, and those who get them. */
export class Webhooks {
  readonly #transport: ClientTransport

  constructor(transport: ClientTransport) {
    this.#transport = transport
  }

  /** Newest first. */
  deliveries({ jobId, cursor: first, ...rest }: DeliveryQuery = {}): Listing<Delivery> {
    const query = given({ job_id: jobId, ...rest })
    return listing((cursor) => this.#transport.listDeliveries({ ...query, cursor }), fromWire, first)
  }

  async delivery(id: string): Promise<WholeDelivery> {
    return fromWire(await this.#transport.readDelivery(id))
  }

  /** Sends a message once more, under the same id, also to an endpoint that is disabled. */
  async redeliver(id: string): Promise<WholeDelivery> {
    return fromWire(await this.#transport.redeliver(id))
  }

  endpoints({ cursor: first, ...query }: EndpointQuery = {}): Listing<WebhookEndpoint> {
    return listing((cursor) => this.#transport.listEndpoints({ ...query, cursor }), fromWire, first)
  }

  async endpoint(id: string): Promise<WebhookEndpoint> {
    return fromWire(await this.#transport.readEndpoint(id))
  }

  /** Names an address that will get messages, to learn its secret beforehand. Nothing is sent. */
  async declare(url: string): Promise<WebhookEndpoint> {
    return fromWire(await this.#transport.declareEndpoint(url))
  }

  /** Lets an endpoint get messages again that was disabled, or has a pause. What waits for it is sent at once. */
  async enable(id: string): Promise<EnabledEndpoint> {
    return fromWire(await this.#transport.enableEndpoint(id))
  }

  /** What messages to an endpoint are signed with; for `verifyWebhook`. */
  async secret(id: string): Promise<WebhookSecret> {
    return fromWire(await this.#transport.readSecret(id))
  }

  /**
   * Replaces the secret. For a day, or so long as `overlapMs`, messages carry two signatures; 0 when it has leaked. It is
   * replaced once, also when an answer is lost and the call is repeated; with a key of your own, also over several calls.
   */
  async rotateSecret(id: string, options: RotateOptions = {}): Promise<WebhookSecret> {
    const overlap = options.overlapMs === undefined ? undefined : options.overlapMs / 1_000
    return fromWire(await this.#transport.rotateSecret(id, overlap, options.idempotencyKey ?? newJobId()))
  }
}
