import { randomFillSync } from 'node:crypto'
import { shardSuffix } from '@impresario/core'
import type { Random } from '@impresario/core'

const POOL_BYTES = 8_192
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const COUNTER_MAX = 0xf_ff

/**
 * Ids in the shape of UUIDv7: 48 bits of time, 12 bits of a counter, 62 random bits. Within a process each sorts after
 * the one before it: when more than the counter holds fall into one millisecond, the next one is borrowed. An id near
 * another one has 46 random bits.
 */
export function createRandom(now: () => number): Random {
  const pool = Buffer.alloc(POOL_BYTES)
  let used = POOL_BYTES
  let lastMs = 0
  let counter = 0

  const take = (bytes: number): number => {
    if (used + bytes > POOL_BYTES) {
      randomFillSync(pool)
      used = 0
    }
    used += bytes
    return used - bytes
  }
  const hex = (byte: number): string => HEX[byte & 0xff] ?? ''

  const id = (near?: string): string => {
    const ms = now()
    if (ms > lastMs) {
      lastMs = ms
      // Half of the range stays free for the ids of the same millisecond.
      counter = pool.readUInt16LE(take(2)) & 0x7_ff
    } else if (counter < COUNTER_MAX) {
      counter += 1
    } else {
      lastMs += 1
      counter = 0
    }
    const at = take(8)
    const high = Math.floor(lastMs / 0x1_00_00)
    const byte = (index: number): string => hex(pool[at + index] ?? 0)
    const time = hex(high >>> 24) + hex(high >>> 16) + hex(high >>> 8) + hex(high)
    const rest = `${hex(lastMs >>> 8)}${hex(lastMs)}-${hex(0x70 | (counter >>> 8))}${hex(counter)}`
    const variant = hex(0x80 | ((pool[at] ?? 0) & 0x3f))
    const tail = near === undefined ? `${byte(6)}${byte(7)}` : shardSuffix(near)
    return `${time}-${rest}-${variant}${byte(1)}-${byte(2)}${byte(3)}${byte(4)}${byte(5)}${tail}`
  }
  return { next: () => pool.readUIntLE(take(6), 6) / 0x1_00_00_00_00_00_00, id }
}
