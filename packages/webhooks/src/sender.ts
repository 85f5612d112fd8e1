import { wallTime } from '@impresario/core'
import type { Batch, Clock, Lease, Log, Random, Service, Storage, Stored } from '@impresario/core'
import { Pump } from '@impresario/engine'
import type { Deliver, Sent } from './deliver.ts'
import { arrived, asDelivery, attempted, givenUp, newDelivery, outboxItem, putDelivery, waiting } from './delivery.ts'
import type { Delivery } from './delivery.ts'
import {
  admit,
  asEndpoint,
  endpointAddress,
  endpointId,
  failed,
  newEndpoint,
  probing,
  putEndpoint,
  rotationsAt,
  succeeded,
} from './endpoint.ts'
import type { Admission, Endpoint } from './endpoint.ts'
import { EndpointLoads } from './load.ts'
import { bodyText, readMessage } from './message.ts'
import type { OutgoingMessage } from './message.ts'
import { readRetryAfter, retryDelayMs } from './schedule.ts'
import { webhookHeaders, webhookId, webhookSecret } from './signature.ts'
import type { DeriveSecret } from './signature.ts'

export interface WebhookSenderOptions {
  readonly storage: Storage
  readonly deliver: Deliver
  readonly deriveSecret: DeriveSecret
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly retentionMs?: number
  /** Messages under way from this process: in all, of one client, to one endpoint. */
  readonly inFlightMax?: number
  readonly perClientMax?: number
  readonly perEndpointMax?: number
}

/** How long a delivery stays in the log after its last change. */
export const RETENTION_MS = 30 * 86_400_000

/** Six times as long as an attempt may last: the holder of a claim is done with it before another one can get it. */
const LEASE_MS = 60_000
/** A claim that is older than this is renewed before anything is sent under it. */
const FRESH_MS = 10_000
const IDLE_MS = 1_000
const IN_FLIGHT_MAX = 64
const PER_CLIENT_MAX = 32
const PER_ENDPOINT_MAX = 8

/** Each lost commit means that another one came through, and so few are under way that this is never reached. */
const COMMITS_MAX = 100

interface Found {
  readonly delivery: Stored<Delivery>
  readonly endpoint: Stored<Endpoint> | undefined
}

/** A claimed message. */
interface Claim {
  readonly lease: Lease
  readonly claimedAt: number
  readonly message: OutgoingMessage
  readonly endpointId: string
}

/**
 * Sends what lies in the outbox, at least once each: the claim of a message is settled in the same commit that writes down
 * what became of it, so a crash between the sending and that commit sends it again, under the same id.
 *
 * A message is claimed → admitted (or put back to wait, or failed) → sent → written down. Claims go over the clients one
 * after the other. There is no order between messages.
 */
export class WebhookSender implements Service {
  readonly name = 'webhooks'
  readonly #options: WebhookSenderOptions
  readonly #pump: Pump
  readonly #loads: EndpointLoads
  readonly #inHand = new Set<Promise<void>>()
  /** Messages in hand, by client. */
  readonly #clients = new Map<string, number>()
  #unwatch: (() => void) | undefined

  constructor(options: WebhookSenderOptions) {
    this.#options = options
    const { clock, log, perEndpointMax = PER_ENDPOINT_MAX } = options
    this.#loads = new EndpointLoads(perEndpointMax)
    this.#pump = new Pump({ name: this.name, clock, log, idleMs: IDLE_MS, round: () => this.#round() })
  }

  async start(): Promise<void> {
    this.#unwatch ??= this.#options.storage.watch('outbox', () => this.#pump.wake())
    await this.#pump.start()
  }

