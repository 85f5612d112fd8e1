import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Clock, Log, Random, RunnableBlueprint, Storage } from '@impresario/core'
import { Engine } from '@impresario/engine'
import { createMemoryStorage } from '@impresario/storage-embedded'
import { ClientAuth, WorkerAuth, hashToken } from './auth.ts'
import { BlueprintLibrary } from './blueprint-library.ts'
import { registerCatalogueRoutes } from './catalogue-routes.ts'
import { createClock } from './clock.ts'
import { settingsOf } from './config.ts'
import type { Settings } from './config.ts'
import { OpenWaits } from './connection.ts'
import { Health } from './health.ts'
import { createHttp } from './http.ts'
import { authenticateClients, registerJobRoutes } from './job-routes.ts'
import { createLog } from './log.ts'
import { registerApprovalRoute, registerPublicRoutes } from './public-routes.ts'
import { createRandom } from './random.ts'
import { registerWorkerRoutes } from './worker-routes.ts'

export interface ServerOptions {
  /** What differs from the defaults. */
  readonly settings?: Partial<Settings>
  /** Blueprints that are registered in code. */
  readonly blueprints?: readonly RunnableBlueprint[]
  /** Instead of the one that `storageUrl` names. */
  readonly storage?: Storage
  readonly log?: Log
  readonly clock?: Clock
  readonly random?: Random
}

export interface Server {
  readonly engine: Engine
  /** Where it listens, such as `http://127.0.0.1:8080`; `undefined` until it does. */
  readonly address: string | undefined
  start(): Promise<{ readonly address: string }>
  stop(): Promise<void>
}

export function createServer(options: ServerOptions = {}): Server {
  const settings = settingsOf(options.settings)
  const clock = options.clock ?? createClock()
  const random = options.random ?? createRandom(() => clock.now())
  const log =
    options.log ??
    createLog({
      level: settings.logLevel,
      format: settings.logFormat,
      timeZone: settings.timeZone,
      instance: settings.instanceId,
    })
  const storage = options.storage ?? createMemoryStorage({ now: () => clock.now() })
  const blueprints = new BlueprintLibrary(options.blueprints ?? [])
  const engine = new Engine({ storage, blueprints, clock, random, log })
  const health = new Health(storage)
  const waits = new OpenWaits()
  const app = createHttp({ bodyLimitBytes: settings.bodyLimitBytes, log })
  const clientAuth = new ClientAuth(
    settings.clientToken === '' ? [] : [{ tokenHash: hashToken(settings.clientToken), client: { id: 'default' } }],
  )
  const workerAuth = new WorkerAuth(
    { individual: new Map(), global: settings.workerToken === '' ? undefined : hashToken(settings.workerToken) },
    { allowOpen: true },
  )
  void app.register(
    async (scope) =>
      registerWorkerRoutes(scope, {
        desk: engine.desk,
        auth: workerAuth,
        clock,
        log,
        waits,
        pollMs: settings.workerPollTimeoutSeconds * 1_000,
      }),
    { prefix: '/_worker' },
  )
  for (const prefix of [`/${settings.clientApiPrefix}/v1`, `/${settings.clientApiPrefix}`]) {
    void app.register(
      async (scope) => {
        authenticateClients(scope, clientAuth)
        registerJobRoutes(scope, { engine, auth: clientAuth, blueprints, waits })
        registerCatalogueRoutes(scope, { engine, auth: clientAuth, blueprints, waits })
      },
      { prefix },
    )
  }
  void app.register(async (scope) => registerPublicRoutes(scope, { engine, auth: clientAuth, health }), {
    prefix: '/_public',
  })
  void app.register(async (scope) => registerApprovalRoute(scope, { engine, auth: clientAuth, health }), {
    prefix: '/_public',
  })
  let address: string | undefined
  return {
    engine,
    get address() {
      return address
    },
    start: async () => {
      await engine.start()
      await app.listen({ host: settings.apiHost, port: settings.apiPort })
      address = addressOf(app)
      health.mark('ok')
      return { address }
    },
    stop: async () => {
      health.mark('stopping')
      engine.desk.closePolls()
      waits.stop()
      await app.close()
      await engine.stop()
      await storage.close()
    },
  }
}

function addressOf(app: FastifyInstance): string {
  const { address, port, family } = app.server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
