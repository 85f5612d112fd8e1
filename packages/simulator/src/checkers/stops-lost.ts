import { deliveryId } from '@impresario/core'
import type { Entry } from '../chronicle.ts'
import type { Finding } from './finding.ts'

/** [E-03] No worker is told to stop a delivery whose result counts, whichever of the two messages it receives first. */
export function stopsLost(entries: readonly Entry[]): readonly Finding[] {
  const stopped = new Set<string>()
  const accepted = new Set<string>()
  for (const entry of entries) {
    if (entry.type === 'stopped') stopped.add(deliveryId(entry))
    if (entry.type === 'accepted') accepted.add(deliveryId(entry))
  }
  return [...accepted]
    .filter((id) => stopped.has(id))
    .map((id) => ({ rule: 'stopsLost', problem: `${id} counts, and its worker was told to stop it` }))
}
