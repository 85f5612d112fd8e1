import { sha256 } from '@impresario/core'
import type { Json } from '@impresario/protocol'

/** SHA-256 of a value, equal for equal values whatever the order of their keys, and for no others. */
export function fingerprintOf(value: Json): string {
  return sha256(canonical(value))
}

/**
 * The mark that versions before SHA-256 made of blueprint and data. Keys that they stored have it, and are remembered for as
 * long as any other.
 */
export function formerFingerprintOf(value: Json): string {
  const text = canonical(value)
  let a = 0x81_1c_9d_c5
  let b = 0x01_00_01_93
  for (let index = 0; index < text.length; index += 1) {
    const code = text.codePointAt(index) ?? 0
    a = Math.imul(a ^ code, 0x01_00_01_93)
    b = Math.imul(b ^ (code + index), 0x85_eb_ca_6b)
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36) + text.length.toString(36)
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
