import { performance } from 'node:perf_hooks'
import type { EventLoopUtilization } from 'node:perf_hooks'

/** However slow it is, so many may be under way. */
const UNDER_WAY_MIN = 64
/** As many as are done in this time may be under way while others are refused. */
const TARGET_MS = 30
/** For so long, and for more than one beat, too many must have been under way before anything is refused. */
const START_MS = 200
const START_BEATS = 2
/** Of the time. Where the loop has time to spare, it is the storage that is slow, and refusing would make nothing faster. */
const BUSY_MIN = 0.9
/** Now, or in the mean of about so long: between two long turns the loop waits for the storage, and looks idle for a moment. */
const BUSY_MEAN_MS = 500
/** Few under way for so many beats: the load has fallen. */
const CALM_BEATS = 10
/** What is done comes in groups, one for each write: a mean of about a second. */
const NEWEST_SHARE = 0.05
/** With each beat the most that was done is forgotten a little: half of it in half a minute. */
const KEPT = 0.999

/**
 * Bounds the requests for new work that are under way once there is more of it than can be done. A server that takes everything works
 * on thousands of requests at once, answers all of them late, and has no time left to refuse any. Those beyond the bound are
 * refused unread, which costs a tenth of a job or less.
 *
 * `open` → `bounded` when for a moment more have been under way than can be done in the longest acceptable wait, and the event loop
 * had no time to spare or did not even come to its timers → `open` when few have been under way for half a second. A burst that is worked off in time is never refused.
 */
export class LoadShedding {
  readonly #waitMsMax: number
  readonly #busyShare: () => number
  readonly #now: () => number
  #beatAt = Number.POSITIVE_INFINITY
  #busyMean = 0
  #underWay = 0
  #done = 0
  /** How many are done in a millisecond, and the most that it lately was. */
  #perMs = 0
  #perMsMax = 0
  #overBeats = 0
  #overMs = 0
  #calmBeats = 0
  /** How many may be under way; infinity while it is open. */
  #bound = Infinity
  #refused = 0

  /** `waitMsMax`: the longest acceptable wait; zero switches it off. */
  constructor(waitMsMax: number, busyShare: () => number = loopShare(), now: () => number = () => performance.now()) {
    this.#waitMsMax = waitMsMax
    this.#busyShare = busyShare
    this.#now = now
  }

  get bound(): number {
    return this.#bound
  }

  /** A request for new work begins. */
  began(): void {
    this.#underWay += 1
  }

  ended(): void {
    this.#underWay -= 1
    this.#done += 1
  }

  /** Once every so often: after so many milliseconds. */
  beat(sinceMs: number): void {
    if (this.#waitMsMax === 0) return
    this.#beatAt = this.#now()
    const busy = this.#busyShare()
    this.#busyMean += (busy - this.#busyMean) * (1 - Math.exp(-sinceMs / BUSY_MEAN_MS))
    this.#perMs += (this.#done / sinceMs - this.#perMs) * NEWEST_SHARE
    this.#perMsMax = Math.max(this.#perMs, this.#perMsMax * KEPT)
    this.#done = 0
    if (this.#bound === Infinity) this.#lookForLoad(Math.max(busy, this.#busyMean), sinceMs)
    else this.#lookForCalm()
  }

  #lookForLoad(busy: number, sinceMs: number): void {
    const isOver = busy >= BUSY_MIN && this.#isOver
    this.#overBeats = isOver ? this.#overBeats + 1 : 0
    this.#overMs = isOver ? this.#overMs + sinceMs : 0
    if (this.#overBeats < START_BEATS || this.#overMs < START_MS) return
    this.#start()
  }

  get #isOver(): boolean {
    return this.#underWay > Math.max(4 * UNDER_WAY_MIN, this.#perMsMax * this.#waitMsMax)
  }

  #start(): void {
    this.#bound = this.#newBound()
    this.#calmBeats = 0
  }

  #lookForCalm(): void {
    this.#bound = this.#newBound()
    this.#calmBeats = this.#underWay < this.#bound / 2 ? this.#calmBeats + 1 : 0
    if (this.#calmBeats < CALM_BEATS) return
    this.#bound = Infinity
    this.#overBeats = 0
    this.#overMs = 0
  }

  #newBound(): number {
    return Math.max(UNDER_WAY_MIN, this.#perMsMax * TARGET_MS)
  }

  /** Whether the one that comes now is to be refused. */
  refuses(): boolean {
    // The loop takes in more and more, and does not even come to its timers.
    if (this.#bound === Infinity && this.#isOver && this.#now() - this.#beatAt > START_MS) this.#start()
    if (this.#underWay < this.#bound) return false
    this.#refused += 1
    return true
  }

  /** How many were refused since the last call. */
  takeRefused(): number {
    const refused = this.#refused
    this.#refused = 0
    return refused
  }
}

/** The share of the time since the last call in which the event loop was busy. */
function loopShare(): () => number {
  let last: EventLoopUtilization | undefined
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = last === undefined ? now : performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}
