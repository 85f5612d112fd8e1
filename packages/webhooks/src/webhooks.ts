import { setImmediate as nextTick } from 'node:timers/promises'
import { nextPage } from '@impresario/core'
import type { Clock, Listing, ListQuery, Storage, Stored } from '@impresario/core'
import { KeyBook } from '@impresario/engine'
import type { ClientKey } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import { asDelivery, freed, outboxItem, putDelivery, redelivered } from './delivery.ts'
import type { Delivery, DeliveryStatus, DeliverySummary } from './delivery.ts'
import {
  asEndpoint,
  enabled,
  endpointAddress,
  endpointId,
  newEndpoint,
  putEndpoint,
  rotated,
  SECRET_OVERLAP_MS,
} from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import { checkUrl } from './outbound.ts'
import type { OutboundPolicy } from './outbound.ts'
import { RETENTION_MS } from './sender.ts'
import { webhookSecret } from './signature.ts'
import type { DeriveSecret } from './signature.ts'

export interface WebhooksOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly deriveSecret: DeriveSecret
  readonly policy: OutboundPolicy
  readonly retentionMs?: number
}

/** Whose records are meant; `undefined`: everybody's. */
export type Owner = string | undefined

export interface DeliveryQuery {
  readonly owner: Owner
  readonly jobId?: string | undefined
  readonly event?: string | undefined
  readonly status?: DeliveryStatus | undefined
  /** The id that the page before ended with. */
  readonly before?: string | undefined
  readonly limit: number
}

export interface Page<T> {
  readonly items: readonly T[]
  /** `before` for the next page, if there is one. */
  readonly next: string | undefined
}

/** The secret of an endpoint, and until when the one before it is also used. */
export interface EndpointSecret {
  readonly secret: string
  readonly oldSecretUntil: number | undefined
}

/** An item that is due later than this cannot be claimed while it is being replaced, even if clocks differ a little. */
const CLAIMABLE_MS = 5_000

/** Pages that are read for one page of a filter that the storage does not know exactly, or of long messages. */
const READS_MAX = 20
/** Read at once. */
const READ_BYTES = 2_097_152
const READ_LOOKS = 2_000

const COMMITS_MAX = 20

/** What waits for an endpoint is released in commits of so many; beyond 10,000 messages of a client the rest waits its time. */
const RELEASE_PAGE = 100
const RELEASE_PAGES_MAX = 100

/** An endpoint that was enabled, and how many messages that waited for it are sent now. */
export interface Enabled {
  readonly endpoint: Endpoint
  readonly released: number
}

/** The log of deliveries and the state of endpoints, for those whom they belong to. What is another's is not there. */
export class Webhooks {
  readonly #options: WebhooksOptions
  readonly #keys: KeyBook

  constructor(options: WebhooksOptions) {
    this.#options = options
    this.#keys = new KeyBook(options)
  }

  async listDeliveries(given: DeliveryQuery): Promise<Page<DeliverySummary>> {
    const { owner, jobId, event, status, before, limit } = given
    const query: Omit<ListQuery, 'limit' | 'before'> = {
      ...(owner === undefined ? {} : { owner }),
      ...(event === undefined ? {} : { name: event }),
      ...(status === undefined ? {} : { status }),
      ...(jobId === undefined ? {} : { search: jobId }),
    }
    const items: DeliverySummary[] = []
    let last = before
    for (let reads = 0; reads < READS_MAX; reads += 1) {
      // Messages may be long: other work runs in between, and only what is listed of them is kept.
      if (reads > 0) await nextTick()
      const bounds = { limit: limit + 1, bytesMax: READ_BYTES, looksMax: READ_LOOKS }
      const page = { ...query, ...(last === undefined ? {} : { before: last }), ...bounds }
      const found = await this.#options.storage.list('delivery', page)
      for (const one of found) {
        const { body: _, ...summary } = asDelivery(one).value
        // A search finds ids that contain the one that is asked for; only the very same is meant.
        if (jobId === undefined || summary.jobId === jobId) items.push(summary)
      }
      last = nextPage(found, bounds.limit)
      if (items.length > limit) return { items: items.slice(0, limit), next: items[limit - 1]?.messageId }
      if (last === undefined) return { items, next: undefined }
    }
    return { items, next: last }
  }

