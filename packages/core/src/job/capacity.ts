import { LIMITS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { jsonSize } from '../blueprint/json-copy.ts'

/** Whether a state history may become this one. A change that adds nothing is never refused. */
export function canHold(before: JsonObject, after: JsonObject, offloads = false): boolean {
  return after === before || historyExcess(after, offloads) === undefined
}

/**
 * The bytes of a state history that is too large. Where the storage keeps large values apart (`offloads`), only small ones count
 * for its record; all together have a bound of their own.
 */
export function historyExcess(history: JsonObject, offloads: boolean): number | undefined {
  const size = jsonSize(history)
  if (size <= LIMITS.contextBytesMax) return undefined
  if (!offloads || size > LIMITS.offloadedHistoryBytesMax) return size
  const sizes = Object.values(history).map((value) => jsonSize(value))
  const large = sizes.filter((bytes) => bytes >= LIMITS.offloadedValueBytesMin).reduce((sum, bytes) => sum + bytes, 0)
  return size - large <= LIMITS.contextBytesMax ? undefined : size
}
