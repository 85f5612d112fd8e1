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
    waitsFor: () => {
      const { shutdownDrainSeconds: drainS, shutdownTimeoutSeconds: stopS } = settings
      return `waiting up to ${drainS + stopS} s for what is running.`
    },
    stop: () => server.stop(),
  })
  return EXIT.ok
}

/** Reads the certificate, and clients, workers and schedules anew. Files that are wrong change nothing; the log says so. */
async function reload(server: Server, screen: Screen): Promise<void> {
  try {
    server.reloadTls()
    await server.reload()
  } catch (error) {
    // A bug, or a storage that is gone: a server that runs goes on running.
    screen.err(`The reload went wrong: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  }
}
