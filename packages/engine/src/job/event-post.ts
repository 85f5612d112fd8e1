import { inboxId, isKnownEvent, isSameEvent, jsonSize, listenersOf, nextFor, post, reached } from '@impresario/core'
import type {
  Batch,
  Clock,
  Inbox,
  Item,
  Job,
  Lease,
  Letter,
  Put,
  Random,
  SentEvent,
  Storage,
  Stored,
} from '@impresario/core'
import { ImpresarioError, isTopic, LIMITS, mustBePlainText, topicProblem } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import type { ScriptRegistry } from './script-registry.ts'
import type { Director } from './director.ts'
import { fingerprintOf } from './fingerprint.ts'

export interface EventPostOptions {
  readonly storage: Storage
  readonly director: Director
  readonly registry: ScriptRegistry
  readonly clock: Clock
  readonly random: Random
}

/** An event for a job, or for all jobs that wait for it by key. */
export interface EventRequest {
  readonly topic: string
  readonly payload: JsonObject
  /** The same id is the same event, however often it is sent. A new one without it. */
  readonly eventId?: string | undefined
}

/** `isNew`: it was not sent before. `job`: as the event left it. */
export interface SentToJob {
  readonly eventId: string
  readonly isNew: boolean
  readonly job: Job
  /** The version that the event made, if it was the first time. */
  readonly version: number | undefined
}

export interface Published {
  readonly eventId: string
  readonly isNew: boolean
}

type ListenLetter = Extract<Letter, { type: 'listen' }>
type SpreadLetter = Extract<Letter, { type: 'spread' }>

/** After so many others were faster, in a row, something is wrong with the storage and not with the timing. */
const CONFLICTS_MAX = 100

/**
 * Takes events from outside and brings them to jobs.
 *
 * To one job: its own rules decide, in one commit. By key: the event is put into the inbox of its client, topic and key, and a
 * letter to that inbox makes it reach those who wait, step by step, each by a letter of its own. A job that begins to wait
 * writes itself down as a listener and writes to the inbox too. Whichever of the two letters is delivered later finds what the
 * other one left, so that no event falls between; when both find it, the job takes it once.
 */
export class EventPost {
  readonly #options: EventPostOptions

  constructor(options: EventPostOptions) {
    this.#options = options
  }

  /** Resolves when the job has it, to take now or later, and it is durable. */
  async send(jobId: string, request: EventRequest): Promise<SentToJob> {
    const { storage, director, registry, clock } = this.#options
    const stored = await storage.read('job', jobId)
    if (stored === undefined) throw new ImpresarioError('JOB_NOT_FOUND', 'Job not found')
    mustBeEvent(request)
    const checked = await registry.of(stored.value)?.validateEvent?.(request.topic, request.payload)
    if (checked !== undefined && 'problems' in checked) throw refused(request.topic, checked.problems)
    const event = this.#eventOf(request, checked?.value)
    const applied = await director.apply(jobId, { type: 'eventSent', at: clock.now(), event })
    await storage.sync()
    const eventId = event.id
    if (applied.type === 'applied') return { eventId, isNew: true, job: applied.job, version: applied.version }
    const job = applied.type === 'ignored' ? applied.job : undefined
    if (job !== undefined && isSameEvent(job, event)) return { eventId, isNew: false, job, version: undefined }
    if (job !== undefined && isKnownEvent(job, eventId)) throw reused(eventId)
    throw applied.type === 'lost'
      ? new ImpresarioError('CONFLICT', 'The job was changed meanwhile.')
      : refusalOf(applied.reason, event)
  }

  /**
   * Resolves when the event is durable, with what is written beside it. It reaches those who wait soon after, and for a day
   * those who begin to.
   */
  async publish(
    clientId: string,
    key: string,
    request: EventRequest,
    beside: Pick<Batch, 'put' | 'enqueue'> = {},
  ): Promise<Published> {
    const { storage } = this.#options
    mustBeEvent(request)
    mustBeKey(key)
    const event = { ...this.#eventOf(request, await this.#checkedForAll(request)), key }
    const id = inboxId(clientId, event.topic, key)
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const stored = await storage.read('inbox', id)
      const posted = post(stored?.value, event)
      if (posted.type === 'full') throw refusalOf('too_many_events', event)
      if (posted.type === 'known') {
        if (fingerprintOf(posted.event.payload) !== fingerprintOf(event.payload)) throw reused(event.id)
        await storage.sync()
        return { eventId: event.id, isNew: false }
      }
      const letter = letterTo(id, `${id}.spread.${event.id}`, clientId, { type: 'spread', eventId: event.id })
      const put = [inboxPut(id, stored, posted.inbox), ...(beside.put ?? [])]
      const outcome = await storage.commit({ put, enqueue: [letter, ...(beside.enqueue ?? [])] })
      if (outcome === 'conflict') continue
      await storage.sync()
      return { eventId: event.id, isNew: true }
    }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', `The event could not be written after ${CONFLICTS_MAX} conflicts.`)
  }

  /** Delivers a letter to an inbox. */
  async deliver(inbox: string, letter: ListenLetter | SpreadLetter, lease: Lease): Promise<void> {
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const outcome = await (letter.type === 'listen'
        ? this.#listen(inbox, letter, lease)
        : this.#spread(inbox, letter, lease))
      if (outcome === 'committed') return
      // Lost to another instance, or the inbox was written meanwhile: only the second is worth another try.
      const [item] = await this.#options.storage.peek('mail', [lease.id])
      if (item?.lease?.token !== lease.token) return
    }
  }

