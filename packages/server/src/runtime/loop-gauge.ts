/** How often the gauge wants to be called. */
const EVERY_MS = 50
/** So late in a row: one long step is a hitch, several are a loop that does not keep up. */
const LATE_MIN = 4

/**
 * Whether the event loop keeps up with what comes. Everything that waits for it, requests first of all, waits as long as a
 * timer is late. Without a start it never is.
 */
export class LoopGauge {
  readonly #lateMsMax: number
  readonly #now: () => number
  /** Hears of every beat, and how long after the one before it came. */
  readonly #onBeat: (sinceMs: number) => void
  #late = 0
  #lastMs = 0
  #dueAt = 0
  #timer: NodeJS.Timeout | undefined

  constructor(
    lateMsMax: number,
    now: () => number = () => performance.now(),
    onBeat: (sinceMs: number) => void = () => {},
  ) {
    this.#lateMsMax = lateMsMax
    this.#now = now
    this.#onBeat = onBeat
  }

  /** It has been late again and again, and not once in time in between. */
  get isLate(): boolean {
    return this.#late >= LATE_MIN
  }

  /** How late it was the last time. */
  get lateMs(): number {
    return this.#lastMs
  }

  start(): void {
    if (this.#lateMsMax === 0 || this.#timer !== undefined) return
    this.#dueAt = this.#now() + EVERY_MS
    this.#timer = setInterval(() => this.beat(), EVERY_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#late = 0
    this.#lastMs = 0
  }

  /** One call of the timer. */
  beat(): void {
    const now = this.#now()
    this.#lastMs = Math.max(0, now - this.#dueAt)
    this.#late = this.#lastMs > this.#lateMsMax ? this.#late + 1 : 0
    this.#dueAt = now + EVERY_MS
    this.#onBeat(EVERY_MS + this.#lastMs)
  }
}
