import { isEventType, stringifyExact } from '@impresario/protocol'
import type { EventType } from '@impresario/protocol'
import { newJobId } from './job-id.ts'

export interface SendOptions {
  /** The same id is the same event, however often it is sent. Without it every call is an event of its own. */
  readonly eventId?: string | undefined
}

export interface KeyedSend extends SendOptions {
  /** Reaches the jobs whose `match` is this key. */
  readonly key: string
}

/** The body of an event. It always has an id, so that a request whose answer got lost can be sent again. */
export function sentEvent(
  event: EventType | string,
  payload: object,
  eventId: string | undefined,
  key?: string,
): string {
  const topic = isEventType(event) ? event.topic : event
  return stringifyExact({ topic, payload, event_id: eventId ?? newJobId(), ...(key === undefined ? {} : { key }) })
}
