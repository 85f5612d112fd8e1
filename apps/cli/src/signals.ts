import type { Screen } from './screen.ts'

interface StopOptions {
  readonly signals: StopSignals
  readonly screen: Screen
  /** What a stop will wait for, as a sentence. */
  readonly waitsFor: () => string
  readonly stop: () => Promise<void>
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const
type StopSignal = keyof typeof SIGNALS

/**
 * Until `hold` a signal ends the process at once, as it does without us. From then on the first one is kept for
 * `untilStopped`, and the second ends it. To be made before a server starts: what comes between its first word and our
 * waiting must not be lost.
 */
export class StopSignals {
  readonly first: Promise<StopSignal>
  #isHeld = false

  constructor() {
    this.first = new Promise((resolve) => {
      for (const signal of Object.keys(SIGNALS) as StopSignal[]) {
        process.on(signal, () => {
          if (!this.#isHeld) process.exit(SIGNALS[signal])
          this.#isHeld = false
          resolve(signal)
        })
      }
    })
  }

  hold(): void {
    this.#isHeld = true
  }
}

/** Resolves when the process was told to end and has stopped. A second signal ends it at once. */
export async function untilStopped({ signals, screen, waitsFor, stop }: StopOptions): Promise<void> {
  const signal = await signals.first
  const again = signal === 'SIGINT' ? 'Press Ctrl-C again' : 'Send the signal again'
  screen.err(`\nStopping: ${waitsFor()} ${again} to stop at once.`)
  await stop()
  screen.err('Stopped.')
}
