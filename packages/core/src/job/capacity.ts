import { LIMITS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { jsonSize } from '../blueprint/json-copy.ts'

/** Whether a state history may become this one. A change that adds nothing is never refused. */
export function canHold(before: JsonObject, after: JsonObject): boolean {
  return after === before || jsonSize(after) <= LIMITS.contextBytesMax
}
