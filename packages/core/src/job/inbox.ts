import { LIMITS } from '@impresario/protocol'
import { jsonSize } from '../blueprint/json-copy.ts'
import { sha256 } from '../text/sha256.ts'
import type { SentEvent } from './job.ts'

/** An event that was sent by key, and whether any job has had it. */
export interface InboxEvent extends SentEvent {
  readonly isReached?: boolean
}

/** What was sent lately under one topic and key of one client, oldest first. */
export interface Inbox {
  readonly events: readonly InboxEvent[]
}

/** A job that waits for an event by its key. */
export interface Listener {
  readonly jobId: string
  readonly visit: number
}

/** Names the inbox of a client, a topic and a key. No two clients share one. */
export function inboxId(clientId: string, topic: string, key: string): string {
  return sha256(JSON.stringify([clientId, topic, key])).slice(0, 32)
}

/** All listeners of an inbox sort between `/` and `0` behind its id. */
export function listenerId(inbox: string, { jobId, visit }: Listener): string {
  return `${inbox}/${jobId}.${visit}`
}

export function listenersOf(inbox: string): { readonly from: string; readonly before: string } {
  return { from: `${inbox}/`, before: `${inbox}0` }
}

export type Posted =
  | { readonly type: 'added'; readonly inbox: Inbox }
  | { readonly type: 'known'; readonly event: InboxEvent }
  | { readonly type: 'full' }

/** Puts an event into an inbox. Those that some job has had make room; those that none has had are never dropped for others. */
export function post(inbox: Inbox | undefined, event: SentEvent): Posted {
  const fresh = freshIn(inbox, event.at)
  const known = fresh.find(({ id }) => id === event.id)
  if (known !== undefined) return { type: 'known', event: known }
  const events: InboxEvent[] = [...fresh, event]
  while (isTooMuch(events)) {
    const oldest = events.findIndex(({ isReached }) => isReached === true)
    if (oldest === -1) return { type: 'full' }
    events.splice(oldest, 1)
  }
  return { type: 'added', inbox: { events } }
}

function isTooMuch(events: readonly InboxEvent[]): boolean {
  if (events.length > LIMITS.keptEventsMax) return true
  return jsonSize(events.map(({ payload }) => payload)) > LIMITS.inboxBytesMax
}

function freshIn(inbox: Inbox | undefined, at: number): readonly InboxEvent[] {
  return (inbox?.events ?? []).filter((event) => event.at > at - LIMITS.keptEventMs)
}

/**
 * The oldest event for a job that begins to wait: one that no job has had, or that came when this job was there already. So
 * a late job misses nothing, and a new one does not get what was meant for those before it.
 */
export function nextFor(
  inbox: Inbox | undefined,
  wait: { readonly at: number; readonly createdAt: number; readonly known: readonly string[] },
): InboxEvent | undefined {
  return freshIn(inbox, wait.at).find(
    ({ id, at, isReached }) => !wait.known.includes(id) && (isReached !== true || at >= wait.createdAt),
  )
}

/** The same inbox once a job has been sent the event. */
export function reached({ events }: Inbox, eventId: string): Inbox {
  return { events: events.map((event) => (event.id === eventId ? { ...event, isReached: true } : event)) }
}
