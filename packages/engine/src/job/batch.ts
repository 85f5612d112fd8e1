import { inboxId, isEnded, listenerId, outboxMessage, pendingDelivery, taskId, timerId, turnId } from '@impresario/core'
import type {
  Batch,
  BornClaim,
  Decision,
  Effect,
  Item,
  Job,
  LeaseRef,
  Letter,
  OutboxMessage,
  Put,
  Queue,
} from '@impresario/core'
import type { Json, JsonObject } from '@impresario/protocol'
import { searchText } from './search-text.ts'

type TaskEffect = Extract<Effect, { type: 'task' }>

/** Where a task goes: straight to a worker's own queue, or to those who wait for one that fits. */
export interface Placement {
  readonly lane: string
  readonly fallback?: NonNullable<Item['fallback']>
  /** A worker waits for it, and has it from its first moment. */
  readonly claimed?: BornClaim
}
export type PlacementOf = (task: TaskEffect, job: Job) => Placement

/** How long records are kept that nothing needs any more. Without a span: for ever. */
export interface Retention {
  /**
   * Ended jobs, from their end. What a parent or a webhook gets of them is in the mail and in the outbox by then, so
   * nothing else refers to the record. Quarantined jobs wait for a person and stay.
   */
  readonly endedJobMs?: number | undefined
  /** Idempotency keys, from their first use; a day unless said otherwise. A key may outlive its job's record, or end before. */
  readonly keyMs?: number | undefined
}

interface BatchSettings {
  readonly place: PlacementOf
  readonly retention?: Retention | undefined
}

/** What a task's item carries. The rest is in the job's record: one place, no copies. */
export interface TaskPayload extends JsonObject {
  readonly jobId: string
  readonly visit: number
  readonly branch: string
  readonly attempt: number
  readonly type: string
}

interface TurnPayload extends JsonObject {
  readonly visit: number
}

/** Turns a decision into the one batch that makes it true. */
export function batchOf(
  decision: Decision,
  version: number,
  settle: LeaseRef | undefined,
  { place, retention }: BatchSettings,
): Batch & Required<Pick<Batch, 'put'>> {
  const { job } = decision
  const enqueue: Item[] = []
  const listening = decision.effects.some(isAboutEvents) ? listeningOf(decision) : NO_LISTENING
  const remove: { queue: Queue; id: string }[] = []
  for (const effect of decision.effects) addEffect(effect, job, place, enqueue, remove)
  const expiresMs = isEnded(job) ? retention?.endedJobMs : undefined
  const put: Put = {
    kind: 'job',
    id: job.id,
    value: job,
    version,
    facets: { owner: job.client.id, status: job.status, name: job.blueprint, text: searchText(job) },
    ...(expiresMs === undefined ? {} : { expiresMs }),
  }
  // What is settled is gone with that.
  const others =
    settle === undefined ? remove : remove.filter(({ queue, id }) => queue !== settle.queue || id !== settle.id)
  const puts = listening.put.length === 0 ? [put] : [put, ...listening.put]
  const base =
    settle === undefined ? { put: puts, enqueue, remove: others } : { put: puts, enqueue, remove: others, settle }
  return listening.drop.length === 0 ? base : { ...base, drop: listening.drop }
}

function isAboutEvents({ type }: Effect): boolean {
  return type === 'listen' || type === 'unlisten'
}

const NO_LISTENING: ReturnType<typeof listeningOf> = { put: [], drop: [] }

