import type { AddressInfo } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { promisify } from 'node:util'
import type { FastifyInstance } from 'fastify'
import type { Client } from '@impresario/client'
import type { Engine } from '@impresario/engine'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import { pageBounds, waitsBytesMax } from './limits/admission-service.ts'
import { refuseEarly } from './limits/early-refusal.ts'
import { guardRoutes } from './http/access.ts'
import type { DeclaredRoute } from './http/access.ts'
import { collectRoutes } from './client-api/api-document.ts'
import type { ApiDescription, ApiDocument } from './client-api/api-document.ts'
import type { ReloadScope } from './client-api/admin-routes.ts'
import { AgentAuth } from './auth/agent-auth.ts'
import { AgentSessions } from './auth/agent-sessions.ts'
import { ClientAuth, OPEN_CALLER } from './auth/auth.ts'
import { Capabilities } from './auth/capabilities.ts'
import { apiVersionRewriter, registerClientApi } from './client-api/client-api.ts'
import type { DocumentsPort } from './client-api/document-routes.ts'
import { readOutsideFile } from '@impresario/mcp/outside'
import { settingsOf } from './config/config.ts'
import { oauthChoice } from './config/oauth-keys.ts'
import { registerDashboard } from './dashboard/dashboard.ts'
import { dashboardLink } from './dashboard/session-routes.ts'
import { Sessions } from './dashboard/sessions.ts'
import { OpenWaits } from './http/connection.ts'
import { loadCredentials } from './auth/credentials.ts'
import type { Credentials } from './auth/credentials.ts'
import { CredentialBook } from './auth/credential-book.ts'
import type { Reloaded } from './auth/credential-book.ts'
import { measureRequests } from './metrics/http-metrics.ts'
import { traceRequests } from './telemetry/request-spans.ts'
import type { Health } from './orchestrator/health.ts'
import { createHttp } from './http/http.ts'
import type { LocalClientOptions } from './client-api/local-client.ts'
import type { LocalTransport } from './worker-protocol/local-transport.ts'
import { createOrchestrator } from './orchestrator.ts'
import type { Orchestrator, OrchestratorOptions, Parts } from './orchestrator.ts'
import { protectRoutes, trustedProxies } from './protection.ts'
import { QuotaCalendar } from './limits/quota-calendar.ts'
import { MemoryRateLimiter } from './limits/rate-limiter.ts'
import type { RateLimiter } from './limits/rate-limiter.ts'
import type { IsClient } from './config/schedules.ts'
import { SharedReload } from './shared-reload.ts'
import { SharedRateLimiter } from './limits/shared-rate-limiter.ts'
import { isShared, shownAddress } from './orchestrator/storage.ts'
import { registerMcpRoutes } from './mcp/mcp-routes.ts'
import { outsideServers } from './mcp/outside-tools.ts'
import { registerOldApi } from './old-api/old-api.ts'
import { loadTls, reloadTls } from './http/tls.ts'
import type { SocketBounds } from './worker-api/socket-bounds.ts'
import type { Sockets } from './worker-api/sockets.ts'
import type { TlsOptions, TlsReloaded } from './http/tls.ts'
import { VERSION } from './runtime/version.ts'
import { errorFields } from './runtime/log.ts'
import { StallWatch } from './runtime/stall-watch.ts'
import { within } from './runtime/within.ts'
import { registerWorkerApi } from './worker-api/worker-api.ts'

export interface ServerOptions extends OrchestratorOptions {
  /** The documents app, for its routes. The caller starts it after the server and stops it before. */
  readonly documents?: DocumentsPort
  /** Instead of the one in memory, or the one that counts for all instances on a shared storage. */
  readonly rateLimiter?: RateLimiter
  /** What the sockets of workers may do, where it differs from the limits of the protocol. */
  readonly socketBounds?: Partial<SocketBounds>
}

/** What HTTP needs beside the orchestrator. */
interface HttpParts {
  readonly documents: DocumentsPort | undefined
  readonly credentials: Credentials
  readonly oauth: ReturnType<typeof oauthChoice>
  readonly waits: OpenWaits
  readonly limiter: RateLimiter
  readonly tls: TlsOptions | undefined
  readonly socketBounds: Partial<SocketBounds> | undefined
  readonly reload: () => Promise<ServerReloaded>
  readonly reloadSchedules: () => Promise<number>
  /** Lets other instances reload too. Gives whom it reaches. */
  readonly announceReload: () => Promise<ReloadScope>
}