  async delivery(owner: Owner, messageId: string): Promise<Delivery> {
    return (await this.#readDelivery(owner, messageId)).value
  }

  /**
   * Sends a message once more, under its old id and with all attempts, whatever the state of its endpoint. One that
   * is about to be sent anyway stays as it is: a message is never sent twice at a time.
   */
  async redeliver(owner: Owner, messageId: string): Promise<Delivery> {
    const { storage, clock, retentionMs = RETENTION_MS } = this.#options
    return insist(async () => {
      const { value, version } = await this.#readDelivery(owner, messageId)
      const now = clock.now()
      const { status, nextAttemptAt } = value
      if (status === 'pending' && (nextAttemptAt ?? 0) - now < CLAIMABLE_MS) return value
      const next = redelivered(value, now)
      const put = [putDelivery(next, version + 1, retentionMs)]
      const done = await storage.commit({ put, enqueue: [outboxItem(value, 0)] })
      if (done === 'conflict') return undefined
      await storage.sync()
      return next
    })
  }

  async listEndpoints(owner: Owner, before: string | undefined, limit: number): Promise<Page<Endpoint>> {
    const found = await this.#options.storage.list('endpoint', {
      ...(owner === undefined ? {} : { owner }),
      ...(before === undefined ? {} : { before }),
      limit: limit + 1,
    })
    const page = found.slice(0, limit)
    const next = found.length > limit ? page.at(-1)?.id : undefined
    return { items: page.map((one) => asEndpoint(one).value), next }
  }

  async endpoint(owner: Owner, id: string): Promise<Endpoint> {
    return (await this.#readEndpoint(owner, id)).value
  }

  /** The endpoint for an address, made if it is new: so its secret can be known before the first message. */
  async declareEndpoint(clientId: string, url: string): Promise<Endpoint> {
    const { storage, clock, policy } = this.#options
    const checked = checkUrl(url, policy)
    if ('problem' in checked) throw new ImpresarioError('INVALID_REQUEST', `"url" ${checked.problem}.`)
    const address = endpointAddress(url)
    return insist(async () => {
      const stored = await storage.read('endpoint', endpointId(clientId, address))
      if (stored !== undefined) return asEndpoint(stored).value
      await this.#mustHaveRoom(clientId)
      const endpoint = newEndpoint(clientId, address, clock.now())
      if ((await storage.commit({ put: [putEndpoint(endpoint, 1)] })) === 'conflict') return undefined
      await storage.sync()
      return endpoint
    })
  }

  /** Sends to an endpoint again, whatever its state, and at once what waits for it: a person has repaired it. */
  async enable(owner: Owner, id: string): Promise<Enabled> {
    const endpoint = await this.#change(owner, id, enabled)
    return { endpoint, released: await this.#release(endpoint.clientId, id) }
  }

  /** Makes what waits for an endpoint due now. What is under way, or about to be, is left alone. Gives how many these are. */
  async #release(clientId: string, id: string): Promise<number> {
    const { storage, clock } = this.#options
    let released = 0
    let before: string | undefined
    for (let pages = 0; pages < RELEASE_PAGES_MAX; pages += 1) {
      const query = { owner: clientId, status: 'pending', limit: RELEASE_PAGE, bytesMax: READ_BYTES }
      const found: Listing<'delivery'> = await storage.list(
        'delivery',
        before === undefined ? query : { ...query, before },
      )
      const now = clock.now()
      const waiting = found
        .map((one) => asDelivery(one))
        .filter(({ value }) => value.endpointId === id && (value.nextAttemptAt ?? 0) - now >= CLAIMABLE_MS)
      released += await this.#releaseAll(waiting, now)
      before = nextPage(found, RELEASE_PAGE)
      if (before === undefined) break
      await nextTick()
    }
    await storage.sync()
    return released
  }

  /** All in one commit; after a conflict one by one, and those that have changed meanwhile are left out. */
  async #releaseAll(deliveries: readonly Stored<Delivery>[], now: number): Promise<number> {
    const { storage, retentionMs = RETENTION_MS } = this.#options
    if (deliveries.length === 0) return 0
    const put = deliveries.map(({ value, version }) => putDelivery(freed(value, now), version + 1, retentionMs))
    const enqueue = deliveries.map(({ value }) => outboxItem(value, 0))
    if ((await storage.commit({ put, enqueue })) === 'committed') return deliveries.length
    if (deliveries.length === 1) return 0
    let count = 0
    for (const one of deliveries) count += await this.#releaseAll([one], now)
    return count
  }

  async secret(owner: Owner, id: string): Promise<EndpointSecret> {
    return this.#secretOf(await this.endpoint(owner, id))
  }

  /**
   * A new secret. The old one signs beside it for a while, so that receivers can be changed without losing a message. With a
   * key, the same call once more gives the secret and changes nothing.
   */
  async rotateSecret(
    owner: Owner,
    id: string,
    overlapMs: number = SECRET_OVERLAP_MS,
    once?: ClientKey,
  ): Promise<EndpointSecret> {
    const { storage, clock } = this.#options
    const use = once && this.#keys.use(once, { rotate: id, overlapMs })
    const endpoint = await insist(async () => {
      const { value, version } = await this.#readEndpoint(owner, id)
      if (use !== undefined && (await this.#keys.find(use)) !== undefined) return value
      // From now on it is never forgotten.
      if (value.rotation === 0) await this.#mustHaveRoom(value.clientId, 1)
      const next = rotated(value, clock.now(), overlapMs)
      const used = use === undefined ? [] : [this.#keys.put(use, id)]
      if ((await storage.commit({ put: [putEndpoint(next, version + 1), ...used] })) === 'conflict') return undefined
      await storage.sync()
      return next
    })
    return this.#secretOf(endpoint)
  }

  /** `own`: how many of those that are there is the endpoint itself. */
  async #mustHaveRoom(clientId: string, own: 0 | 1 = 0): Promise<void> {
    const counts = await this.#options.storage.counts('endpoint', { owner: clientId })
    const count = Object.values(counts).reduce((sum, each) => sum + each, 0)
    if (count - own < LIMITS.endpointsMax) return
    const message = `A client can have ${LIMITS.endpointsMax} webhook endpoints, and this one has ${count}. Use fewer addresses; what differs from job to job belongs into the query of a URL. Endpoints without messages are forgotten after 90 days.`
    throw new ImpresarioError('LIMIT_EXCEEDED', message)
  }

  #secretOf(endpoint: Endpoint): EndpointSecret {
    const { deriveSecret, clock } = this.#options
    const { rotation, oldSecretUntil } = endpoint
    const isOverlapping = oldSecretUntil !== null && oldSecretUntil > clock.now()
    return {
      secret: webhookSecret(deriveSecret, endpoint, rotation),
      oldSecretUntil: isOverlapping ? oldSecretUntil : undefined,
    }
  }

  #change(owner: Owner, id: string, change: (endpoint: Endpoint) => Endpoint): Promise<Endpoint> {
    const { storage } = this.#options
    return insist(async () => {
      const { value, version } = await this.#readEndpoint(owner, id)
      const next = change(value)
      if ((await storage.commit({ put: [putEndpoint(next, version + 1)] })) === 'conflict') return undefined
      await storage.sync()
      return next
    })
  }

  async #readDelivery(owner: Owner, messageId: string): Promise<Stored<Delivery>> {
    const stored = await this.#options.storage.read('delivery', messageId)
    const delivery = stored === undefined ? undefined : asDelivery(stored)
    if (delivery === undefined || !isOf(owner, delivery.value)) {
      throw new ImpresarioError('NOT_FOUND', 'There is no such delivery.')
    }
    return delivery
  }

  async #readEndpoint(owner: Owner, id: string): Promise<Stored<Endpoint>> {
    const stored = await this.#options.storage.read('endpoint', id)
    const endpoint = stored === undefined ? undefined : asEndpoint(stored)
    if (endpoint === undefined || !isOf(owner, endpoint.value)) {
      throw new ImpresarioError('NOT_FOUND', 'There is no such endpoint.')
    }
    return endpoint
  }
}

function isOf(owner: Owner, { clientId }: { readonly clientId: string }): boolean {
  return owner === undefined || clientId === owner
}

/** Tries again after a conflict. */
async function insist<T>(work: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < COMMITS_MAX; tries += 1) {
    const result = await work()
    if (result !== undefined) return result
  }
  throw new ImpresarioError('CONFLICT', 'Others are changing the same thing. Try again.')
}
