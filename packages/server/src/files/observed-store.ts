import type { FileStore } from '@impresario/files'
import type { Metrics } from '../metrics/metrics.ts'

/** The same store, with its operations counted and timed. */
export function observedStore(store: FileStore, metrics: Metrics): FileStore {
  const measured = async <T>(operation: string, work: () => Promise<T>): Promise<T> => {
    const began = performance.now()
    let status = 'success'
    try {
      return await work()
    } catch (error) {
      status = 'error'
      throw error
    } finally {
      metrics.count('orchestrator_s3_operations_total', { operation, status })
      const seconds = (performance.now() - began) / 1_000
      metrics.observe('orchestrator_s3_operation_duration_seconds', { operation }, seconds)
    }
  }
  return {
    bucket: store.bucket,
    check: () => measured('check', () => store.check()),
    put: (key, body, options) => measured('upload', () => store.put(key, body, options)),
    get: (key, range) => measured('download', () => store.get(key, range)),
    head: (key) => measured('head', () => store.head(key)),
    list: (prefix, options) => measured('list', () => store.list(prefix, options)),
    folders: (prefix) => store.folders(prefix),
    delete: (keys) => measured('delete', () => store.delete(keys)),
    presign: (key, options) => measured('presign', () => store.presign(key, options)),
    sweep: (idleMs) => measured('sweep', () => store.sweep(idleMs)),
    close: () => store.close(),
  }
}
