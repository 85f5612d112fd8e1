import { isoInstant, jsonObjectCopy, jsonSize, nextPage, sha256, storedCopy, wallTime } from '@impresario/core'
import type { Batch, Clock, Put, Random, Storage } from '@impresario/core'
import { KeyBook } from '@impresario/engine'
import type { Engine, KeyUse } from '@impresario/engine'
import { ImpresarioError, isJsonObject, LIMITS } from '@impresario/protocol'
import type { Data, Json, JsonObject } from '@impresario/protocol'
import { checkTopic } from '../trigger/topic.ts'
import { authorOf, putAudit } from './audit.ts'
import type { Actor } from './audit.ts'
import type { Page } from './automations.ts'
import { firstIdAt } from './record.ts'
import { Room } from './room.ts'

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
  /** Runs wait that read it from here when they begin. */
  readonly isWaitedFor?: boolean
  /** Runs have waited for so long that it is kept longer than others. */
  readonly keptUntil?: number
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
  /** Jobs of the publisher that wait for the topic with this key get it too. */
  readonly key?: string | undefined
}

export interface Publishing extends PublishedEvent {
  /** It was not published before. */
  readonly isNew: boolean
}

export interface EventQuery {
  readonly owner?: string | undefined
  readonly topic?: string | undefined
  readonly before?: string | undefined
  readonly limit: number
}

export interface EventRemoval {
  readonly owner: string | undefined
  readonly before: number
  readonly limit: number
}

export interface EventLogOptions {
  readonly storage: Storage
  readonly engine: Engine
  readonly clock: Clock
  readonly random: Random
  /** What the events of one owner may have together. */
  readonly eventsBytesMax?: number | undefined
}

/** Events are kept for so long. */
const EVENT_RETENTION_MS = 7 * 86_400_000
const PAYLOAD_BYTES_MAX = 65_536
const EVENT_WORDS = {
  many: 'events',
  fix: 'Send less, and put large data into files; or publish fewer events. They are kept for 7 days. EVENTS_BYTES_MAX sets the limit.',
}

/**
 * Takes events, for automations and for jobs. An event is durable before it is acknowledged. Each automation that it fits runs
 * once for it; with a key it goes to the inbox of the jobs that wait for that key too, in the same commit.
 */
export class EventLog {
  readonly #options: EventLogOptions
  readonly #keys: KeyBook
  readonly #room: Room

  constructor(options: EventLogOptions) {
    this.#options = options
    const { storage, clock, eventsBytesMax: bytesMax = LIMITS.eventsBytesMax } = options
    this.#room = new Room({ storage, clock, kind: 'event', bytesMax, words: EVENT_WORDS })
    this.#keys = new KeyBook(options)
  }

