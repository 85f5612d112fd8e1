import type { Clock, Storage } from '@impresario/core'
import { fairShare, ImpresarioError, LIMITS } from '@impresario/protocol'

export interface BacklogBounds {
  /** Jobs of one client that have begun and not ended. */
  readonly perClientMax: number
  /** The same over all clients. */
  readonly totalMax: number
  /** What those of one client may have together, with those in quarantine: each new one gets a share of it. */
  readonly bytesPerClientMax?: number
  /** The same over all clients. */
  readonly bytesTotalMax?: number
}

/** A job that wants to begin. */
export interface Coming {
  readonly isChild?: boolean
  /** Approximate size of what it begins with. */
  readonly bytes: number
}

export interface BacklogOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly bounds: BacklogBounds
  /** Other instances start jobs on the same storage. */
  readonly isShared: boolean
}

interface Count {
  readonly max: number
  open: number
  /** In quarantine: nobody waits for them, but they are kept until a person decides. */
  quarantined: number
  lookedAt: number
  /** Creations until the next look. */
  left: number
  /** Creations that were admitted and are under way: a look may not find their jobs yet. */
  pending: number
  looking: Promise<void> | undefined
  /** Those who wait for creations under way before they may begin one. */
  readonly waiting: (() => void)[]
}

/** The storage is looked at so often. Between two looks every creation here counts as one more open job. */
const LOOK_MS = 1_000
/**
 * Where others start jobs too, an instance has a sixteenth of what is free under way, or one, before it looks again. What is
 * under way is all that others cannot see, so that each further instance exceeds the bound by at most a sixteenth, or one.
 */
const SHARE = 16
const RETRY_AFTER_S = 5
/** How far children may exceed the bounds. */
const CHILDREN_FACTOR = 2
/** Clients that are cached. Others are read from the storage again. */
const CLIENTS_MAX = 10_000
const SETTLED: ReadonlySet<string> = new Set(['finished', 'failed', 'cancelled', 'error', 'quarantined'])

/** Refuses new jobs where too many are open already: an unbounded queue only hides that the workers cannot keep up. */
export class Backlog {
  readonly #options: BacklogOptions
  readonly #clients = new Map<string, Count>()
  readonly #all: Count

  constructor(options: BacklogOptions) {
    this.#options = options
    this.#all = newCount(options.bounds.totalMax)
  }

  /**
   * Counts one more for the client, or says why it cannot have it. Gives what to call when the creation is over.
   *
   * A child may exceed the bounds by as much again: its parent is open and waits for it, so that parents alone could fill the
   * bounds, and none of them would ever end.
   */
  async admit(clientId: string, { isChild = false, bytes }: Coming): Promise<ImpresarioError | (() => void)> {
    const factor = isChild ? CHILDREN_FACTOR : 1
    const own = this.#clients.get(clientId) ?? this.#remember(clientId)
    const all = this.#all
    for (;;) {
      await this.#look(own, clientId)
      await this.#look(all, undefined)
      if (own.open >= own.max * factor) return refusal(`You have ${own.open} open jobs, and ${own.max} are allowed.`)
      if (all.open >= all.max * factor) return refusal('There are too many open jobs.')
      const share = this.#shareOf(own) * factor
      if (bytes > share) return tooLarge(own.open + own.quarantined, Math.floor(share), bytes)
      const shareOfAll = this.#shareOfAll() * factor
      if (bytes > shareOfAll) return tooLargeForAll(shareOfAll, bytes)
      // Others may have taken what the look allowed. A child does not wait for it.
      if (isChild || (own.left > 0 && all.left > 0)) break
      await roomIn(own.left > 0 ? all : own)
    }
    return begun(own, all)
  }

