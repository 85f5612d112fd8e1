import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'

/**
 * Copies a value that user code made, so that nothing outside holds a part of a stored job, and
 * refuses what JSON cannot carry. `place` names the value in the refusal, such as `params`.
 *
 * Properties that are `undefined` are left out, as `JSON.stringify` would.
 */
export function jsonCopy(value: unknown, place: string): Json {
  return copy(value, place, [])
}

export function jsonObjectCopy(value: unknown, place: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw refusal(place, `is ${nameOf(value)}`, 'Give an object.')
  }
  return copyObject(value, place, [])
}

function copy(value: unknown, place: string, above: readonly object[]): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value)) return value
      throw refusal(place, `is ${value}, which JSON cannot hold`, 'Give a finite number or null.')
    case 'object':
      if (value === null) return null
      return Array.isArray(value) ? copyList(value, place, above) : copyObject(value, place, above)
    default:
      throw refusal(place, `is ${nameOf(value)}, which JSON cannot hold`, 'Give only plain data.')
  }
}

function copyList(list: readonly unknown[], place: string, above: readonly object[]): Json {
  const inside = enter(list, place, above)
  // `Array.from` also visits holes, which `map` would keep.
  return Array.from(list, (item, index) => copy(item, `${place}[${index}]`, inside))
}

function copyObject(object: object, place: string, above: readonly object[]): JsonObject {
  if (!isPlain(object)) {
    throw refusal(place, `is ${nameOf(object)}, not plain data`, 'Convert it first, a Date with toISOString().')
  }
  const inside = enter(object, place, above)
  const entries: [string, Json][] = []
  for (const [key, item] of Object.entries(object)) {
    if (item !== undefined) entries.push([key, copy(item, `${place}.${key}`, inside)])
  }
  // Not by assignment: a key "__proto__" would change the prototype instead of being stored.
  return Object.fromEntries(entries)
}

function enter(object: object, place: string, above: readonly object[]): readonly object[] {
  if (above.includes(object)) {
    throw refusal(place, 'leads back to itself', 'JSON holds no cycles: copy the part you need.')
  }
  if (above.length >= LIMITS.jsonDepthMax) {
    throw refusal(place, `is nested deeper than ${LIMITS.jsonDepthMax} levels`, 'Flatten it.')
  }
  return [...above, object]
}

/** True for literals, also those of another realm; false for instances of classes. */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object)
  return prototype === null || (typeof prototype === 'object' && Object.getPrototypeOf(prototype) === null)
}

function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'a list'
  if (typeof value !== 'object') return `a ${typeof value}`
  return `an instance of ${value.constructor.name}`
}

function refusal(place: string, problem: string, fix: string): ImpresarioError {
  return new ImpresarioError('INPUT_REFUSED', `${place} ${problem}. ${fix}`)
}

/** Characters of the value as JSON: near enough to bytes for a limit, and much cheaper than counting those. */
export function jsonSize(value: Json): number {
  return JSON.stringify(value).length
}
