import type { Backing } from '../backing.ts'

/** Which contestants are compared: the same kind of storage, with the same guarantee for acknowledged work. */
export type League = 'embedded' | 'redis-everysec' | 'redis-always' | 'postgres'

/** The data of a job: small, and the same for all contestants. */
export type Payload = {
  readonly index: number
  /** For a job whose time to its handler is measured. */
  readonly sentAt?: number
  /** One step of a diamond. */
  readonly quiet?: boolean
  /** The last one. */
  readonly last?: boolean
}

/** What a worker reports about its jobs. */
export interface Hooks {
  /** Handlers that may run at once. */
  readonly concurrency: number
  /** The handler has been called. */
  started(payload: Payload): void
  /** The job has ended, as far as its worker knows. */
  ended(payload: Payload): void
  /** The last step of a diamond has ended. */
  flowEnded(payload: Payload): void
}

export interface Producer {
  /** Resolves once the job is as durable as the storage makes it. */
  start(payload: Payload): Promise<unknown>
  /** The same for a diamond: A, then B and C side by side, then D. */
  flow?(payload: Payload): Promise<unknown>
  /**
   * Resolves once everything that was started has ended in the storage, for contestants whose worker cannot report it.
   * Rejects if something failed.
   */
  settled?(): Promise<void>
  close(): Promise<void>
}

export interface Consumer {
  close(): Promise<void>
}

/** One way to use a contestant. */
export interface Variant {
  readonly league: League
  /** A description for the table. */
  readonly durability: string
  /** `together`: producer and worker are one process. Otherwise each has its own. */
  readonly shape: 'apart' | 'together'
  /**
   * Measures that are left out because they would measure something else: where work starts as soon as it arrives,
   * there is no queue to fill and to drain.
   */
  readonly without?: readonly ('enqueue' | 'drain' | 'diamonds')[]
  /** Fewer jobs for contestants that would take minutes. */
  readonly jobsMax?: number
  readonly flowsMax?: number
  /** A note for readers. */
  readonly note?: string
}

/** Where one of its processes runs. */
export interface Venue {
  readonly url: string
  readonly variant: string
}

/**
 * The same work, written for one library. `serve` is called in the process that measures, everything else in the
 * contestant's own processes: its modules are loaded only there.
 */
export interface Contestant {
  readonly title: string
  /** The folder under `bench/peers` where its modules are installed, and its package name there. Ours has none. */
  readonly home?: { readonly folder: string; readonly packages: readonly string[] }
  readonly variants: Readonly<Record<string, Variant>>
  /** `node`: the program to run it with. */
  serve(variant: string, node: string): Promise<Backing>
  /** Creates tables and similar, once, before the other processes start. */
  prepare?(place: Venue): Promise<void>
  producer(place: Venue): Promise<Producer>
  worker(place: Venue, hooks: Hooks): Promise<Consumer>
  /** Called once worker and producer have started. */
  introduce?(place: Venue): Promise<void>
}
