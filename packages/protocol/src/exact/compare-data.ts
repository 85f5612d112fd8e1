import { compareNumbers, isAnyNumber, isExactNumber } from './exact-number.ts'

/** Whether a value holds as a condition. `null`, `false`, `0`, `''` and what is empty do not. */
export function isTrue(value: unknown): boolean {
  if (isAnyNumber(value)) return compareNumbers(value, 0) !== 0
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0
  return Boolean(value)
}

/** Numbers compare exactly, however many digits they have, and texts by their code units. Nothing else has an order. */
export function orderOf(left: unknown, right: unknown): number | undefined {
  if (isAnyNumber(left) && isAnyNumber(right)) return compareNumbers(left, right)
  if (typeof left !== 'string' || typeof right !== 'string') return undefined
  return left < right ? -1 : left > right ? 1 : 0
}

/** Equal as JSON values: the same type and the same content. `1` and `'1'` differ, and so do `1` and `true`. */
export function isEqual(left: unknown, right: unknown): boolean {
  if ((left ?? null) === (right ?? null)) return true
  if (isAnyNumber(left) && isAnyNumber(right)) return compareNumbers(left, right) === 0
  if (isExactNumber(left) || isExactNumber(right)) return false
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (Array.isArray(left) !== Array.isArray(right)) return false
  const entries = Object.entries(left)
  return (
    entries.length === Object.keys(right).length &&
    entries.every(([key, value]) => Object.hasOwn(right, key) && isEqual(value, ownOf(right, key)))
  )
}

/** Whether a list has an item, a text another text, or an object a key. */
export function isIn(item: unknown, holder: unknown): boolean {
  if (Array.isArray(holder)) return holder.some((each) => isEqual(each, item))
  if (typeof item !== 'string') return false
  if (typeof holder === 'string') return holder.includes(item)
  return typeof holder === 'object' && holder !== null && Object.hasOwn(holder, item)
}

/** A field of its own; `undefined` when there is none. Never runs a getter. */
export function ownOf(value: unknown, key: string | number): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.getOwnPropertyDescriptor(value, key)?.value as unknown
}
