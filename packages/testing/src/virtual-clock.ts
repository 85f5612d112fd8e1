import { nextTick } from './next-tick.ts'

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** Time that stands still until it is moved. Sleeps end when time reaches them, in order. */
export class VirtualClock {
  #now: number
  readonly #sleepers = new Set<Sleeper>()

  constructor(startAt: number) {
    this.#now = startAt
  }

  readonly now = (): number => this.#now

  /** When the first sleep ends. */
  get nextAt(): number | undefined {
    return this.#sleepers.size === 0 ? undefined : Math.min(...[...this.#sleepers].map(({ at }) => at))
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve()
    if (ms <= 0) return nextTick()
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const sleeper: Sleeper = { at: this.#now + ms, wake }
      this.#sleepers.add(sleeper)
      signal?.addEventListener('abort', wake, { once: true })
    })
  }

  /** Sets the time and wakes nobody yet. It never goes back. */
  set(at: number): void {
    this.#now = Math.max(this.#now, at)
  }

  /** Ends the sleeps whose time has come. */
  wakeDue(): void {
    const due = [...this.#sleepers].filter(({ at }) => at <= this.#now)
    for (const { wake } of due.toSorted((a, b) => a.at - b.at)) wake()
  }
}
