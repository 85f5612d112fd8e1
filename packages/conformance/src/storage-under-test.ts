import type { Storage } from '@impresario/core'

/** A fresh, empty storage for one case, and what a test may do to it. */
export interface StorageUnderTest {
  readonly storage: Storage
  /** Moves the storage's own clock. A backend that cannot do so waits for real. */
  readonly advance: (ms: number) => Promise<void>
  /** Restarts: the old storage is gone, what was durable is in the new one. Only for storages that promise it. */
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
