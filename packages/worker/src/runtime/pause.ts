/** Lets everything that is ready now go first: what ends in the same moment then travels together. */
export function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

/** Something that one loop waits for and others announce. An announcement that is not awaited is kept, once. */
export class Bell {
  #rung = false
  #wake: (() => void) | undefined

  ring(): void {
    this.#rung = true
    this.#wake?.()
  }

  /** Resolves when it has rung since the last wait, or when the time is up; says which. */
  wait(ms?: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(() => this.#wake?.(), ms)
      this.#wake = () => {
        clearTimeout(timer)
        this.#wake = undefined
        const rung = this.#rung
        this.#rung = false
        resolve(rung)
      }
      if (this.#rung) this.#wake()
    })
  }
}

/**
 * How long to wait before the next try: longer each time, up to a limit, so that a dead orchestrator is left in peace.
 * Half of each wait is chance: a thousand workers that lost the same orchestrator must not return in the same instant.
 */
export class Backoff {
  #failures = 0
  readonly #firstMs: number
  readonly #longestMs: number
  readonly #factor: number

  constructor(firstMs: number, longestMs: number, factor = 2) {
    this.#firstMs = firstMs
    this.#longestMs = longestMs
    this.#factor = factor
  }

  get failures(): number {
    return this.#failures
  }

  next(): number {
    const ms = Math.min(this.#longestMs, this.#firstMs * this.#factor ** Math.min(this.#failures, 30))
    this.#failures += 1
    return ms / 2 + (Math.random() * ms) / 2
  }

  reset(): void {
    this.#failures = 0
  }
}
