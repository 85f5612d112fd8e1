import type { Screen } from './screen.ts'

interface StopOptions {
  readonly screen: Screen
  /** What a stop will wait for, as a sentence. */
  readonly waitsFor: () => string
  readonly stop: () => Promise<void>
}

/** Resolves when the process was told to end and has stopped. A second signal ends it at once. */
export async function untilStopped({ screen, waitsFor, stop }: StopOptions): Promise<void> {
  const signal = await new Promise<NodeJS.Signals>((resolve) => {
    process.once('SIGINT', resolve)
    process.once('SIGTERM', resolve)
  })
  process.once('SIGINT', () => process.exit(130))
  process.once('SIGTERM', () => process.exit(143))
  screen.err(`\n${signal === 'SIGINT' ? 'Interrupted' : 'Told to end'}: ${waitsFor()} Once more ends it at once.`)
  await stop()
  screen.err('Stopped.')
}
