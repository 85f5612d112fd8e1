import { overrideStorage } from '@impresario/core'
import type { Batch, Put, Storage } from '@impresario/core'
import { DAY_MS } from '@impresario/protocol'
import type { Settings } from '../config/config.ts'
import { OffloadingStorage } from '../files/offloading-storage.ts'
import type { OffloadingOptions } from '../files/offloading-storage.ts'

interface RecordStorageOptions extends Omit<OffloadingOptions, 'bytesMin'> {
  readonly settings: Pick<Settings, 'auditRetentionDays' | 'offloadBytes'>
}

/** The storage as all parts use it: large values are in the store of files, and entries of the audit log end. */
export function recordStorage({ settings, storage, ...options }: RecordStorageOptions): Storage {
  const { auditRetentionDays: days, offloadBytes: bytesMin } = settings
  // Zero days are no end at all.
  const ending = days === 0 ? storage : withAuditRetention(storage, days * DAY_MS)
  return new OffloadingStorage({ ...options, storage: ending, bytesMin })
}

/**
 * The same storage, in which entries of the audit log are gone after this time. Those that end earlier by themselves still do.
 * All of them pass here, whoever writes them, in the commit of what they tell.
 */
function withAuditRetention(storage: Storage, keptMs: number): Storage {
  const ending = (put: Put): Put =>
    put.kind === 'audit' ? { ...put, expiresMs: Math.min(put.expiresMs ?? keptMs, keptMs) } : put
  return overrideStorage(storage, {
    commit: (batch) => storage.commit(hasEntry(batch) ? { ...batch, put: batch.put?.map(ending) ?? [] } : batch),
  })
}

function hasEntry({ put }: Batch): boolean {
  return put?.some(({ kind }) => kind === 'audit') === true
}
