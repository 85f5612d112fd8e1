import type { Clock } from '@impresario/core'

/**
 * How many traces may begin here in a second. What is saved in a quiet second is used in the next one, and no later. Traces
 * that a caller has begun are not counted: it decides about them.
 */
export class TraceRate {
  readonly #clock: Clock
  readonly #perSecond: number
  readonly #onSkipped: () => void
  #left: number
  #filledAt: number

  /** `perSecond`: zero for any number. */
  constructor(clock: Clock, perSecond: number, onSkipped: () => void) {
    this.#clock = clock
    this.#perSecond = perSecond
    this.#onSkipped = onSkipped
    this.#left = perSecond
    this.#filledAt = clock.now()
  }

  /** Whether no trace may begin now. */
  get isUsedUp(): boolean {
    if (this.#perSecond === 0) return false
    this.#fill()
    return this.#left < 1
  }

  /** Begins a trace, if one may begin now. */
  take(): boolean {
    if (this.#perSecond === 0) return true
    if (this.isUsedUp) {
      this.#onSkipped()
      return false
    }
    this.#left -= 1
    return true
  }

  #fill(): void {
    const now = this.#clock.now()
    this.#left = Math.min(this.#perSecond, this.#left + ((now - this.#filledAt) / 1_000) * this.#perSecond)
    this.#filledAt = now
  }
}