/** The outcome of a reload of all files. */
type ServerReloaded =
  | (Extract<Reloaded, { status: 'reloaded' }> & { readonly schedules: number })
  | Extract<Reloaded, { status: 'refused' }>

function observeRequests(app: FastifyInstance, { metrics, telemetry }: Parts): void {
  measureRequests(app, metrics)
  traceRequests(app, telemetry.calls)
}

/** Puts an orchestrator together. Refuses a configuration that cannot work, or that is open to everybody. */
export function createServer(options: ServerOptions = {}): Server {
  return new Server(options)
}

/**
 * An orchestrator that is reachable over HTTP.
 *
 * `new` → `start` → running → `stop` → stopped, for good. A start that fails has closed what it had opened.
 */
export class Server {
  readonly engine: Engine
  readonly #orchestrator: Orchestrator
  readonly #waits: OpenWaits
  readonly #app: FastifyInstance
  readonly #routes: () => readonly DeclaredRoute[]
  readonly #description: ApiDescription
  readonly #book: CredentialBook
  readonly #gate: AgentAuth
  readonly #sockets: Sockets
  readonly #sessions: Sessions
  /** Those on the same storage; none where it cannot be shared. */
  readonly #others: SharedReload | undefined
  #address: string | undefined
  readonly #stallWatch: StallWatch
  #unwatchCredentials: (() => void) | undefined
  /** MCP servers of others whose tools pipelines use. */
  readonly #outside: ReturnType<typeof outsideServers>

  constructor(options: ServerOptions) {
    const settings = settingsOf(options.settings)
    // Before the storage is opened: a refusal must leave nothing behind.
    const http: Omit<HttpParts, 'limiter'> = {
      credentials: loadCredentials(settings),
      oauth: oauthChoice(settings),
      tls: loadTls(settings),
      waits: new OpenWaits(waitsBytesMax()),
      socketBounds: options.socketBounds,
      documents: options.documents,
      reload: () => this.reload(),
      reloadSchedules: () => this.reloadSchedules(),
      announceReload: () => this.#announceReload(),
    }
    const { mcpServersConfigPath: outsidePath } = settings
    const outside = outsidePath === '' ? [] : readOutsideFile(outsidePath)
    const isClient: IsClient = (id) => knowsClient(this.#book?.current ?? http.credentials, id)
    const clients = (): Credentials['clients'] => (this.#book?.current ?? http.credentials).clients
    this.#orchestrator = createOrchestrator({ ...options, settings, isClient, clients })
    this.#waits = http.waits
    this.engine = this.#orchestrator.engine
    const { parts } = this.#orchestrator
    const { automations, log } = parts
    const { documents } = options
    if (documents?.metricsText !== undefined) parts.metrics.addSource(() => documents.metricsText?.() ?? '')
    this.#outside = outsideServers({
      path: outsidePath,
      configs: outside,
      log,
      tools: automations.tools,
      onChange: () => automations.toolsChanged(),
    })
    this.#stallWatch = new StallWatch(settings.stallLimitSeconds * 1_000)
    const limiter = options.rateLimiter ?? limiterFor(parts)
    if (isShared(settings.storageUrl)) this.#others = new SharedReload({ ...parts, reload: () => this.reload() })
    const { app, routes, description, book, gate, sockets, sessions } = this.#frontendOf({ ...parts, ...http, limiter })
    this.#sessions = sessions
    this.#app = app
    this.#book = book
    this.#gate = gate
    this.#sockets = sockets
    this.#routes = routes
    this.#description = description
  }

