import { EXIT } from './failure.ts'
import { screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { untilStopped } from './signals.ts'

/** A server for production: what it does is in its log, and in its configuration what it may do. */
export async function start(options: GlobalOptions): Promise<number> {
  const { createServer, loadSettings } = await import('@impresario/server')
  const settings = loadSettings({ environment: process.env, directory: process.cwd() })
  const server = createServer({ settings })
  await server.start()
  // What came of it is in the log.
  process.on('SIGHUP', () => {
    server.reloadCredentials()
    server.reloadTls()
  })
  await untilStopped({
    screen: screenFor(options),
    waitsFor: () => `waiting up to ${settings.shutdownTimeoutSeconds} s for what is running.`,
    stop: () => server.stop(),
  })
  return EXIT.ok
}
