import type { Storage } from '@impresario/core'
import type { Receipt, Report } from '@impresario/engine'
import type { Journal } from '@impresario/storage-embedded'
import type { World } from '../world.ts'

/** Brings the results of one message to the desk. */
export type TakeResults = (reports: readonly Report[]) => Promise<readonly Receipt[]>

/** A bug planted on purpose, to test whether the checkers find it. Created separately for every world. */
export interface Bug {
  /** In the process, above its connection: faults occur between the calls that it makes. */
  readonly above?: (storage: Storage, world: World) => Storage
  /** In the storage itself. */
  readonly below?: (storage: Storage, world: World) => Storage
  readonly journal?: (journal: Journal, world: World) => Journal
  /** Where messages of workers arrive: what becomes of the results in one of them. */
  readonly results?: (take: TakeResults) => TakeResults
  /** A process has started. */
  readonly onBoot?: () => void
}

export interface BugKind {
  readonly says: string
  /** Where it can be observed. */
  readonly setup: 'cluster' | 'embedded' | 'both'
  readonly plant: () => Bug
}