  /** What came before the job began to wait. */
  async #listen(inbox: string, letter: ListenLetter, lease: Lease): Promise<'committed' | 'conflict'> {
    const { storage, clock } = this.#options
    const { jobId, visit, createdAt, known } = letter
    const stored = await storage.read('inbox', inbox)
    const event = nextFor(stored?.value, { at: clock.now(), createdAt, known })
    if (stored === undefined || event === undefined) return storage.commit({ settle: lease })
    return storage.commit({
      settle: lease,
      put: [inboxPut(inbox, stored, reached(stored.value, event.id))],
      enqueue: [delivery({ jobId, visit }, event, lease.lane)],
    })
  }

  /** Those who wait when the event comes, some at a time. */
  async #spread(inbox: string, letter: SpreadLetter, lease: Lease): Promise<'committed' | 'conflict'> {
    const { storage } = this.#options
    const stored = await storage.read('inbox', inbox)
    const event = stored?.value.events.find(({ id }) => id === letter.eventId)
    if (stored === undefined || event === undefined) return storage.commit({ settle: lease })
    const range = listenersOf(inbox)
    const page = await storage.list('listener', {
      ...range,
      before: letter.before ?? range.before,
      limit: LIMITS.eventReachStep,
    })
    const before = page.next ?? (page.length === LIMITS.eventReachStep ? page.at(-1)?.id : undefined)
    const enqueue = page.map(({ value }) => delivery(value, event, lease.lane))
    if (before !== undefined) {
      const next = { type: 'spread', eventId: event.id, before } as const
      enqueue.push(letterTo(inbox, `${inbox}.spread.${event.id}.${before.length}.${before}`, lease.lane, next))
    }
    const isFirst = page.length > 0 && event.isReached !== true
    const put = isFirst ? [inboxPut(inbox, stored, reached(stored.value, event.id))] : []
    return storage.commit({ settle: lease, put, enqueue })
  }

  #eventOf({ topic, payload, eventId }: EventRequest, checked: JsonObject | undefined): SentEvent {
    const { clock, random } = this.#options
    return { id: eventId ?? random.id(), topic, payload: checked ?? payload, at: clock.now() }
  }

  /**
   * Which jobs wait is not known at the door. Where blueprints declare the topic, the payload must fit one of them; each job's
   * own blueprint is asked again when the event reaches the job.
   */
  async #checkedForAll({ topic, payload }: EventRequest): Promise<undefined> {
    const problems: string[] = []
    for (const blueprint of this.#options.registry.declaring(topic)) {
      const checked = await blueprint.validateEvent?.(topic, payload)
      if (checked === undefined || 'value' in checked) return
      problems.push(...checked.problems.map((problem) => `"${blueprint.name}": ${problem}`))
    }
    if (problems.length > 0) throw refused(topic, problems)
  }
}

function inboxPut(id: string, stored: Stored<Inbox> | undefined, value: Inbox): Put {
  return { kind: 'inbox', id, value, version: (stored?.version ?? 0) + 1, expiresMs: LIMITS.keptEventMs }
}

function delivery({ jobId, visit }: { jobId: string; visit: number }, event: SentEvent, lane: string): Item {
  const { id, topic, payload, at, key } = event
  const sent: SentEvent = { id, topic, payload, at, key }
  return letterTo(jobId, `${jobId}.event.${id}`, lane, { type: 'eventSent', at, visit, event: sent })
}

function letterTo(to: string, id: string, lane: string, letter: Letter): Item {
  const payload = JSON.parse(JSON.stringify({ to, letter })) as JsonObject
  return { queue: 'mail', id, lane, priority: 0, delayMs: 0, payload }
}

function mustBeEvent({ topic, payload, eventId }: EventRequest): void {
  if (!isTopic(topic)) throw new ImpresarioError('INVALID_REQUEST', topicProblem(topic))
  if (eventId !== undefined) mustBeText('event_id', eventId, LIMITS.idempotencyKeyCharsMax)
  const size = jsonSize(payload)
  if (size <= LIMITS.eventBytesMax) return
  throw new ImpresarioError(
    'LIMIT_EXCEEDED',
    `The payload has ${size} bytes; at most ${LIMITS.eventBytesMax} are allowed. Send a reference to a file instead.`,
  )
}

function mustBeKey(key: string): void {
  mustBeText('key', key, LIMITS.identifierCharsMax)
}

function mustBeText(name: string, text: string, charsMax: number): void {
  mustBePlainText(name, text)
  if (text !== '' && text.length <= charsMax) return
  throw new ImpresarioError('INVALID_REQUEST', `"${name}" must have from 1 to ${charsMax} characters.`)
}

function refused(topic: string, problems: readonly string[]): ImpresarioError {
  return new ImpresarioError('INPUT_REFUSED', `The payload does not fit the event "${topic}": ${problems.join('; ')}`)
}

function reused(eventId: string): ImpresarioError {
  return new ImpresarioError(
    'IDEMPOTENCY_KEY_REUSED',
    `The event id "${eventId}" was used for another event before. Use a new id for a new event.`,
  )
}

function refusalOf(reason: string, { topic }: SentEvent): ImpresarioError {
  switch (reason) {
    case 'too_many_events': {
      const kept = `${LIMITS.keptEventsMax} events, or ${LIMITS.keptEventsBytesMax} bytes of them`
      return new ImpresarioError(
        'LIMIT_EXCEEDED',
        `"${topic}" is not kept: ${kept}, wait already. Wait until some are taken.`,
      )
    }
    case 'too_large':
      return new ImpresarioError('LIMIT_EXCEEDED', 'The state history of the job cannot hold the payload. Send less.')
    default:
      return new ImpresarioError('NOT_WAITING', 'The job has ended: it takes no more events.')
  }
}
