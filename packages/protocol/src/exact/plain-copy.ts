import type { Json } from '../json.ts'
import { MARK } from './exact-text.ts'

/** What is nested deeper is copied by way of its text. */
const DEPTH_MAX = 32

const UNUSUAL = Symbol('unusual')

/**
 * A copy of plain data, as if it had been written as JSON and read again: the same for users and in storages. `undefined` for
 * data with anything that needs a closer look, such as large numbers, `toJSON`, marked texts, instances of classes and cycles.
 * Most data is plain and small, and the way by its text takes four times as long.
 */
export function plainCopy(value: unknown): Json | undefined {
  const copy = copied(value, 0)
  return copy === UNUSUAL ? undefined : copy
}

function copied(value: unknown, depth: number): Json | typeof UNUSUAL {
  switch (typeof value) {
    case 'string':
      return value.startsWith(MARK) ? UNUSUAL : value
    case 'boolean':
      return value
    case 'number':
      return Number.isSafeInteger(value)
        ? Object.is(value, -0)
          ? UNUSUAL
          : value
        : Number.isFinite(value) && Math.abs(value) < 1e15
          ? value
          : UNUSUAL
    case 'object':
      if (value === null) return null
      if (depth === DEPTH_MAX) return UNUSUAL
      return Array.isArray(value) ? copiedList(value, depth + 1) : copiedObject(value, depth + 1)
    default:
      return UNUSUAL
  }
}

function copiedList(list: readonly unknown[], depth: number): Json | typeof UNUSUAL {
  const made: Json[] = []
  for (const one of list) {
    const copy = copied(one, depth)
    if (copy === UNUSUAL) return UNUSUAL
    made.push(copy)
  }
  return made
}

function copiedObject(object: object, depth: number): Json | typeof UNUSUAL {
  if (Object.getPrototypeOf(object) !== Object.prototype) return UNUSUAL
  const made: Record<string, Json> = {}
  for (const key of Object.keys(object)) {
    if (key === '__proto__' || key === 'toJSON') return UNUSUAL
    const part = (object as Readonly<Record<string, unknown>>)[key]
    if (part === undefined) continue
    const copy = copied(part, depth)
    if (copy === UNUSUAL) return UNUSUAL
    made[key] = copy
  }
  return made
}
