import type { Job, LeaseRef, Queue } from '@impresario/core'
import type { World } from './world.ts'

/** A job as one commit left it. */
export interface Version {
  readonly id: string
  readonly version: number
  readonly job: Job
}

/** A try of a task, by name. */
export interface Try {
  readonly jobId: string
  readonly visit: number
  readonly branch: string
  readonly attempt: number
}

export interface ItemRef {
  readonly queue: Queue
  readonly id: string
}

/** What the checkers read: everything that was reported to a client or worker, and everything that was committed. */
export type Entry = { readonly at: number } &
  /** A client is about to request a job, for the first time or again. */
  (
    | { readonly type: 'attempted'; readonly key: string }
    /** A client was told that its job is there. */
    | { readonly type: 'acknowledged'; readonly key: string; readonly jobId: string }
    /** A client was told that the job has reached this version. */
    | { readonly type: 'told'; readonly jobId: string; readonly version: number }
    /**
     * A worker received a task. The lease of a remote worker has to survive a crash, that of a local one ends with the
     * process.
     */
    | ({
        readonly type: 'delivered'
        readonly workerId: string
        readonly token: number
        readonly isLocal: boolean
      } & Try)
    /** A worker was told that its result counts. */
    | ({ readonly type: 'accepted'; readonly workerId: string; readonly token: number } & Try)
    /** A worker was told to stop a delivery. */
    | ({ readonly type: 'stopped'; readonly workerId: string; readonly token: number } & Try)
    | { readonly type: 'claimed'; readonly leases: readonly (LeaseRef & { readonly deliveries?: number })[] }
    | {
        readonly type: 'committed'
        readonly jobs: readonly Version[]
        readonly enqueued: readonly ItemRef[]
        readonly removed: readonly ItemRef[]
        readonly settled: LeaseRef | undefined
        /** Claims that items were born with. */
        readonly born: readonly LeaseRef[]
      }
    /** A handler of this job crashed the process that ran it. */
    | { readonly type: 'struck'; readonly jobId: string; readonly visit: number }
    /** The storage was reopened after a crash, with its durable data. */
    | {
        readonly type: 'reopened'
        readonly jobs: readonly Version[]
        readonly leases: readonly LeaseRef[]
        /** The durable delivery count of each task. */
        readonly deliveries?: ReadonlyMap<string, number>
      }
    /** A call that changed nothing. */
    | { readonly type: 'nothing' }
    /** A rule was violated at this moment. */
    | { readonly type: 'broken'; readonly rule: string; readonly problem: string }
  )

type Unstamped<T> = T extends { readonly at: number } ? Omit<T, 'at'> : never

/** The events of one world. Its hash distinguishes two runs; its lines, if kept, are the log. */
export class Chronicle {
  readonly entries: Entry[] = []
  readonly lines: string[] | undefined
  readonly #world: World
  #hash = 0x81_1c_9d_c5

  constructor(world: World, options: { readonly keepsLines: boolean }) {
    this.#world = world
    this.lines = options.keepsLines ? [] : undefined
  }

  get hash(): number {
    return this.#hash
  }

  add(entry: Unstamped<Entry>): void {
    this.entries.push({ ...entry, at: this.#world.now })
  }

  /** Reserves a position for an event that happens now and whose outcome is known later. */
  reserve(): (entry: Unstamped<Entry> | undefined) => void {
    const at = this.#world.now
    const index = this.entries.push({ type: 'nothing', at }) - 1
    return (entry) => {
      if (entry !== undefined) this.entries[index] = { ...entry, at }
      else if (index === this.entries.length - 1) this.entries.pop()
    }
  }

  broken(rule: string, problem: string): void {
    this.add({ type: 'broken', rule, problem })
    this.note('!', `${rule}: ${problem}`)
  }

  /** One line of the log; every line is part of the hash. */
  note(who: string, what: string): void {
    let hash = Math.imul(this.#hash ^ this.#world.age, 0x01_00_01_93)
    for (let index = 0; index < what.length; index += 1) hash = Math.imul(hash ^ what.charCodeAt(index), 0x01_00_01_93)
    this.#hash = hash >>> 0
    this.lines?.push(`${(this.#world.age / 1000).toFixed(3).padStart(9)} ${who.padEnd(8)} ${what}`)
  }
}
