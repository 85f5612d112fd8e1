import type { Storage } from '@impresario/core'

/** A new, empty storage for one case, and the operations that a test may perform on it. */
export interface StorageUnderTest {
  readonly storage: Storage
  /** Advances the storage's own clock. A backend that cannot do so waits in real time. */
  readonly advance: (ms: number) => Promise<void>
  /** Restarts: the old storage is gone, and the new one has all durable data. Only for storages that guarantee it. */
  readonly reopen?: () => Promise<Storage>
  readonly close: () => Promise<void>
}

/** Registers one case. */
export type Check = (title: string, run: (it: StorageUnderTest) => Promise<void>) => void

/** Registers a case that restarts the storage. */
export type CheckDurable = (
  title: string,
  run: (it: StorageUnderTest, reopen: () => Promise<Storage>) => Promise<void>,
) => void
