import type { Log } from '@impresario/core'
import type { Admission as EngineAdmission, Pass } from '@impresario/engine'
import { ImpresarioError, PassingMap } from '@impresario/protocol'
import type { HeapGauge } from '../runtime/heap-gauge.ts'
import type { LoopGauge } from '../runtime/loop-gauge.ts'

export interface AdmissionBounds {
  /** What the data of jobs that are being started may take of the memory, over all of them. */
  readonly jobBytesMax: number
  /** Bytes of bodies that have arrived and are not yet answered. Those that start jobs may have half of it. */
  readonly bodyBytesMax: number
  /** The longest acceptable wait for the storage. Zero: waiting is never a reason to refuse. */
  readonly waitMsMax: number
}

export interface AdmissionOptions {
  readonly bounds: AdmissionBounds
  /** Milliseconds since any moment. */
  readonly now: () => number
  readonly log: Log
  readonly loop: Pick<LoopGauge, 'isLate'>
  readonly heap: Pick<HeapGauge, 'isFull'>
}

/** A body while it is read, and until its request is answered. */
export interface BodyPass {
  /** So many more bytes have arrived. Throws when there is no room for them. */
  add(bytes: number): void
  leave(): void
}

/** A short wait is no overload: for this long, no request may have been served in time. */
const PATIENCE_MS = 3_000
/** For bytes that are on their way: they are written in a moment. */
const RETRY_SOON_S = 1
const RETRY_LATER_S = 2
const TELL_EVERY_MS = 10_000
const TOO_MUCH = 'There is more work than can be done in time.'

/**
 * The one place that says no when there is more work than can be done, so early that it costs next to nothing: 503
 * `OVERLOADED` with `Retry-After` over HTTP, the same error for programs that embed an orchestrator. Only what starts new
 * jobs is refused: heartbeats, polls and results are always taken, as far as their bodies have room, because they end work.
 *
 * What counts is how long those who were let in wait, and not how many they are:
 * - for the storage: none of them was served in time for a while, and the first in the row waits too long as well;
 * - for the event loop, as its gauge has it: requests that have not even been read wait there.
 * And what they hold in memory: the data of jobs that are being started, bodies that are not answered, the heap itself.
 *
 * It looks at this moment only, so that it lets everybody in as soon as the load falls.
 */
export class Admission implements EngineAdmission {
  readonly #options: AdmissionOptions
  /** Those who wait for the storage, the first of them first. */
  readonly #waiting = new PassingMap<object, number>()
  #jobBytes = 0
  #bodyBytes = 0
  /** When a request was last served in time, or none was waiting. */
  #goodAt = Number.NEGATIVE_INFINITY
  #refused = 0
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(options: AdmissionOptions) {
    this.#options = options
  }

  /** Jobs that are being started, in bytes of memory. */
  get jobBytes(): number {
    return this.#jobBytes
  }

  get bodyBytes(): number {
    return this.#bodyBytes
  }

  enter(bytes: number): Pass {
    this.mustHaveTime()
    const { jobBytesMax } = this.#options.bounds
    if (this.#jobBytes > 0 && this.#jobBytes + bytes > jobBytesMax) {
      throw this.#refusal('More data is on its way to the storage than it can take at once.', RETRY_SOON_S)
    }
    this.#jobBytes += bytes
    const key = {}
    let isHere = true
    return {
      begin: () => this.#begin(key),
      leave: () => {
        if (!isHere) return
        isHere = false
        this.#jobBytes -= bytes
        this.#leave(key)
      },
    }
  }

  /** Whether a short body that ends work would be let in. */
  hasRoom(bytes: number): boolean {
    return this.#bodyBytes === 0 || this.#bodyBytes + bytes <= this.#options.bounds.bodyBytesMax
  }

  /** `expected`: how long the body says that it is. `isNewWork`: it asks for more to be done. */
  enterBody(expected: number, isNewWork: boolean): BodyPass {
    if (isNewWork) this.mustHaveTime()
    const { bodyBytesMax } = this.#options.bounds
    const max = isNewWork ? bodyBytesMax / 2 : bodyBytesMax
    let own = 0
    let isHere = true
    const leave = (): void => {
      if (!isHere) return
      isHere = false
      this.#bodyBytes -= own
    }
    // One alone has room however long it is: there is a limit for each body as well.
    const mustFit = (more: number): void => {
      if (this.#bodyBytes === own || this.#bodyBytes + more <= max) return
      // At once, and not with its answer: of many that arrive together the others have its room, or all would be refused.
      leave()
      throw this.#refusal('Too many large requests arrive at once.', RETRY_SOON_S)
    }
    mustFit(expected)
    return {
      leave,
      add: (bytes) => {
        if (!isHere) return
        mustFit(bytes)
        own += bytes
        this.#bodyBytes += bytes
      },
    }
  }

  /** Throws when those who were let in wait too long already, or the memory is full. */
  mustHaveTime(): void {
    const { loop, heap } = this.#options
    if (loop.isLate || this.#isStorageLate()) {
      throw this.#refusal(TOO_MUCH, RETRY_LATER_S)
    }
    if (heap.isFull) throw this.#refusal('There is no memory for more work.', RETRY_LATER_S)
  }

  #begin(key: object): void {
    const now = this.#options.now()
    if (this.#waiting.size === 0) this.#goodAt = now
    if (!this.#waiting.has(key)) this.#waiting.set(key, now)
  }

  #leave(key: object): void {
    const since = this.#waiting.get(key)
    if (since === undefined) return
    this.#waiting.delete(key)
    const now = this.#options.now()
    if (now - since < this.#options.bounds.waitMsMax) this.#goodAt = now
  }

  #isStorageLate(): boolean {
    const { bounds, now } = this.#options
    const [first] = this.#waiting.values()
    if (first === undefined || bounds.waitMsMax === 0) return false
    const at = now()
    return at - this.#goodAt > PATIENCE_MS && at - first > bounds.waitMsMax
  }

  /** So many were refused before they came here. */
  noteRefused(count: number): void {
    if (count > 0) this.#tell(TOO_MUCH, count)
  }

  #tell(why: string, count: number): void {
    this.#refused += count
    const { now, log } = this.#options
    if (now() - this.#toldAt <= TELL_EVERY_MS) return
    this.#toldAt = now()
    log.warn('new work is refused', { reason: why, refused: this.#refused })
    this.#refused = 0
  }

  #refusal(why: string, retryAfterS: number): ImpresarioError {
    this.#tell(why, 1)
    return new ImpresarioError('OVERLOADED', why, { details: { retry_after_s: retryAfterS } })
  }
}
