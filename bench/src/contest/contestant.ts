import type { Backing } from '../backing.ts'

/** Who is compared with whom: the same kind of storage, making the same promise about what it has acknowledged. */
export type League = 'embedded' | 'redis-everysec' | 'redis-always' | 'postgres'

/** The data of a job: small, and the same for everybody. */
export type Payload = {
  readonly index: number
  /** Of a job whose way to its handler is timed. */
  readonly sentAt?: number
  /** One step of a diamond. */
  readonly quiet?: boolean
  /** The last one. */
  readonly last?: boolean
}

/** What a worker tells of its jobs. */
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
  /** Resolves once the job is as safe as the storage makes it. */
  start(payload: Payload): Promise<unknown>
  /** The same for a diamond: A, then B and C side by side, then D. */
  flow?(payload: Payload): Promise<unknown>
  /**
   * Resolves once everything that was started has ended in the storage, for those whose worker cannot tell. Rejects when
   * something failed.
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
  /** In words, for the table. */
  readonly durability: string
  /** `together`: producer and worker are one process. Otherwise each has its own. */
  readonly shape: 'apart' | 'together'
  /**
   * What is left out because it would measure something else: where work begins as soon as it arrives there is no queue to
   * fill and to drain.
   */
  readonly without?: readonly ('enqueue' | 'drain' | 'diamonds')[]
  /** Fewer jobs for those who would take minutes. */
  readonly jobsMax?: number
  readonly flowsMax?: number
  /** What a reader has to know. */
  readonly note?: string
}

/** Where one of its processes runs. */
export interface Venue {
  readonly url: string
  readonly variant: string
}

/**
 * The same work in the words of one library. `serve` is called in the process that measures, everything else in processes
 * of the contestant's own: its modules are loaded only there.
 */
export interface Contestant {
  readonly title: string
  /** The folder under `bench/peers` that its modules are installed in, and the package that is its name there. Ours has none. */
  readonly home?: { readonly folder: string; readonly packages: readonly string[] }
  readonly variants: Readonly<Record<string, Variant>>
  /** `node`: the program to run it with. */
  serve(variant: string, node: string): Promise<Backing>
  /** Makes tables and the like, once, before anybody else comes. */
  prepare?(place: Venue): Promise<void>
  producer(place: Venue): Promise<Producer>
  worker(place: Venue, hooks: Hooks): Promise<Consumer>
  /** Once worker and producer are there. */
  introduce?(place: Venue): Promise<void>
}