  /** A refusal lets go of the storage, which is open by now. */
  #frontendOf(parts: Parts & HttpParts): ReturnType<typeof buildHttp> {
    try {
      return buildHttp(parts)
    } catch (error) {
      void this.#orchestrator.stop()
      throw error
    }
  }

  /** Where it listens, such as `http://127.0.0.1:8080`; `undefined` until it does. */
  get address(): string | undefined {
    return this.#address
  }

  /** Requests that are held until something happens: polls of workers, waits of clients. */
  get waiting(): number {
    return this.#waits.size
  }

  async start(): Promise<{ readonly address: string }> {
    const { settings, health, log, blueprints } = this.#orchestrator.parts
    // Before the engine, whose first turn may be the one that never ends.
    this.#stallWatch.start()
    try {
      await this.#orchestrator.start()
      await this.#others?.start()
      // One that hangs must not hold up the start.
      void this.#outside?.start()
      this.#gate.start()
      await listen(this.#app, settings.apiHost, settings.apiPort)
    } catch (error) {
      await this.stop()
      await this.#closeFrontend()
      throw error
    }
    if (settings.credentialsWatch) this.#unwatchCredentials = this.#book.watch()
    const address = addressOf(this.#app)
    this.#address = address
    health.mark('ok')
    log.info('listening', { address, storage: shownAddress(settings.storageUrl), blueprints: blueprints.list().length })
    return { address }
  }

  /** Takes no more work, lets what is running finish within the time limit, and makes everything durable. */
  stop(): Promise<void> {
    this.#unwatchCredentials?.()
    this.#stallWatch.stop()
    void this.#outside?.stop()
    return this.#orchestrator.stopWith({ drain: () => this.#drain(), close: () => this.#closeFrontend() })
  }

  /**
   * It is not ready any more, sockets and waits end, and every answer closes its connection; everything else is served as
   * before. So load balancers have time to notice, and no request meets a closed port.
   */
  async #drain(): Promise<void> {
    const { settings, clock, log } = this.#orchestrator.parts
    const drainMs = settings.shutdownDrainSeconds * 1_000
    await this.#others?.stop()
    this.#gate.stop()
    this.#sockets.stop()
    if (drainMs > 0 && this.#address !== undefined) {
      log.info('draining', { drain_ms: drainMs })
      this.#waits.shorten(DRAINING_WAIT_MS)
      await clock.sleep(drainMs, NEVER)
      await this.#shutDoor()
    }
    this.#waits.stop()
  }

  /**
   * New connections are refused, so that clients go to another instance before they have sent anything. Idle connections
   * are closed. Requests that are under way are served, and their connections are closed with the reply.
   */
  async #shutDoor(): Promise<void> {
    const { clock } = this.#orchestrator.parts
    const { server } = this.#app
    server.close()
    server.closeIdleConnections()
    const count = promisify(server.getConnections.bind(server))
    for (let waitedMs = 0; waitedMs < LEAVING_MS; waitedMs += LEAVING_LOOK_MS) {
      if ((await count()) === 0) return
      await clock.sleep(LEAVING_LOOK_MS, NEVER)
    }
  }

  async #closeFrontend(): Promise<void> {
    await within(CLOSE_MS, this.#app.close())
    this.#app.server.closeAllConnections()
  }

  /**
   * A client of this process, with everything that one over HTTP has, in the name of `options.id`, else of a client called
   * `default`. It needs no token, and knows neither quotas nor rate limits.
   */
  client(options: LocalClientOptions = {}): Client {
    const { settings } = this.#orchestrator.parts
    return this.#orchestrator.client(options, {
      base: () => (settings.publicUrl === '' ? (this.#address ?? '') : settings.publicUrl),
      reload: async () => {
        const { clients, workers, schedules } = mustBeReloaded(await this.reload())
        return { clients, workers, schedules, scope: await this.#announceReload() }
      },
      clients: () => this.#book.current.clients,
    })
  }

  /** Where the dashboard opens and signs in as this client, once; `page` is one of its paths, such as `jobs/<id>`. */
  dashboardLink(clientId: string, page = ''): string {
    return `${this.#address ?? ''}${dashboardLink(this.#sessions, clientId, page).path}`
  }

  /** For workers of this process: `createWorker({ transport: server.localTransport() })`. */
  localTransport(): LocalTransport {
    return this.#orchestrator.localTransport()
  }

  /**
   * Reloads the files of clients and workers. Tokens that are gone stop working at once; files with errors change
   * nothing.
   */
  reloadCredentials(): Reloaded {
    return this.#book.reload()
  }

  /** Reloads certificate and key, for all new connections. Those that are open stay. */
  reloadTls(): TlsReloaded {
    const { settings, log } = this.#orchestrator.parts
    return reloadTls(this.#app.server, settings, log)
  }

  /** Reloads the file of schedules: all of it, or nothing when something in it is wrong. Returns their number. */
  reloadSchedules(): Promise<number> {
    return this.#orchestrator.reloadSchedules()
  }

  /**
   * Reloads the files of clients, workers and schedules. Schedules may name clients that come with the same reload, so
   * they are looked at first; when any of the files is wrong, all of them stay as they were.
   */
  async reload(): Promise<ServerReloaded> {
    const { settings, log } = this.#orchestrator.parts
    try {
      const coming = loadCredentials(settings)
      const schedules = await this.#orchestrator.reloadSchedules((id) => knowsClient(coming, id))
      const reloaded = this.#book.reload()
      return reloaded.status === 'refused' ? reloaded : { ...reloaded, schedules }
    } catch (error) {
      if (!isImpresarioError(error, 'INVALID_CONFIGURATION')) throw error
      log.error('nothing was reloaded; what was in force before still is', { error: error.message })
      return { status: 'refused', error: error.message }
    }
  }

  async #announceReload(): Promise<ReloadScope> {
    await this.#others?.announce()
    return this.#others === undefined ? 'this_instance' : 'all_instances'
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
}

function mustBeReloaded(outcome: ServerReloaded): Extract<ServerReloaded, { status: 'reloaded' }> {
  if (outcome.status === 'reloaded') return outcome
  throw new ImpresarioError('INVALID_REQUEST', `Nothing was reloaded: ${outcome.error}`)
}

/** Without any tokens everybody is the one client that jobs then belong to. */
function knowsClient({ clients }: Credentials, id: string): boolean {
  return clients.length === 0 ? id === OPEN_CALLER.client.id : clients.some(({ client }) => client.id === id)
}

/** Instances that share a storage also share their limits. */
function limiterFor({ settings, storage, log }: Parts): RateLimiter {
  return isShared(settings.storageUrl) ? new SharedRateLimiter({ storage, log }) : new MemoryRateLimiter()
}

/** Who asks to wait while we are about to stop is soon sent elsewhere, and yet does not ask again and again. */
const DRAINING_WAIT_MS = 1_000
const NEVER = new AbortController().signal

/** Those who came in last have this long; waits have ended by then. */
const LEAVING_MS = 1_500
const LEAVING_LOOK_MS = 20

/** What is still being answered gets this long; the rest is cut. */
const CLOSE_MS = 1_000

function buildHttp(parts: Parts & HttpParts): {
  readonly app: FastifyInstance
  readonly routes: () => readonly DeclaredRoute[]
  readonly description: ApiDescription
  readonly book: CredentialBook
  readonly gate: AgentAuth
  readonly sockets: Sockets
  readonly sessions: Sessions
} {
  const { settings, credentials, clock, log, blueprints, limiter } = parts
  const { clientApiPrefix, publicUrl } = settings
  const rewriteUrl = apiVersionRewriter(clientApiPrefix, blueprints)
  const trustProxy = trustedProxies(settings.trustProxy)
  const app = createHttp({ bodyLimitBytes: settings.bodyLimitBytes, log, rewriteUrl, trustProxy, tls: parts.tls })
  const isOpen = credentials.clients.length === 0 && credentials.workers.isEmpty
  const { admission, shedding, isBusy } = parts.admissionService
  refuseEarly(app, shedding)
  const guards = protectRoutes(app, { settings, limiter, clock, log, isOpen, admission, pages: pageBounds(), isBusy })
  observeRequests(app, parts)
  refuseWhileStopping(app, parts.health)
  const clientAuth = new ClientAuth(credentials.clients)
  const book = new CredentialBook(settings, log, credentials)
  book.onChange(({ after, ...change }) => {
    clientAuth.replace(after.clients)
    workerApi.auth.replace(after.workers)
    workerApi.sockets.lookAgain()
    parts.waits.cut(({ caller, workerId, headers }) =>
      caller === undefined
        ? workerId !== undefined && change.hasLostWorker(workerId)
        : caller.scopes === undefined && !sessions.admits(headers),
    )
  })
  const sessions = new Sessions({ ...parts, auth: clientAuth, publicUrl })
  const agentSessions = new AgentSessions(parts)
  const gate = new AgentAuth({ ...parts, clients: sessions, agentSessions })
  gate.onChange((agentId) => {
    void cutRevoked(gate, parts, agentId)
  })
  const routes = guardRoutes(app, gate)
  collectRoutes(app, VERSION, publicUrl)
  const workerApi = registerWorkerApi(app, { ...parts, ...guards, admission })
  const description = registerClientApi(app, {
    ...parts,
    mustNotBeEnded: (headers) => sessions.mustNotBeEnded(headers),
    clientApiPrefix,
    publicUrl,
    gate,
    capabilities: new Capabilities(parts.secretKey, clock),
    reload: () => parts.reload(),
    reloadSchedules: () => parts.reloadSchedules(),
    announceReload: () => parts.announceReload(),
    clients: () => book.current.clients,
    quotas: new QuotaCalendar(clock, settings.timeZone),
    timeZone: settings.timeZone,
    metricsToken: settings.metricsToken,
    bodyLimitBytes: settings.bodyLimitBytes,
    rateLimit:
      isOpen || !settings.rateLimitingEnabled
        ? undefined
        : { limit: settings.rateLimitGeneral, periodSeconds: settings.rateLimitPeriodSeconds },
  })
  const closeMcp = settings.mcpEnabled ? registerMcpRoutes(app, { ...parts, ...guards }) : undefined
  app.addHook('onClose', async () => {
    parts.changeStreams.close()
    await closeMcp?.()
  })
  if (settings.oldApiEnabled) registerOldApi(app, { ...parts, agentSessions })
  registerDashboard(app, { ...parts, sessions, clientApiPrefix, publicUrl })
  return { app, routes, description, book, gate, sockets: workerApi.sockets, sessions }
}

/** Waits of an agent end with the token that they came with. */
async function cutRevoked(gate: AgentAuth, { waits, log }: Parts & HttpParts, agentId: string): Promise<void> {
  try {
    const isValid = await gate.validFor(agentId)
    waits.cut(
      ({ caller, headers }) => caller?.client.id === agentId && caller.scopes !== undefined && !isValid(headers),
    )
  } catch (error) {
    log.warn('an agent that was changed could not be read; its open waits stay', errorFields(error))
  }
}

/** Results and signs of life are taken to the last; connections close with their next answer. */
function refuseWhileStopping(app: FastifyInstance, health: Health): void {
  app.addHook('onRequest', ({ url }, _reply, done) => {
    const isServed = !health.isStopping || url.startsWith('/_worker/') || url.startsWith('/_public/')
    done(isServed ? undefined : new ImpresarioError('SHUTTING_DOWN', 'The server is shutting down.'))
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (health.isLeaving) void reply.header('connection', 'close')
    done(null, payload)
  })
}

/**
 * Connections that may wait to be taken. Those beyond are dropped by the operating system, and their clients try again after one, three
 * and seven seconds; thousands of workers come back at once after a restart.
 */
const BACKLOG = 4_096

/** Says what to do about an address that cannot be had; the operating system only has its codes. */
async function listen(app: FastifyInstance, host: string, port: number): Promise<void> {
  try {
    await app.listen({ host, port, backlog: BACKLOG })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    const advice = typeof code === 'string' ? LISTEN_ADVICE[code] : undefined
    if (advice === undefined) throw cause
    const message = `Cannot listen on ${host}, port ${port} (${String(code)}): ${advice}`
    throw new ImpresarioError('INVALID_CONFIGURATION', message, { cause, details: { listen: String(code) } })
  }
}

const LISTEN_ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program has it. Stop that one, or set API_PORT to another port.',
  EACCES: 'ports below 1024 need special rights. Set API_PORT to a higher one, and let a proxy have the low one.',
  EADDRNOTAVAIL: 'this machine does not have that address. Set API_HOST to one that it has; 0.0.0.0 means all of them.',
  ENOTFOUND: 'that name has no address. Set API_HOST to an address of this machine.',
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
