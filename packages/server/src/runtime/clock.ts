import type { Clock } from '@impresario/core'
import { pause } from '@impresario/protocol'

/** Below this it is only the two clocks' different pace. */
const APART_MS = 1_000
/** How fast time passes while we are ahead of a wall clock that was set back: ten minutes are made good in 100. */
const PACE_AHEAD = 0.9

interface TimeSources {
  readonly wall: () => number
  /** Since any moment. It is never set, and may stand still while the machine sleeps. */
  readonly passed: () => number
}

const MACHINE: TimeSources = { wall: () => Date.now(), passed: () => performance.now() }

/**
 * `steady` is the wall clock as it was at the start, carried on by the monotonic one. `now` follows the wall clock: at
 * once when that was set forward or the machine slept, and little by little when it was set back, because it may not go back.
 */
export function createClock({ wall, passed }: TimeSources = MACHINE): Clock {
  let lookedAt = passed()
  let now = wall()
  const start = now - lookedAt
  return {
    now() {
      const seen = passed()
      const spanMs = seen - lookedAt
      const today = wall()
      lookedAt = seen
      const aheadMs = now + spanMs - today
      if (aheadMs < -APART_MS) now = today
      else now += aheadMs > APART_MS ? Math.max(spanMs * PACE_AHEAD, spanMs - aheadMs) : spanMs
      return Math.floor(now)
    },
    steady: () => Math.floor(start + passed()),
    wall,
    sleep: (ms, signal) => (ms <= 0 ? nextTick() : pause(Math.min(ms, TIMER_MS_MAX), signal)),
  }
}

/** The longest span that a timer of Node can hold; a longer one would fire at once. */
const TIMER_MS_MAX = 2_147_483_647

function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
