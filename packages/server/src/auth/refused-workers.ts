import type { Log } from '@impresario/core'

export interface Refusal {
  /** As the request names it: it has not been proven. */
  readonly workerId: string | undefined
  readonly address: string
  readonly reason: string
}

const WINDOW_MS = 60_000
/** A worker with a wrong token tries again all day, and anybody may send any id: the log must stay readable. */
const LINES_MAX = 10
const ID_CHARS_MAX = 100

/** Tells the log of workers that are refused: each once a minute, and ten a minute at most. Never what they sent as a token. */
export class RefusedWorkers {
  readonly #log: Log
  readonly #now: () => number
  readonly #told = new Set<string>()
  #since = -Infinity

  constructor(log: Log, now: () => number) {
    this.#log = log
    this.#now = now
  }

  note({ workerId, address, reason }: Refusal): void {
    const now = this.#now()
    if (now - this.#since >= WINDOW_MS) {
      this.#since = now
      this.#told.clear()
    }
    const id = workerId?.slice(0, ID_CHARS_MAX)
    const who = id ?? address
    if (this.#told.has(who) || this.#told.size >= LINES_MAX) return
    this.#told.add(who)
    const advice = 'compare its token with WORKER_TOKEN, or with its own in workers.toml'
    this.#log.warn('a worker was refused', { ...(id === undefined ? {} : { worker_id: id }), address, reason, advice })
  }
}
