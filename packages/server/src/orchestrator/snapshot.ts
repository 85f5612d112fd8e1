import type { Job } from '@impresario/core'
import type { Json, JsonObject } from '@impresario/protocol'

/** Paths of what was left out that are named; of more there is only a count. */
const NAMED_MAX = 20
const NAME_CHARS_MAX = 100

/**
 * What the history keeps of a job with each of its events: where it stood, what it was started with, and its dictionary.
 *
 * The two objects together have at most `bytesMax` bytes of JSON. What does not fit is left out, value by value, so that a
 * long text does not hide the short ones beside it, and `truncated` names it. Looking at a value ends where it is too
 * large: a step of a job with a megabyte of data costs no more than one with little.
 */
export function jobSnapshot(job: Job, bytesMax: number): JsonObject {
  const cut: string[] = []
  // Each of the two may use what the other one leaves.
  const historyBytes = sizeWithin(job.stateHistory, bytesMax) ?? bytesMax
  const forData = Math.max(Math.floor(bytesMax / 2), bytesMax - historyBytes)
  const data = keep(job.initialData, { bytesMax: forData, path: 'initial_data', cut })
  const history = keep(job.stateHistory, { bytesMax: bytesMax - data.bytes, path: 'state_history', cut })
  return {
    ...briefSnapshot(job),
    initial_data: data.value,
    state_history: history.value,
    ...(cut.length === 0 ? {} : { truncated: named(cut) }),
  }
}

/** Without the data, for those events of one step that would be too much together. */
export function cutSnapshot(job: Job): JsonObject {
  return { ...briefSnapshot(job), truncated: ['initial_data', 'state_history'] }
}

function briefSnapshot({ status, state, progress, error }: Job): JsonObject {
  return {
    status,
    state,
    ...(progress === undefined ? {} : { progress: progress.fraction }),
    ...(error === undefined ? {} : { error_code: error.code }),
  }
}

interface Kept {
  readonly value: JsonObject
  readonly bytes: number
}

interface Portion {
  readonly bytesMax: number
  readonly path: string
  readonly cut: string[]
}

function keep(value: JsonObject, portion: Portion): Kept {
  const bytes = sizeWithin(value, portion.bytesMax)
  return bytes === undefined ? part(value, portion) : { value, bytes }
}

/** Those fields that fit, in their order. */
function part(value: JsonObject, { bytesMax, path, cut }: Portion): Kept {
  const kept: [string, Json][] = []
  let bytes = BRACKETS
  for (const [key, field] of Object.entries(value)) {
    const keyBytes = key.length > bytesMax ? bytesMax : textBytes(key) + COLON_AND_COMMA
    const room = bytesMax - bytes - keyBytes
    const size = room <= 0 ? undefined : sizeWithin(field, room)
    if (size === undefined) {
      cut.push(`${path}.${key.slice(0, NAME_CHARS_MAX)}`)
      continue
    }
    kept.push([key, field])
    bytes += keyBytes + size
  }
  return { value: Object.fromEntries(kept), bytes }
}

function named(cut: readonly string[]): readonly string[] {
  if (cut.length <= NAMED_MAX) return cut
  return [...cut.slice(0, NAMED_MAX), `and ${cut.length - NAMED_MAX} more`]
}

const BRACKETS = 2
const COLON_AND_COMMA = 2

/** The bytes of the value as JSON, or `undefined` as soon as there are more than so many. */
export function sizeWithin(value: Json, bytesMax: number): number | undefined {
  if (typeof value === 'string') return value.length > bytesMax ? undefined : bounded(textBytes(value), bytesMax)
  if (typeof value !== 'object' || value === null) return bounded(JSON.stringify(value).length, bytesMax)
  let bytes = BRACKETS
  const keys = Array.isArray(value) ? undefined : Object.keys(value)
  const fields: readonly (Json | undefined)[] = Array.isArray(value) ? value : Object.values(value)
  for (const [index, field] of fields.entries()) {
    if (field === undefined) continue
    const key = keys?.[index]
    bytes += key === undefined ? 1 : textBytes(key) + COLON_AND_COMMA
    const size = bytes > bytesMax ? undefined : sizeWithin(field, bytesMax - bytes)
    if (size === undefined) return undefined
    bytes += size
  }
  return bounded(bytes, bytesMax)
}

function bounded(bytes: number, bytesMax: number): number | undefined {
  return bytes > bytesMax ? undefined : bytes
}

function textBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text))
}