function addEffect(
  effect: Effect,
  job: Job,
  place: PlacementOf,
  enqueue: Item[],
  remove: { queue: Queue; id: string }[],
): void {
  switch (effect.type) {
    case 'turn': {
      const payload: TurnPayload = { visit: effect.visit }
      enqueue.push(item(job, 'turns', turnId(job.id), effect.delayMs, payload))
      break
    }
    case 'task':
      enqueue.push(taskItem(effect, job, place))
      break
    case 'dropTask':
      remove.push({ queue: 'tasks', id: taskId(job.id, effect.visit, effect.branch) })
      break
    case 'timer': {
      const payload = { jobId: job.id, timer: effect.timer, visit: effect.visit }
      enqueue.push(item(job, 'timers', timerId(job.id, effect.timer), effect.afterMs, payload))
      break
    }
    case 'dropTimer':
      remove.push({ queue: 'timers', id: timerId(job.id, effect.timer) })
      break
    case 'listen': {
      const { visit, topic, key } = effect
      const inbox = inboxId(job.client.id, topic, key)
      const known = (job.events?.known ?? []).map(({ id }) => id)
      const letter = { type: 'listen', jobId: job.id, visit, createdAt: job.createdAt, known } as const
      enqueue.push(item(job, 'mail', `${job.id}.listen.${visit}`, 0, letterPayload(inbox, letter)))
      break
    }
    case 'unlisten':
      remove.push({ queue: 'mail', id: `${job.id}.listen.${effect.visit}` })
      break
    case 'mail':
      enqueue.push(item(job, 'mail', effect.letterId, 0, letterPayload(effect.to, effect.letter)))
      break
    case 'webhook': {
      const message = outboxMessage(job, effect)
      if (message !== undefined) enqueue.push(item(job, 'outbox', message.messageId, 0, message))
      break
    }
  }
}

/** Who can be reached by key from now on, and who no longer. */
function listeningOf({ job, effects }: Decision): {
  readonly put: readonly Put[]
  readonly drop: NonNullable<Batch['drop']>
} {
  const put: Put[] = []
  const drop: { kind: 'listener'; id: string }[] = []
  for (const effect of effects) {
    if (effect.type !== 'listen' && effect.type !== 'unlisten') continue
    const value = { jobId: job.id, visit: effect.visit }
    const id = listenerId(inboxId(job.client.id, effect.topic, effect.key), value)
    if (effect.type === 'listen') put.push({ kind: 'listener', id, value, version: 1 })
    else drop.push({ kind: 'listener', id })
  }
  return { put, drop }
}

/**
 * What the log of deliveries says of the messages of a batch until the sender gets to them. A job with a name that was used
 * before may find such records there; then it goes without.
 */
export function deliveryNotes({ enqueue = [] }: Batch): readonly Put[] {
  if (!enqueue.some(({ queue }) => queue === 'outbox')) return NO_NOTES
  return enqueue.filter(({ queue }) => queue === 'outbox').map(({ payload }) => noteOf(payload as OutboxMessage))
}

const NO_NOTES: readonly Put[] = []

function noteOf(message: OutboxMessage): Put {
  const { messageId, clientId, event, jobId } = message
  return {
    kind: 'delivery',
    id: messageId,
    value: pendingDelivery(message),
    version: 1,
    facets: { owner: clientId, status: 'pending', name: event, text: jobId },
  }
}

function item(job: Job, queue: Queue, id: string, delayMs: number, payload: Json): Item {
  return { queue, id, lane: job.client.id, priority: job.priority, delayMs, payload }
}

function taskItem(effect: TaskEffect, job: Job, place: PlacementOf): Item {
  const { call } = effect
  const placement = place(effect, job)
  const payload: TaskPayload = {
    jobId: job.id,
    visit: effect.visit,
    branch: effect.branch,
    attempt: effect.attempt,
    type: call.type,
  }
  return {
    queue: 'tasks',
    id: taskId(job.id, effect.visit, effect.branch),
    priority: call.priority,
    delayMs: effect.delayMs,
    payload,
    ...placement,
    ...(call.dispatchTimeoutMs === undefined ? {} : { unclaimedMs: call.dispatchTimeoutMs }),
    ...(effect.resultMs === undefined ? {} : { settleMs: effect.resultMs }),
    ...(call.runTimeoutMs === undefined ? {} : { runMs: call.runTimeoutMs }),
  }
}

/** A letter is plain data by its type; JSON has no `undefined`, so absent fields are simply left out. */
function letterPayload(to: string, letter: Letter): Json {
  return JSON.parse(JSON.stringify({ to, letter })) as Json
}