  /** As `admit`, where nothing has to be looked at; `undefined` where something has. */
  admitAtOnce(clientId: string, { bytes }: Coming): (() => void) | undefined {
    const own = this.#clients.get(clientId)
    const all = this.#all
    if (own === undefined || !this.#isKnown(own) || !this.#isKnown(all)) return undefined
    if (own.open >= own.max || all.open >= all.max) return undefined
    if (bytes > this.#shareOf(own) || bytes > this.#shareOfAll()) return undefined
    return begun(own, all)
  }

  /** What one more job of a client may begin with. */
  #shareOf({ open, quarantined }: Count): number {
    return fairShare(this.#options.bounds.bytesPerClientMax ?? LIMITS.openJobsBytesMax, open + quarantined)
  }

  /** What one more job of anybody may begin with. */
  #shareOfAll(): number {
    const { open, quarantined } = this.#all
    return fairShare(this.#options.bounds.bytesTotalMax ?? LIMITS.allOpenJobsBytesMax, open + quarantined)
  }

  #remember(clientId: string): Count {
    if (this.#clients.size >= CLIENTS_MAX) this.#clients.clear()
    const count = newCount(this.#options.bounds.perClientMax)
    this.#clients.set(clientId, count)
    return count
  }

  #isKnown({ lookedAt, left, looking }: Count): boolean {
    return left > 0 && looking === undefined && this.#options.clock.now() - lookedAt < LOOK_MS
  }

  async #look(count: Count, owner: string | undefined): Promise<void> {
    if (this.#isKnown(count)) return
    // The creations of one moment ask once.
    count.looking ??= this.#count(count, owner).finally(() => {
      count.looking = undefined
    })
    await count.looking
  }

  async #count(count: Count, owner: string | undefined): Promise<void> {
    const { storage, clock, isShared } = this.#options
    count.lookedAt = clock.now()
    const counts = await storage.counts('job', owner === undefined ? {} : { owner })
    let open = count.pending
    for (const [status, jobs] of Object.entries(counts)) if (!SETTLED.has(status)) open += jobs
    count.open = open
    count.quarantined = counts['quarantined'] ?? 0
    const share = isShared ? Math.max(1, Math.floor((count.max - open) / SHARE)) : Number.POSITIVE_INFINITY
    count.left = share - count.pending
  }
}

/** Counts a creation in both. Gives what to call when it is over. */
function begun(own: Count, all: Count): () => void {
  begin(own)
  begin(all)
  return () => {
    end(own)
    end(all)
  }
}

function begin(count: Count): void {
  count.open += 1
  count.left -= 1
  count.pending += 1
}

function end(count: Count): void {
  count.pending -= 1
  if (count.waiting.length > 0) for (const wake of count.waiting.splice(0)) wake()
}

/** Waits for a creation to end, if any is under way. */
async function roomIn(count: Count): Promise<void> {
  if (count.pending === 0) return
  await new Promise<void>((resolve) => {
    count.waiting.push(resolve)
  })
}

function newCount(max: number): Count {
  return {
    max,
    open: 0,
    quarantined: 0,
    lookedAt: Number.NEGATIVE_INFINITY,
    left: 0,
    pending: 0,
    looking: undefined,
    waiting: [],
  }
}

function refusal(why: string): ImpresarioError {
  return new ImpresarioError('TOO_MANY_REQUESTS', `${why} Wait until some have ended.`, {
    details: { retry_after_s: RETRY_AFTER_S },
  })
}

function tooLarge(jobs: number, share: number, bytes: number): ImpresarioError {
  const why = `You have ${jobs} jobs that are open or in quarantine. With so many, a new one may have about ${share} bytes, and this one has ${bytes}.`
  const message = `${why} Put large data into files, or wait until some have ended.`
  return new ImpresarioError('TOO_MANY_REQUESTS', message, { details: { retry_after_s: RETRY_AFTER_S } })
}

/** How many jobs others have is not told: the share is rounded down to a power of two. */
function tooLargeForAll(share: number, bytes: number): ImpresarioError {
  const about = share < 1 ? 0 : 2 ** Math.floor(Math.log2(share))
  const why = `There are so many open jobs, over all clients, that a new one may have about ${about} bytes, and this one has ${bytes}.`
  const message = `${why} Put large data into files, or wait until some have ended.`
  return new ImpresarioError('TOO_MANY_REQUESTS', message, { details: { retry_after_s: RETRY_AFTER_S } })
}
