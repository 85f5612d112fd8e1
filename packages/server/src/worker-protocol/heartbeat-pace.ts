import type { Clock } from '@impresario/core'

const WINDOW_MS = 1_000
/** More heartbeats than this in a second are a crowd: at 15 s between two of them, it is 1,500 workers well spread. */
const CROWD = 100
/** Workers that a restart has synchronised send their heartbeats together from then on, unless they are spread. */
const SETTLING_MS = 60_000
const SETTLING_CROWD = 20
const JITTER_MS_MAX = 5_000

/**
 * Spreads heartbeats that come all at once. What a worker is told depends on its id and the time only, so that the same
 * crowd is spread the same way by every instance, and differently each time.
 */
export class HeartbeatPace {
  readonly #clock: Clock
  readonly #startedAt: number
  #windowAt = 0
  #beats = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#startedAt = clock.now()
  }

  /** How much later than usual the worker shall beat next; `undefined` when there is no need. */
  jitterFor(workerId: string): number | undefined {
    const now = this.#clock.now()
    if (now - this.#windowAt >= WINDOW_MS) {
      this.#windowAt = now
      this.#beats = 0
    }
    this.#beats += 1
    const crowd = now - this.#startedAt < SETTLING_MS ? SETTLING_CROWD : CROWD
    if (this.#beats <= crowd) return undefined
    return 1 + (hashOf(`${workerId} ${Math.floor(now / SETTLING_MS)}`) % JITTER_MS_MAX)
  }
}

/** FNV-1a: spreads ids that differ in one digit only. */
function hashOf(text: string): number {
  let hash = 0x81_1c_9d_c5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93) >>> 0
  return hash
}
