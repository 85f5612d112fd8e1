import type { AddressInfo } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import type { Clock, Log, Random, RunnableBlueprint, Schedule, Storage, Strategy } from '@impresario/core'
import { Engine } from '@impresario/engine'
import { ImpresarioError } from '@impresario/protocol'
import type { OutboundPolicy } from '@impresario/webhooks'
import { guardRoutes } from './access.ts'
import type { DeclaredRoute } from './access.ts'
import { collectRoutes } from './api-document.ts'
import type { ApiDescription, ApiDocument } from './api-document.ts'
import { ClientAuth } from './auth.ts'
import { BlueprintLibrary } from './blueprint-library.ts'
import { loadBlueprints, watchDirectory } from './blueprint-loader.ts'
import { Capabilities } from './capabilities.ts'
import { apiVersionRewriter, registerClientApi } from './client-api.ts'
import { createClock } from './clock.ts'
import { settingsOf } from './config.ts'
import type { Settings } from './config.ts'
import { OpenWaits } from './connection.ts'
import { loadCredentials } from './credentials.ts'
import type { Credentials } from './credentials.ts'
import { CredentialBook } from './credential-book.ts'
import type { Reloaded } from './credential-book.ts'
import { Health } from './health.ts'
import { trailHistory } from './history.ts'
import { createHttp } from './http.ts'
import { createLocalTransport } from './local-transport.ts'
import type { LocalTransport } from './local-transport.ts'
import { createLog, errorFields } from './log.ts'
import { protectRoutes, trustedProxies } from './protection.ts'
import { QuotaCalendar } from './quota-calendar.ts'
import { createRandom } from './random.ts'
import { MemoryRateLimiter } from './rate-limiter.ts'
import type { RateLimiter } from './rate-limiter.ts'
import { applySchedules, backgroundSettings, readSchedules } from './schedules.ts'
import { loadSecretKey } from './secret-key.ts'
import type { SecretKey } from './secret-key.ts'
import { directoryOf, openStorage } from './storage.ts'
import { VERSION } from './version.ts'
import { createWebhooks, webhookPolicy } from './webhook-service.ts'
import type { WebhookService } from './webhook-service.ts'
import { loadTls, reloadTls } from './tls.ts'
import type { SocketBounds } from './sockets.ts'
import type { TlsOptions } from './tls.ts'
import { registerWorkerApi } from './worker-api.ts'
import type { WorkerApi } from './worker-api.ts'

export interface ServerOptions {
  /** What differs from the defaults. `loadSettings` reads all of them from the environment. */
  readonly settings?: Partial<Settings>
  /** Blueprints that are registered in code. */
  readonly blueprints?: readonly RunnableBlueprint[]
  /** Ways to choose a worker beside those that are built in. */
  readonly strategies?: readonly Strategy[]
  /** Read the blueprints' directory anew when it changes. For development. */
  readonly watch?: boolean
  /** Instead of the one that `storageUrl` names. Whoever gives it closes it. */
  readonly storage?: Storage
  readonly log?: Log
  readonly clock?: Clock
  readonly random?: Random
  /** Instead of the one in memory: one that counts for several instances. */
  readonly rateLimiter?: RateLimiter
  /** What the sockets of workers may do, where it differs from the limits of the protocol. */
  readonly socketBounds?: Partial<SocketBounds>
  /** The storage has failed, and nothing can go on. Ends the process when it is not given. */
  readonly onFatal?: (error: Error) => void
}

interface Parts extends WebhookService {
  readonly settings: Settings
  readonly credentials: Credentials
  readonly clock: Clock
  readonly log: Log
  readonly storage: Storage
  readonly blueprints: BlueprintLibrary
  readonly engine: Engine
  readonly health: Health
  readonly waits: OpenWaits
  readonly limiter: RateLimiter
  readonly tls: TlsOptions | undefined
  readonly socketBounds: Partial<SocketBounds> | undefined
  readonly secretKey: SecretKey
  readonly webhookPolicy: OutboundPolicy
  readonly schedules: readonly Schedule[]
}

