import { exactText, ImpresarioError, isImpresarioError, isJsonObject } from '@impresario/protocol'
import type { EventRequest, Json, JsonObject } from '@impresario/protocol'
import type { RawData } from 'ws'
import { checkJsonText, unreadable } from '../http/json-guard.ts'

/** What a worker said over its socket. */
export interface Frame {
  readonly event: EventRequest
  readonly message: JsonObject
  /** As it came: this is what a signature covers. */
  readonly text: string
}

/**
 * Reads the three forms: `{"type":"progress_update",…}` of the oldest workers, `{"event":"progress_update",…}` of those
 * after them, and the event object of the newer ones.
 */
export function readFrame(data: RawData, isBinary: boolean): Frame {
  if (isBinary) throw invalid('Send text frames with JSON.')
  const text = textOf(data)
  const message = parse(text)
  if (message['type'] === 'progress_update' || message['event'] === 'progress_update') {
    return { event: progressEvent(message), message, text }
  }
  const eventType = message['event_type']
  if (typeof eventType !== 'string' || eventType === '') {
    throw invalid('A message is an event with an event_type, or a progress_update.')
  }
  return { event: asEvent(eventType, message), message, text }
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString('utf8')
  return Buffer.isBuffer(data) ? data.toString('utf8') : Buffer.from(data).toString('utf8')
}

function parse(text: string): JsonObject {
  checkJsonText(text)
  let value: unknown
  try {
    value = JSON.parse(exactText(text), withoutPrototypes)
  } catch (error) {
    if (isImpresarioError(error)) throw error
    throw unreadable(text, 'The message is not JSON.')
  }
  if (!isJsonObject(value)) throw invalid('A message must be a JSON object.')
  return value
}

/** What a body of HTTP may not hold either: names that could be taken for the prototype of an object. */
function withoutPrototypes(key: string, value: unknown): unknown {
  const isPrototype =
    key === '__proto__' || (key === 'constructor' && isJsonObject(value) && Object.hasOwn(value, 'prototype'))
  if (isPrototype) throw new ImpresarioError('INVALID_JSON', `A message must not hold the name ${key}.`)
  return value
}

function progressEvent(message: JsonObject): EventRequest {
  const { task_id: taskId, progress, message: text } = message
  return {
    event_type: 'progress',
    ...textIn(message, 'worker_id'),
    ...(typeof taskId === 'string' ? { target_task_id: taskId } : {}),
    payload: { progress: progress ?? null, message: text ?? null },
  }
}

/** Fields of the wrong type count as absent; the part that needs them reports what is missing. */
function asEvent(eventType: string, message: JsonObject): EventRequest {
  const { payload, bubbling_chain: chain } = message
  return {
    event_type: eventType,
    ...textIn(message, 'event_id'),
    ...textIn(message, 'worker_id'),
    ...textIn(message, 'origin_worker_id'),
    ...textIn(message, 'origin_task_id'),
    ...textIn(message, 'target_job_id'),
    ...textIn(message, 'target_task_id'),
    ...(isJsonObject(payload) ? { payload } : {}),
    ...(isList(chain) ? { bubbling_chain: chain.filter((one) => typeof one === 'string') } : {}),
  }
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

function textIn<K extends string>(message: JsonObject, key: K): { readonly [P in K]?: string } {
  const value = message[key]
  return typeof value === 'string' ? ({ [key]: value } as { readonly [P in K]: string }) : {}
}

function invalid(message: string): ImpresarioError {
  return new ImpresarioError('INVALID_REQUEST', message)
}
