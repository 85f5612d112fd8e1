import { jsonObjectCopy, jsonSize, storedCopy } from '@impresario/core'
import type { Batch, JobRequest, Lease, Put, Storage } from '@impresario/core'
import type { Data, DataObject, JsonObject } from '@impresario/protocol'
import type { RunProgress } from '../run/progress.ts'
import { seenEvent } from './event-listeners.ts'
import { asEvent, keptUntil, putEvent } from './event-log.ts'
import type { RunTrigger } from './run-start.ts'

/**
 * A run that waits for its place, as it stands in the queue. It is written again at each look, and one event may set off
 * hundreds of them: so a large event stays in its own record, which all of them share and which their looks keep alive.
 */
export interface WaitingRun {
  readonly kind: 'waiting'
  readonly automationId: string
  readonly runId: string
  readonly gate: string
  readonly trigger: RunTrigger
  /** Absent where it is the event that the trigger names. */
  readonly event?: Data
  /** The record of that event is there until then at least. */
  readonly eventUntil?: number
  readonly params: DataObject
  readonly begins?: RunProgress
  readonly tracing?: JobRequest['tracing']
  /** When it began to wait. Items of older versions do not say. */
  readonly since?: number
}

/** An event beyond this size is not repeated in the runs that wait with it. */
const EVENT_BYTES = 2_048
/** The first in a line looks so often for its place; the end of a run before it wakes it at once. */
const LOOK_MS = 2_000
/** After a crash nobody may wake it. It comes at most this much later. */
const FIRST_MS_MAX = 60_000
/** Those behind it are woken when they become the first. */
const LATER_MS_MAX = 300_000
/** What has waited for long may wait an eighth longer. */
const PATIENCE = 8
const DAY_MS = 86_400_000
/** No server may look for this long, and yet no run loses its event. */
const EVENT_MARGIN_MS = 6 * DAY_MS
const EVENT_KEPT_MS = 30 * DAY_MS
const CONFLICTS_MAX = 5

export function waitItemId(runId: string): string {
  return `${runId}.wait`
}

/** Boundary: only the launcher and `putBack` have written it. */
export function asWaitingRun(payload: JsonObject): WaitingRun {
  return storedCopy(payload) as unknown as WaitingRun
}

/** Whether runs that wait with this event leave it in its record. */
export function isApart(event: Data): boolean {
  return jsonSize(jsonObjectCopy({ event }, 'The event')) > EVENT_BYTES
}

/** How long after `waitedMs` in this place of its line a run looks again. */
export function untilLookMs(place: number, waitedMs: number): number {
  const mostMs = place === 0 ? FIRST_MS_MAX : LATER_MS_MAX
  return Math.min(mostMs, Math.max(LOOK_MS * 2 ** Math.min(place, 10), Math.floor(waitedMs / PATIENCE)))
}

/** What the run reads as `event`; `undefined` where its record is gone. */
export async function eventOfWaiting(storage: Storage, { event, trigger }: WaitingRun): Promise<Data | undefined> {
  if (event !== undefined) return event
  const stored = await storage.read('event', trigger.eventId ?? '')
  return stored === undefined ? undefined : seenEvent(asEvent(stored.value))
}

/** Makes an item due that waits for a look from time to time. False while somebody has it in hand. */
export async function callItem(storage: Storage, itemId: string): Promise<boolean> {
  const [item] = await storage.peek('firings', [itemId])
  if (item?.lease !== undefined) return false
  if (item === undefined || item.dueInMs === 0) return true
  const { queue, id, lane, priority, payload } = item
  await storage.commit({ enqueue: [{ queue, id, lane, priority, payload, delayMs: 0 }] })
  return true
}

/** The run goes on waiting. Once a day at most this also keeps its event. */
export async function putBack(
  storage: Storage,
  lease: Lease,
  { waiting, place, now }: { readonly waiting: WaitingRun; readonly place: number; readonly now: number },
): Promise<void> {
  const { queue, id, lane, priority } = lease
  const since = waiting.since ?? now
  for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
    const { put, ...kept } = await eventKept(storage, waiting, now)
    const payload = jsonObjectCopy({ ...waiting, ...kept, since }, 'The run that waits')
    const item = { queue, id, lane, priority, delayMs: untilLookMs(place, now - since), payload }
    const batch: Batch = { settle: lease, enqueue: [item], ...(put === undefined ? {} : { put: [put] }) }
    if ((await storage.commit(batch)) === 'committed' || put === undefined) return
  }
}

async function eventKept(
  storage: Storage,
  { eventUntil, trigger }: WaitingRun,
  now: number,
): Promise<{ readonly eventUntil?: number; readonly put?: Put }> {
  if (eventUntil === undefined || eventUntil - now >= EVENT_MARGIN_MS) return {}
  const stored = await storage.read('event', trigger.eventId ?? '')
  if (stored === undefined) return {}
  const event = asEvent(stored.value)
  // Another run that waits with it may have kept it.
  const until = keptUntil(event)
  if (until - now >= EVENT_MARGIN_MS) return { eventUntil: until }
  const later = now + EVENT_KEPT_MS
  const record = { ...event, isWaitedFor: true, keptUntil: later }
  return { eventUntil: later, put: putEvent(record, stored.version + 1, EVENT_KEPT_MS) }
}
