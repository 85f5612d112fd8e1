import { isEventType } from '@impresario/protocol'
import type { EventType, JobEventRequest, JsonObject } from '@impresario/protocol'
import { newJobId } from './job-id.ts'

export interface SendOptions {
  /** The same id is the same event, however often it is sent. Without it every call is an event of its own. */
  readonly eventId?: string | undefined
}

export interface KeyedSend extends SendOptions {
  /** Reaches the jobs whose `match` is this key. */
  readonly key: string
}

/** An event as it is sent. It always has an id, so that a request whose answer got lost can be sent again. */
export function sentEvent(event: EventType | string, payload: object, eventId: string | undefined): JobEventRequest {
  const topic = isEventType(event) ? event.topic : event
  return { topic, payload: jsonOf(payload), event_id: eventId ?? newJobId() }
}

/** The boundary at which the compiler's checks of the payload end: from here on it is JSON for the orchestrator to judge. */
function jsonOf(payload: object): JsonObject {
  return payload as JsonObject
}
