import { jsonObjectCopy, jsonSize, nextPage, storedCopy, wallTime } from '@impresario/core'
import type { Batch, Clock, Put, Random, Storage } from '@impresario/core'
import { KeyBook } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import type { Data, JsonObject } from '@impresario/protocol'
import { checkTopic } from '../trigger/topic.ts'
import type { Actor } from './audit.ts'
import type { Page } from './automations.ts'

/** Something that was published. */
export interface PublishedEvent {
  readonly id: string
  readonly topic: string
  readonly payload: Data
  readonly owner: string
  /** `all`: automations of every owner hear it. */
  readonly audience: 'own' | 'all'
  readonly at: number
  /** The source of webhooks that it came from. */
  readonly source?: string
  /** What automations made of it; there once all of them have heard it. */
  readonly runs?: readonly EventRun[]
}

export interface EventRun {
  readonly automationId: string
  readonly runId: string | undefined
  readonly outcome: 'started' | 'waiting' | 'skipped'
}

export interface Publication {
  readonly topic: string
  readonly payload: Data
  readonly audience?: 'own' | 'all' | undefined
  readonly idempotencyKey?: string | undefined
  /** The source of webhooks that it came from. */
  readonly source?: string | undefined
}

export interface EventQuery {
  readonly owner?: string | undefined
  readonly topic?: string | undefined
  readonly before?: string | undefined
  readonly limit: number
}

export interface EventLogOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
}

/** Events are kept for so long. */
const EVENT_RETENTION_MS = 7 * 86_400_000
const PAYLOAD_BYTES_MAX = 65_536

/** Takes events. An event is durable before it is acknowledged, and each automation that it fits runs once for it. */
export class EventLog {
  readonly #options: EventLogOptions

  constructor(options: EventLogOptions) {
    this.#options = options
  }

  /** With a key that was used before, gives back the event of that time. */
  async publish(publication: Publication, actor: Actor): Promise<PublishedEvent> {
    const { topic, payload, audience = 'own', idempotencyKey, source } = publication
    const { storage, random, clock } = this.#options
    checkTopic(topic)
    if (audience === 'all' && !actor.isAdmin) {
      throw new ImpresarioError('FORBIDDEN', 'Only admins publish to automations of others. Leave "audience" out.')
    }
    const said = jsonObjectCopy({ topic, payload, audience }, 'The event')
    const bytes = jsonSize(said)
    if (bytes > PAYLOAD_BYTES_MAX) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `The event has ${bytes} bytes; ${PAYLOAD_BYTES_MAX} are allowed.`)
    }
    const keys = new KeyBook(this.#options)
    // A sender of webhooks may add something to a delivery that it repeats: it is the same one by its id.
    const words = source === undefined ? { event: said } : { source }
    const use = idempotencyKey === undefined ? undefined : keys.use({ clientId: actor.id, key: idempotencyKey }, words)
    const id = random.id(use?.id)
    const at = wallTime(clock)
    const event: PublishedEvent = {
      id,
      topic,
      payload,
      owner: actor.id,
      audience,
      at,
      ...(source === undefined ? {} : { source }),
    }
    const batch: Batch = {
      put: [putEvent(event, 1), ...(use === undefined ? [] : [keys.put(use, id)])],
      enqueue: [{ queue: 'events', id, lane: actor.id, priority: 0, delayMs: 0, payload: null }],
    }
    if ((await storage.commit(batch)) === 'conflict') return this.#known(use && (await keys.find(use)))
    await storage.sync()
    return event
  }

  async #known(id: string | undefined): Promise<PublishedEvent> {
    const { storage } = this.#options
    const stored = id === undefined ? undefined : await storage.read('event', id)
    if (stored === undefined) throw new ImpresarioError('CONFLICT', 'The event could not be written. Send it again.')
    await storage.sync()
    return asEvent(stored.value)
  }

  async read(id: string, actor: Actor): Promise<PublishedEvent> {
    const stored = await this.#options.storage.read('event', id)
    const event = stored === undefined ? undefined : asEvent(stored.value)
    if (event === undefined || (!actor.isAdmin && event.owner !== actor.id)) {
      throw new ImpresarioError('NOT_FOUND', 'Event not found')
    }
    return event
  }

  /** Newest first. */
  async list({ owner, topic, before, limit }: EventQuery): Promise<Page<PublishedEvent>> {
    const found = await this.#options.storage.list('event', {
      limit,
      bytesMax: PAGE_BYTES,
      ...(owner === undefined ? {} : { owner }),
      ...(topic === undefined ? {} : { name: topic }),
      ...(before === undefined ? {} : { before }),
    })
    return { items: found.map(({ value }) => asEvent(value)), next: nextPage(found, limit) }
  }
}

const PAGE_BYTES = 1_048_576

export function putEvent(event: PublishedEvent, version: number): Put {
  const { id, owner, topic, runs } = event
  const facets = { owner, name: topic, status: runs === undefined ? 'new' : 'matched' }
  return {
    kind: 'event',
    id,
    value: jsonObjectCopy(event, 'The event'),
    version,
    facets,
    expiresMs: EVENT_RETENTION_MS,
  }
}

/** Boundary: only `putEvent` has written it. */
export function asEvent(value: JsonObject): PublishedEvent {
  return storedCopy(value) as unknown as PublishedEvent
}
