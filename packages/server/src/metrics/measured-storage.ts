import { overrideStorage } from '@impresario/core'
import type { Batch, Storage } from '@impresario/core'
import { chain } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import type { Metrics } from './metrics.ts'

/**
 * The same storage, with its writes timed. Occurrences of automations that did not run are counted here too: each is an entry of the
 * audit log, so that what is committed is counted, once, whatever has skipped it.
 */
export function measuredStorage(storage: Storage, metrics: Metrics): Storage {
  return overrideStorage(storage, {
    commit(batch) {
      const began = performance.now()
      const ended = (outcome: 'committed' | 'conflict'): typeof outcome => {
        metrics.observe('impresario_storage_write_seconds', COMMIT, (performance.now() - began) / 1_000)
        if (outcome === 'committed') countSkips(metrics, batch)
        return outcome
      }
      return chain(storage.commit(batch), ended)
    },
    sync() {
      const began = performance.now()
      return chain(storage.sync(), () =>
        metrics.observe('impresario_storage_write_seconds', FLUSH, (performance.now() - began) / 1_000),
      )
    },
  })
}

const COMMIT = { operation: 'commit' }
const FLUSH = { operation: 'flush' }

function countSkips(metrics: Metrics, { put = [] }: Batch): void {
  for (const one of put) {
    if (one.kind !== 'audit' || one.value['action'] !== 'run.skipped') continue
    // Boundary: entries of the audit log are written by `putAudit` alone.
    const { reason, count } = (one.value['details'] ?? {}) as JsonObject
    const times = typeof count === 'number' ? count : 1
    metrics.count('impresario_firings_skipped_total', { reason: typeof reason === 'string' ? reason : 'other' }, times)
  }
}
