import type { Clock } from '@impresario/core'

/** The wall clock as it was at the start, carried on by the one that nobody sets back. */
export function createClock(): Clock {
  const start = Date.now() - performance.now()
  return {
    now: () => Math.floor(start + performance.now()),
    wall: () => Date.now(),
    sleep: (ms, signal) => (ms <= 0 ? nextTurn() : sleep(ms, signal)),
  }
}

/** The longest span that a timer of Node can hold; a longer one would fire at once. */
const TIMER_MS_MAX = 2_147_483_647

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', wake)
      resolve()
    }
    const timer = setTimeout(wake, Math.min(ms, TIMER_MS_MAX))
    signal.addEventListener('abort', wake)
  })
}
