import { jsonObjectCopy, jsonSize } from '@impresario/core'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { AutomationRecord } from './record.ts'
import { mustFit } from './room.ts'

const WORDS = {
  many: 'automations, canceled ones included',
  fix: 'Delete those that are not needed, or make this one smaller. AUTOMATIONS_BYTES_MAX sets the limit.',
}

/** As it is stored. */
export function bytesOf(record: AutomationRecord): number {
  return jsonSize(jsonObjectCopy(record, 'The automation'))
}

/** Refuses an automation that is too large, by itself or beside the others of its owner. */
export function mustHaveSize(record: AutomationRecord, others: number, bytesMax: number): void {
  const bytes = bytesOf(record)
  if (bytes > LIMITS.automationBytesMax) {
    const message = `The automation has ${bytes} bytes as it is stored; ${LIMITS.automationBytesMax} are allowed. Make its params or its pipeline smaller: large data belongs into files.`
    throw new ImpresarioError('LIMIT_EXCEEDED', message)
  }
  mustFit(bytes, others, { bytesMax, words: WORDS })
}