  /** What is under way is finished: an attempt ends by itself within seconds, and cutting it off would only repeat it. */
  async stop(): Promise<void> {
    this.#unwatch?.()
    this.#unwatch = undefined
    await this.#pump.stop()
    await Promise.all(this.#inHand)
  }

  async tick(): Promise<{ readonly worked: number }> {
    const result = await this.#pump.tick()
    await Promise.all(this.#inHand)
    return result
  }

  async #round(): Promise<{ worked: number; nextInMs: number | undefined }> {
    const { storage, clock, inFlightMax = IN_FLIGHT_MAX, perClientMax = PER_CLIENT_MAX } = this.#options
    const free = inFlightMax - this.#inHand.size
    if (free <= 0) return { worked: 0, nextInMs: undefined }
    const isFull = (client: string): boolean => (this.#clients.get(client) ?? 0) >= perClientMax
    // Without a client that is full, all lanes are asked at once; else those that are not.
    const lanes = [...this.#clients.keys()].some(isFull)
      ? (await storage.lanes('outbox')).map(({ lane }) => lane).filter((lane) => !isFull(lane))
      : undefined
    if (lanes?.length === 0) return { worked: 0, nextInMs: undefined }
    // All that is claimed may be of one client: no more than the fullest of those that are asked may still take.
    const most = Math.max(0, ...[...this.#clients].filter(([client]) => !isFull(client)).map(([, count]) => count))
    const limit = Math.min(free, perClientMax - most)
    const claimed = await storage.claim('outbox', {
      limit,
      leaseMs: LEASE_MS,
      ...(lanes === undefined ? {} : { lanes }),
    })
    const claimedAt = clock.now()
    for (const lease of claimed.leases) this.#take(lease, claimedAt)
    const isRoomLeft = this.#inHand.size < inFlightMax
    return { worked: claimed.leases.length, nextInMs: isRoomLeft ? claimed.nextInMs : undefined }
  }

  #take(lease: Lease, claimedAt: number): void {
    const { lane: client } = lease
    this.#clients.set(client, (this.#clients.get(client) ?? 0) + 1)
    const work = this.#handle(lease, claimedAt)
      .catch((error: unknown) => {
        // The claim stands: when its lease ends the message is claimed again.
        this.#options.log.error('a webhook message could not be handled', {
          message_id: lease.id,
          error: String(error),
        })
      })
      .finally(() => {
        this.#inHand.delete(work)
        const left = (this.#clients.get(client) ?? 1) - 1
        if (left > 0) this.#clients.set(client, left)
        else this.#clients.delete(client)
        this.#pump.wake()
      })
    this.#inHand.add(work)
  }

  async #handle(lease: Lease, claimedAt: number): Promise<void> {
    const message = readMessage(lease.payload)
    if (message === undefined) {
      this.#options.log.error('an item of the outbox is no message and is dropped', { message_id: lease.id })
      await this.#options.storage.commit({ settle: lease })
      return
    }
    const id = endpointId(message.clientId, endpointAddress(message.url))
    const claim: Claim = { lease, claimedAt, message, endpointId: id }
    const { clock } = this.#options
    const full = this.#loads.enter(id, clock.now())
    if (full !== undefined) {
      await this.#postpone(claim, full.waitMs, 'other messages are on their way to this endpoint')
      return
    }
    let durationMs: number | undefined
    try {
      durationMs = await this.#admitAndSend(claim)
    } finally {
      this.#loads.leave(id, durationMs)
    }
  }

  /** How long the sending took, if the receiver took the message. */
  async #admitAndSend(claim: Claim): Promise<number | undefined> {
    const { clock, random } = this.#options
    for (let tries = 0; tries < COMMITS_MAX; tries += 1) {
      const found = await this.#find(claim)
      const now = clock.now()
      const { messageId } = claim.message
      const { isForced } = found.delivery.value
      const admission = admit(found.endpoint?.value, { messageId, isForced, now })
      switch (admission.type) {
        case 'disabled':
          await this.#refuse(claim, admission)
          return undefined
        case 'wait':
          await this.#postpone(claim, admission.ms + random.next() * admission.spreadMs, 'the endpoint has a pause')
          return undefined
        case 'send':
          return this.#send(claim, found)
        case 'probe': {
          const begun = await this.#beginProbe(claim, found, now)
          if (begun === 'lost') return undefined
          if (begun === 'begun') return this.#send(claim, found)
        }
      }
    }
    throw new Error('The endpoint could not be written.')
  }

  /** Only one of those that wait is the probe: it says so in the record before it is sent. */
  async #beginProbe({ lease, message }: Claim, { endpoint }: Found, now: number): Promise<'begun' | 'again' | 'lost'> {
    const { storage } = this.#options
    if (endpoint === undefined) return 'again'
    const put = [putEndpoint(probing(endpoint.value, message.messageId, now), endpoint.version + 1)]
    if ((await storage.commit({ guard: lease, put })) === 'committed') return 'begun'
    const [isHeld] = await storage.renew([lease], LEASE_MS)
    return isHeld === true ? 'again' : 'lost'
  }

