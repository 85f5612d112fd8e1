import type { Server } from '@impresario/server'
import { EXIT } from './failure.ts'
import type { Screen } from './screen.ts'
import { screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { untilStopped } from './signals.ts'

/** A server for production: what it does is in its log, and in its configuration what it may do. */
export async function start(options: GlobalOptions): Promise<number> {
  const { createServer, loadSettings } = await import('@impresario/server')
  const settings = loadSettings({ environment: process.env, directory: process.cwd() })
  const server = createServer({ settings })
  await server.start()
  const screen = screenFor(options)
  process.on('SIGHUP', () => {
    void reload(server, screen)
  })
  await untilStopped({
    screen,
    waitsFor: () => `waiting up to ${settings.shutdownTimeoutSeconds} s for what is running.`,
    stop: () => server.stop(),
  })
  return EXIT.ok
}

/** Reads credentials, certificate and schedules anew. What is wrong changes nothing; what came of it is in the log. */
async function reload(server: Server, screen: Screen): Promise<void> {
  server.reloadCredentials()
  server.reloadTls()
  await server.reloadSchedules().catch((error: unknown) => {
    screen.err(
      `The schedules were not reloaded; the old ones stay: ${error instanceof Error ? error.message : String(error)}`,
    )
  })
}