/** Puts an orchestrator together. Refuses a configuration that cannot work, or that is open to everybody. */
export function createServer(options: ServerOptions = {}): Server {
  return new Server(options)
}

/**
 * An orchestrator with its HTTP face.
 *
 * `new` → `start` → running → `stop` → stopped, for good. A start that fails has closed what it had opened.
 */
export class Server {
  readonly engine: Engine
  readonly #options: ServerOptions
  readonly #parts: Parts
  readonly #app: FastifyInstance
  readonly #routes: () => readonly DeclaredRoute[]
  readonly #description: ApiDescription
  readonly #workerApi: WorkerApi
  readonly #book: CredentialBook
  #address: string | undefined
  #unwatch: (() => void) | undefined
  #unwatchCredentials: (() => void) | undefined
  #stopped: Promise<void> | undefined

  constructor(options: ServerOptions) {
    this.#options = options
    this.#parts = compose(options)
    this.engine = this.#parts.engine
    const { app, routes, description, workerApi, book } = buildHttp(this.#parts)
    this.#app = app
    this.#workerApi = workerApi
    this.#book = book
    this.#routes = routes
    this.#description = description
  }

  /** Where it listens, such as `http://127.0.0.1:8080`; `undefined` until it does. */
  get address(): string | undefined {
    return this.#address
  }

  /** Requests that are held until something happens: polls of workers, waits of clients. */
  get waiting(): number {
    return this.#parts.waits.size
  }

  async start(): Promise<{ readonly address: string }> {
    const { settings, engine, health, log } = this.#parts
    try {
      await this.#loadBlueprints()
      await applySchedules(engine.scheduler, settings.schedulesConfigPath, this.#parts.schedules)
      await engine.start()
      await this.#parts.sender.start()
      await this.#app.listen({ host: settings.apiHost, port: settings.apiPort })
    } catch (error) {
      await this.stop()
      throw error
    }
    if (settings.credentialsWatch) this.#unwatchCredentials = this.#book.watch()
    const address = addressOf(this.#app)
    this.#address = address
    health.mark('ok')
    log.info('listening', { address, storage: settings.storageUrl, blueprints: this.#parts.blueprints.list().length })
    return { address }
  }

  /** Takes no more work, lets what is running finish within the time limit, and makes everything durable. */
  stop(): Promise<void> {
    this.#stopped ??= this.#shutDown()
    return this.#stopped
  }

  /** For workers of this process: `createWorker({ transport: server.localTransport() })`. */
  localTransport(): LocalTransport {
    return createLocalTransport(this.engine, this.#workerApi.calls)
  }

  /**
   * Reads the files of clients and workers anew. Tokens that are gone stop working at once; files that are wrong change
   * nothing.
   */
  reloadCredentials(): Reloaded {
    return this.#book.reload()
  }

  /** Reads certificate and key anew, for all connections from now on. Those that are open stay. */
  reloadTls(): void {
    const validTo = reloadTls(this.#app.server, this.#parts.settings)
    if (validTo !== undefined) this.#parts.log.info('certificate reloaded', { valid_to: validTo })
  }

  /** Reads the file of schedules anew: all of it, or nothing when something in it cannot work. */
  async reloadSchedules(): Promise<void> {
    const { settings, webhookPolicy: policy, log } = this.#parts
    const schedules = readSchedules(settings, policy)
    await applySchedules(this.engine.scheduler, settings.schedulesConfigPath, schedules)
    log.info('schedules reloaded', { schedules: schedules.length })
  }

  /** Every route, as OpenAPI 3.1. Does not need a server that runs. */
  async apiDocument(): Promise<ApiDocument> {
    await this.#app.ready()
    return this.#description.document
  }

  /** Every route with who may call it. Does not need a server that runs. */
  async routes(): Promise<readonly DeclaredRoute[]> {
    await this.#app.ready()
    return this.#routes()
  }

  async #loadBlueprints(): Promise<void> {
    const { settings, blueprints, log } = this.#parts
    const directory = settings.blueprintsDir
    if (directory === '') return
    const isFresh = this.#options.watch === true
    const load = async (): Promise<void> => {
      const { warnings } = blueprints.replace(await loadBlueprints(directory, { isFresh }))
      for (const warning of warnings) log.warn(warning)
    }
    await load()
    if (!isFresh) return
    let loading = Promise.resolve()
    this.#unwatch = watchDirectory(directory, () => {
      // One after the other: an older load must not come in after a newer one.
      loading = loading.then(load).then(
        () => log.info('blueprints reloaded', { directory }),
        (error: unknown) => log.error('blueprints could not be reloaded; the old ones stay', errorFields(error)),
      )
    })
  }

  async #shutDown(): Promise<void> {
    const { engine, health, waits, storage, settings, log } = this.#parts
    log.info('stopping')
    this.#unwatch?.()
    this.#unwatchCredentials?.()
    health.mark('stopping')
    engine.desk.closePolls()
    waits.stop()
    try {
      // The face stays while handlers finish: workers can bring results, and readiness says what is going on.
      const stopped = Promise.all([engine.stop(), this.#parts.sender.stop()])
      const inTime = await within(settings.shutdownTimeoutSeconds * 1_000, stopped)
      if (!inTime) log.warn('the time to stop is up; what still runs is cut and repeated after the next start')
    } catch (error) {
      log.error('the engine did not stop cleanly', errorFields(error))
    }
    await within(CLOSE_MS, this.#app.close())
    this.#app.server.closeAllConnections()
    if (this.#options.storage === undefined) await storage.close()
    log.info('stopped')
  }
}

/** What is still being answered gets this long; the rest is cut. */
const CLOSE_MS = 1_000

/** Whether the work ended before the time was up. What it throws is passed on. */
async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms)
  })
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

/** Nobody catches it there, so it ends the process. */
function throwOutside(error: Error): void {
  setImmediate(() => {
    throw error
  })
}

function compose(options: ServerOptions): Parts {
  const settings = settingsOf(options.settings)
  // Before the storage is opened: a refusal must leave nothing behind.
  const credentials = loadCredentials(settings)
  const tls = loadTls(settings)
  const policy = webhookPolicy(settings)
  const schedules = readSchedules(settings, policy)
  const clock = options.clock ?? createClock()
  const random = options.random ?? createRandom(() => clock.now())
  const { logLevel: level, logFormat: format, timeZone, instanceId: instance } = settings
  const log = options.log ?? createLog({ level, format, timeZone, instance })
  const attemptsMax = settings.jobMaxRetries + 1
  const blueprints = new BlueprintLibrary(options.blueprints ?? [], {
    taskAttemptsMax: attemptsMax,
    handlerAttemptsMax: attemptsMax,
    transitionsMax: settings.maxTransitionsPerJob,
    runTimeoutMs: settings.workerTimeoutSeconds * 1_000,
  })
  const health = new Health()
  const onFailure = (error: Error): void => {
    health.storageFailed()
    log.error('the storage failed and this process stops; what was acknowledged is safe', errorFields(error))
    const stop = options.onFatal ?? throwOutside
    stop(error)
  }
  const storage = options.storage ?? openStorage(settings.storageUrl, { clock, onFailure })
  const engine = new Engine({
    storage,
    blueprints,
    clock,
    random,
    log,
    settings: {
      executorConcurrencyMax: settings.executorMaxConcurrentJobs,
      workerLeaseMs: settings.workerLeaseSeconds * 1_000,
      workerTtlMs: settings.workerHealthCheckIntervalSeconds * 2_000,
      pickupMs: settings.workerPickupSeconds * 1_000,
      ...backgroundSettings(settings),
    },
    ...(options.strategies === undefined ? {} : { strategies: options.strategies }),
  })
  const directory = options.storage === undefined ? directoryOf(settings.storageUrl) : undefined
  const secretKey = loadSecretKey(settings.secretKey, directory)
  const waits = new OpenWaits()
  const limiter = options.rateLimiter ?? new MemoryRateLimiter()
  const webhooks = createWebhooks(settings, policy, { storage, clock, random, log, secretKey })
  const told = { ...webhooks, webhookPolicy: policy, schedules, socketBounds: options.socketBounds }
  return {
    settings,
    credentials,
    clock,
    log,
    storage,
    blueprints,
    engine,
    health,
    waits,
    limiter,
    tls,
    secretKey,
    ...told,
  }
}

function buildHttp(parts: Parts): {
  readonly app: FastifyInstance
  readonly routes: () => readonly DeclaredRoute[]
  readonly description: ApiDescription
  readonly workerApi: WorkerApi
  readonly book: CredentialBook
} {
  const { settings, credentials, engine, clock, log, blueprints } = parts
  const { clientApiPrefix, publicUrl } = settings
  const rewriteUrl = apiVersionRewriter(clientApiPrefix, blueprints)
  const trustProxy = trustedProxies(settings.trustProxy)
  const app = createHttp({ bodyLimitBytes: settings.bodyLimitBytes, log, rewriteUrl, trustProxy, tls: parts.tls })
  const isOpen = credentials.clients.length === 0 && credentials.workers.isEmpty
  protectRoutes(app, { settings, limiter: parts.limiter, clock, log, isOpen })
  refuseWhileStopping(app, parts.health)
  const clientAuth = new ClientAuth(credentials.clients)
  const book = new CredentialBook(settings, log, credentials)
  book.onChange(({ after, hasLostWorker }) => {
    clientAuth.replace(after.clients)
    workerApi.auth.replace(after.workers)
    workerApi.sockets.lookAgain()
    parts.waits.cut(({ caller, workerId, headers }) =>
      caller === undefined ? workerId !== undefined && hasLostWorker(workerId) : !clientAuth.admits(headers),
    )
  })
  const routes = guardRoutes(app, clientAuth)
  collectRoutes(app, VERSION)
  const workerApi = registerWorkerApi(app, parts)
  const description = registerClientApi(app, {
    ...parts,
    clientApiPrefix,
    publicUrl,
    gate: clientAuth,
    capabilities: new Capabilities(parts.secretKey, clock),
    history: trailHistory(engine),
    reload: () => book.reload(),
    quotas: new QuotaCalendar(clock, settings.timeZone),
    bodyLimitBytes: settings.bodyLimitBytes,
    rateLimit:
      isOpen || !settings.rateLimitingEnabled
        ? undefined
        : { limit: settings.rateLimitGeneral, periodSeconds: settings.rateLimitPeriodSeconds },
  })
  return { app, routes, description, workerApi, book }
}

/** Results and signs of life are taken to the last; connections close with their next answer. */
function refuseWhileStopping(app: FastifyInstance, health: Health): void {
  app.addHook('onRequest', async (request) => {
    if (!health.isStopping || request.url.startsWith('/_worker/') || request.url.startsWith('/_public/')) return
    throw new ImpresarioError('SHUTTING_DOWN', 'This server is shutting down.')
  })
  app.addHook('onSend', async (_request, reply) => {
    if (health.isStopping) void reply.header('connection', 'close')
  })
}

function addressOf(app: FastifyInstance): string {
  const found = app.server.address()
  if (!isAddressInfo(found)) throw new Error('The server listens on no port.')
  const scheme = app.server instanceof TlsServer ? 'https' : 'http'
  return `${scheme}://${found.family === 'IPv6' ? `[${found.address}]` : found.address}:${found.port}`
}

function isAddressInfo(value: unknown): value is AddressInfo {
  return typeof value === 'object' && value !== null && 'port' in value
}