  /** With an idempotency key that was used before, gives back the event of that time. */
  async publish(publication: Publication, actor: Actor): Promise<Publishing> {
    const { storage, random, clock } = this.#options
    const { topic, audience = 'own', source, key } = publication
    checkTopic(topic)
    if (audience === 'all' && !actor.isAdmin) {
      throw new ImpresarioError('FORBIDDEN', 'Only admins publish to automations of others. Leave "audience" out.')
    }
    const said = jsonObjectCopy({ topic, payload: publication.payload, audience }, 'The event')
    const bytes = jsonSize(said)
    if (bytes > PAYLOAD_BYTES_MAX) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `The event has ${bytes} bytes; ${PAYLOAD_BYTES_MAX} are allowed.`)
    }
    const use = this.#useOf(publication, said, actor)
    if (!(await this.#hasRoom(actor.id, bytes, use))) return this.#known(use)
    const id = random.id(use?.id)
    const base = { id, topic, payload: publication.payload, owner: actor.id, audience, at: wallTime(clock) }
    const event: PublishedEvent = { ...base, ...(source === undefined ? {} : { source }) }
    const batch: Batch = {
      put: [putEvent(event, 1), ...(use === undefined ? [] : [this.#keys.put(use, id)])],
      enqueue: [{ queue: 'events', id, lane: actor.id, priority: 0, delayMs: 0, payload: null }],
    }
    if (key !== undefined) {
      return this.#toJobs({ ...publication, key, payload: said['payload'] ?? null }, event, use, batch)
    }
    if ((await storage.commit(batch)) === 'conflict') return this.#known(use)
    await storage.sync()
    return { ...event, isNew: true }
  }

  /** The inbox of the key knows an event by its id, for a day; the key of the log knows it as long as all keys are. */
  async #toJobs(
    { key, payload, idempotencyKey }: Publication & { readonly key: string; readonly payload: Json },
    event: PublishedEvent,
    use: KeyUse | undefined,
    batch: Batch,
  ): Promise<Publishing> {
    if (!isJsonObject(payload)) {
      throw new ImpresarioError('INPUT_REFUSED', 'The payload of an event with a key must be an object.')
    }
    if (use !== undefined && (await this.#keys.find(use)) !== undefined) return this.#known(use)
    const request = { topic: event.topic, payload, eventId: idempotencyKey ?? event.id }
    const { isNew } = await this.#options.engine.publishEvent(event.owner, key, request, batch)
    return isNew ? { ...event, isNew } : this.#known(use)
  }

  /** Throws if there is none. Whoever repeats an event gets it, however many there are. */
  async #hasRoom(owner: string, bytes: number, use: KeyUse | undefined): Promise<boolean> {
    try {
      await this.#room.take(owner, bytes)
      return true
    } catch (error) {
      if (use !== undefined && (await this.#keys.find(use)) !== undefined) return false
      throw error
    }
  }

  #useOf({ idempotencyKey, source, topic, key }: Publication, said: JsonObject, actor: Actor): KeyUse | undefined {
    if (idempotencyKey === undefined) return undefined
    // The ids of events that jobs wait for are told apart by topic and key.
    const name = key === undefined ? idempotencyKey : `event ${sha256(JSON.stringify([topic, key, idempotencyKey]))}`
    // A sender of webhooks may add something to a delivery that it repeats: it is the same one by its id.
    const words = source === undefined ? { event: said } : { source }
    return this.#keys.use({ clientId: actor.id, key: name }, words)
  }

  async #known(use: KeyUse | undefined): Promise<Publishing> {
    const { storage } = this.#options
    const id = use === undefined ? undefined : await this.#keys.find(use)
    const stored = id === undefined ? undefined : await storage.read('event', id)
    if (stored === undefined) throw new ImpresarioError('CONFLICT', 'The event could not be written. Send it again.')
    await storage.sync()
    return { ...asEvent(stored.value), isNew: false }
  }

  async read(id: string, actor: Actor): Promise<PublishedEvent> {
    const stored = await this.#options.storage.read('event', id)
    const event = stored === undefined ? undefined : asEvent(stored.value)
    if (event === undefined || (!actor.isAdmin && event.owner !== actor.id)) {
      throw new ImpresarioError('NOT_FOUND', 'Event not found')
    }
    return event
  }

  /**
   * Removes events that are older than `before`, in milliseconds since 1970, and that all automations have heard. Those that
   * runs have waited with stay until they expire. Gives how many there were.
   */
  async remove({ owner, before, limit }: EventRemoval, actor: Actor): Promise<number> {
    const { storage, random, clock } = this.#options
    const of = owner === undefined ? {} : { owner }
    let removed = 0
    while (removed < limit) {
      const page = { limit: Math.min(REMOVED_AT_ONCE, limit - removed), bytesMax: PAGE_BYTES }
      const found = await storage.list('event', { ...of, status: 'matched', before: firstIdAt(before), ...page })
      if (found.length === 0) break
      const entry = { id: random.id(), at: wallTime(clock), ...authorOf(actor), owner: owner ?? actor.id }
      const details = { count: found.length, before: isoInstant(before) }
      const put = [putAudit({ ...entry, action: 'events.removed', subject: actor.id, details })]
      await storage.commit({ put, drop: found.map(({ id }) => ({ kind: 'event', id }) as const) })
      removed += found.length
    }
    await storage.sync()
    return removed
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
const REMOVED_AT_ONCE = 100

export function putEvent(event: PublishedEvent, version: number, expiresMs = EVENT_RETENTION_MS): Put {
  const { id, owner, topic, runs, isWaitedFor } = event
  const heard = isWaitedFor === true ? 'waited' : 'matched'
  const facets = { owner, name: topic, status: runs === undefined ? 'new' : heard }
  return { kind: 'event', id, value: jsonObjectCopy(event, 'The event'), version, facets, expiresMs }
}

/** The event is there until then at least. */
export function keptUntil(event: PublishedEvent): number {
  return event.keptUntil ?? event.at + EVENT_RETENTION_MS
}

/** Boundary: only `putEvent` has written it. */
export function asEvent(value: JsonObject): PublishedEvent {
  return storedCopy(value) as unknown as PublishedEvent
}
