import { appendFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { blueprint } from '@impresario/core'

/**
 * @param {string} name
 * @param {(context: { readonly signal: AbortSignal }) => unknown} act
 *
 * A state whose handler does this, and ends the job if it comes that far. Each run leaves a line in a file. There is a state
 * before it, so that the client has its answer by then.
 */
function doing(name, act) {
  return blueprint(name, { start: 'wait' }, (state) => ({
    wait: state.handler(async (_context, actions) => {
      await pause(100)
      return actions.transitionTo('act')
    }),
    act: state.handler(async (context, actions) => {
      appendFileSync(process.env.BEGUN_FILE, `${name}\n`)
      await act(context)
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
}

/** @param {number} ms */
async function failLater(ms) {
  await pause(ms)
  throw new Error('the audit log is gone')
}

export const good = doing('good', () => {})

/** A promise that nobody awaits is rejected while the handler is still at work. */
export const stray = doing('stray', async ({ signal }) => {
  void failLater(5)
  // It would wait for ever: what ends its turn is the rejection.
  await new Promise((resolve) => {
    signal.addEventListener('abort', resolve)
  })
})

/** The same, when its turn is long over. */
export const strayLate = doing('stray_late', () => {
  void failLater(50)
})

export const timer = doing('timer', async () => {
  setTimeout(() => {
    throw new Error('thrown in a timer')
  }, 5)
  await new Promise(() => {})
})

// oxlint-disable-next-line unicorn/no-process-exit -- what it does is what is tried
export const exits = doing('exits', () => process.exit(3))

export const kills = doing('kills', () => {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
})

export const swells = doing('swells', () => {
  const all = []
  for (;;) all.push(Array.from({ length: 100_000 }, (_, index) => ({ index })))
})

export const spins = doing('spins', () => {
  for (;;) Math.sqrt(2)
})

export const spinsLater = doing('spins_later', async () => {
  await pause(1)
  for (;;) Math.sqrt(2)
})
