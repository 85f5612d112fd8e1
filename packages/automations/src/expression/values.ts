import { isAnyNumber, stringifyExact } from '@impresario/protocol'

/** A value inside a longer text. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  if (isAnyNumber(value) || typeof value === 'boolean') return String(value)
  return stringifyExact(value)
}