  async #send(claim: Claim, { endpoint }: Found): Promise<number | undefined> {
    const { storage, clock, deliver, deriveSecret } = this.#options
    const { lease, message, claimedAt } = claim
    // What a message says must be durable before it is sent.
    await storage.sync()
    if (clock.now() - claimedAt > FRESH_MS) {
      const [isHeld] = await storage.renew([lease], LEASE_MS)
      if (isHeld !== true) return undefined
    }
    const at = clock.now()
    const address = endpointAddress(message.url)
    const rotations = endpoint === undefined ? [0] : rotationsAt(endpoint.value, at)
    const secrets = rotations.map((n) => webhookSecret(deriveSecret, { clientId: message.clientId, address }, n))
    const body = bodyText(message.body)
    const signed = { id: webhookId(message.messageId), timestamp: Math.floor(wallTime(clock) / 1_000), body }
    const headers = { ...message.tracing, ...webhookHeaders(signed, secrets) }
    const sent = await deliver.send({ url: message.url, headers, body })
    const durationMs = clock.now() - at
    await this.#writeDown(claim, sent, { at, durationMs })
    // An attempt that failed, perhaps after ten seconds of silence, says nothing about how fast the next ones will be.
    return errorOf(sent) === null ? durationMs : undefined
  }

  async #writeDown(
    claim: Claim,
    sent: Sent,
    took: { readonly at: number; readonly durationMs: number },
  ): Promise<void> {
    const { random, log, clock } = this.#options
    const { message } = claim
    const error = errorOf(sent)
    const status = sent.type === 'answered' ? sent.status : null
    const chance = random.next()
    await this.#settle(claim, (found) => {
      const now = clock.now()
      const endpoint = found.endpoint?.value ?? newEndpoint(message.clientId, endpointAddress(message.url), now)
      const delivery = attempted(found.delivery.value, { ...took, status, error })
      if (error === null) return { delivery: arrived(delivery, now), endpoint: succeeded(endpoint, now) }
      if (sent.type === 'failed' && sent.isPermanent) return { delivery: givenUp(delivery, error, now) }
      const isGone = status === 410
      const retryAfterMs = readRetryAfter(sent.type === 'answered' ? sent.retryAfter : undefined, wallTime(clock))
      const after = failed(endpoint, { messageId: message.messageId, now, error, isGone, retryAfterMs, chance })
      const delayMs = after.disabled === null ? retryDelayMs(delivery.tries, { chance, retryAfterMs }) : undefined
      if (delayMs !== undefined) return { delivery: waiting(delivery, now + delayMs, error), endpoint: after, delayMs }
      const why = after.disabled === null ? 'all attempts are used up' : disabledNote(after.disabled.reason)
      log.warn('a webhook message was given up', { message_id: message.messageId, job_id: message.jobId, error, why })
      return { delivery: givenUp(delivery, `${error} Given up: ${why}.`, now), endpoint: after }
    })
  }

  async #refuse(claim: Claim, { reason }: Extract<Admission, { type: 'disabled' }>): Promise<void> {
    const now = this.#options.clock.now()
    await this.#settle(claim, ({ delivery }) => ({
      delivery: givenUp(delivery.value, `Not sent: ${disabledNote(reason)}.`, now),
    }))
  }

  async #postpone(claim: Claim, ms: number, note: string): Promise<void> {
    const delayMs = Math.ceil(ms)
    const nextAttemptAt = this.#options.clock.now() + delayMs
    await this.#settle(claim, ({ delivery }) => ({ delivery: waiting(delivery.value, nextAttemptAt, note), delayMs }))
  }

  /** Settles the claim with the records that `change` returns, in one commit. Decided again after a conflict. */
  async #settle(claim: Claim, change: (found: Found) => Change): Promise<void> {
    const { storage, log } = this.#options
    for (let tries = 0; tries < COMMITS_MAX; tries += 1) {
      const found = await this.#find(claim)
      if ((await storage.commit(this.#batch(claim, found, change(found)))) === 'committed') return
      const [isHeld] = await storage.renew([claim.lease], LEASE_MS)
      if (isHeld !== true) {
        log.warn('a webhook message was claimed by another sender meanwhile', { message_id: claim.message.messageId })
        return
      }
    }
    throw new Error('The outcome could not be written.')
  }

  #batch({ lease, message }: Claim, found: Found, { delivery, endpoint, delayMs }: Change): Batch {
    const { retentionMs = RETENTION_MS } = this.#options
    const putRecord = putDelivery(delivery, found.delivery.version + 1, retentionMs)
    return {
      settle: lease,
      put:
        endpoint === undefined ? [putRecord] : [putRecord, putEndpoint(endpoint, (found.endpoint?.version ?? 0) + 1)],
      enqueue: delayMs === undefined ? [] : [outboxItem(message, delayMs, lease.priority)],
    }
  }

  async #find({ message, endpointId: id }: Claim): Promise<Found> {
    const { storage } = this.#options
    const [delivery, endpoint] = await Promise.all([
      storage.read('delivery', message.messageId),
      storage.read('endpoint', id),
    ])
    return {
      delivery: delivery === undefined ? { value: newDelivery(message), version: 0 } : asDelivery(delivery),
      endpoint: endpoint === undefined ? undefined : asEndpoint(endpoint),
    }
  }
}

/** What a handled message leaves behind. With a delay it goes back into the outbox. */
interface Change {
  readonly delivery: Delivery
  readonly endpoint?: Endpoint | undefined
  readonly delayMs?: number
}

/** Why an attempt does not count as arrived; `null` when it does. */
function errorOf(sent: Sent): string | null {
  if (sent.type === 'failed') return sent.error
  const { status, excerpt } = sent
  if (status >= 200 && status < 300) return null
  if (status >= 300 && status < 400) {
    return `The receiver answered ${status}: redirects are not followed, give the final address.`
  }
  return `The receiver answered ${status}${excerpt === undefined ? '.' : `: ${excerpt}`}`
}

function disabledNote(reason: 'gone' | 'failing'): string {
  return reason === 'gone'
    ? 'the endpoint said that it is gone (410)'
    : 'the endpoint is disabled, as nothing has arrived there for three days'
}
