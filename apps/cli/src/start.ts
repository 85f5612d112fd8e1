import type { ClientDocuments } from '@impresario/documents'
import type { Server, Settings } from '@impresario/server'
import { endProcess } from './ending.ts'
import { EXIT } from './failure.ts'
import type { Screen } from './screen.ts'
import { screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { StopSignals, untilStopped } from './signals.ts'

/** A server for production: what it does is in its log, and in its configuration what it may do. */
export async function start(options: GlobalOptions): Promise<number> {
  // Settings are read before the server's code is: a refusal comes at once.
  const { doubtfulVariables, loadSettings } = await import('@impresario/server/config')
  const settings = loadSettings({ environment: process.env, directory: process.cwd() })
  const { consoleIntoLog, createLog, createServer, loadBlueprints } = await import('@impresario/server')
  const { logLevel: level, logFormat: format, timeZone, instanceId: instance } = settings
  const log = createLog({ level, format, timeZone, instance })
  if (format === 'json') consoleIntoLog(log)
  for (const warning of doubtfulVariables(process.env)) log.warn(warning)
  const screen = screenFor(options)
  // Before the storage is opened: blueprints that cannot be loaded must not lock it.
  const loaded = settings.blueprintsDir === '' ? [] : await loadBlueprints(settings.blueprintsDir)
  const signals = new StopSignals()
  const documents = await documentsOf(settings)
  const parts = documents === undefined ? {} : { documents, blueprints: [documents.blueprint] }
  const server = createServer({
    settings,
    loaded,
    log,
    guardsProcess: true,
    onFatal: (error) => end(error, screen),
    ...parts,
  })
  await server.start()
  await documents?.start(server)
  signals.hold()
  process.on('SIGHUP', () => {
    void reload(server, screen)
  })
  await untilStopped({
    signals,
    screen,
    waitsFor: () => {
      const { shutdownDrainSeconds: drainS, shutdownTimeoutSeconds: stopS } = settings
      return `waiting up to ${drainS + stopS} s for running work.`
    },
    stop: async () => {
      await documents?.stop()
      await server.stop()
    },
  })
  return EXIT.ok
}

/** The documents app, where the configuration names its file. A file that is wrong is refused before anything is opened. */
async function documentsOf({
  documentsConfigPath,
  documentsDirectory,
  storageUrl,
}: Settings): Promise<ClientDocuments | undefined> {
  if (documentsConfigPath === '') return undefined
  const { ClientDocuments: Documents, loadDocumentsConfig } = await import('@impresario/documents')
  const { makeDirectory } = await import('@impresario/server')
  const config = loadDocumentsConfig(documentsConfigPath)
  makeDirectory('DOCUMENTS_DIR', documentsDirectory)
  const shared = /^postgres(?:ql)?:/.test(storageUrl) ? { postgresUrl: storageUrl } : {}
  return new Documents({ directory: documentsDirectory, config, ...shared })
}

/** The storage has failed. Nothing more can be acknowledged; what was acknowledged is on disk. */
function end(error: Error, screen: Screen): void {
  screen.err(`${screen.paint('red', '✗')} The storage failed, so the server stops: ${error.message}`)
  void endProcess(EXIT.storageFailed)
}

/** Reloads the certificate, clients, workers and schedules. Files with errors change nothing; the log says so. */
async function reload(server: Server, screen: Screen): Promise<void> {
  try {
    server.reloadTls()
    await server.reload()
  } catch (error) {
    // A bug, or a storage that is gone: a server that runs goes on running.
    screen.err(`The reload failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  }
}
