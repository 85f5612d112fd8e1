import type { Schema, SchemaInput } from './contract.ts'
import { ImpresarioError } from './errors.ts'
import { LIMITS } from './limits.ts'

/**
 * An event that jobs wait for and that others send: its topic, and what it brings. Declared once, it types the wait, the
 * sending and the handler that gets it.
 */
export interface EventType<Topic extends string = string, S extends Schema<object, object> = Schema<object, object>> {
  readonly kind: 'event'
  readonly topic: Topic
  readonly payload: S
}

/** What has to be sent. */
export type EventPayload<E extends EventType> = SchemaInput<E['payload']>

/** Declares an event. `topic` is names of letters, digits, `_` and `-` joined by dots, such as `order.paid`. */
export function eventType<const Topic extends string, S extends Schema<object, object>>(
  topic: Topic,
  payload: S,
): EventType<Topic, S> {
  if (!isTopic(topic)) throw new ImpresarioError('INVALID_BLUEPRINT', topicProblem(topic))
  return { kind: 'event', topic, payload }
}

const TOPIC = /^[\w-]+(?:\.[\w-]+)*$/

export function isTopic(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LIMITS.identifierCharsMax && TOPIC.test(value)
}

export function topicProblem(given: unknown): string {
  const shown = JSON.stringify(String(given).slice(0, 100))
  return (
    `${shown} is not a topic. Write names of letters, digits, "_" and "-" joined by dots, such as order.paid, ` +
    `at most ${LIMITS.identifierCharsMax} characters.`
  )
}

export function isEventType(value: unknown): value is EventType {
  return (
    typeof value === 'object' &&
    value !== null &&
    'kind' in value &&
    value.kind === 'event' &&
    'topic' in value &&
    isTopic(value.topic) &&
    'payload' in value
  )
}
