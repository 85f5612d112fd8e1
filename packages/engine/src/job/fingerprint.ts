import { sha256 } from '@impresario/core'
import type { Json } from '@impresario/protocol'

/** SHA-256 of a value, equal for equal values whatever the order of their keys, and for no others. */
export function fingerprintOf(value: Json): string {
  return sha256(canonical(value))
}

function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  // Half a character is written as its escape, so that two of them stay two.
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const parts = Object.entries(value)
    .filter(([, part]) => part !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, part]) => `${JSON.stringify(key)}:${canonical(part)}`)
  return `{${parts.join(',')}}`
}
