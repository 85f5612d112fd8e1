import { Client } from '@impresario/client'
import type { ClientTransport } from '@impresario/client'
import type { Clock, Log, Random, RunnableBlueprint, Schedule, Storage, Strategy } from '@impresario/core'
import { Engine } from '@impresario/engine'
import type { JobValues } from '@impresario/files'
import type { OutboundPolicy } from '@impresario/webhooks'
import type { AgentBook } from './auth/agent-book.ts'
import { createAutomations } from './automation-parts.ts'
import type { AutomationService } from './automations/automation-service.ts'
import type { AdmissionBounds } from './limits/admission.ts'
import { createAdmission } from './limits/admission-service.ts'
import type { AdmissionService } from './limits/admission-service.ts'
import { NO_FRONTEND } from './orchestrator/frontend.ts'
import type { Frontend } from './orchestrator/frontend.ts'
import { recordStorage } from './orchestrator/record-storage.ts'
import { ReloadableRegistry } from './orchestrator/reloadable-registry.ts'
import { BlueprintReload } from './orchestrator/blueprint-reload.ts'
import { loadBlueprints } from './orchestrator/blueprint-loader.ts'
import type { LoadedBlueprint } from './orchestrator/blueprint-loader.ts'
import { createClock } from './runtime/clock.ts'
import { settingsOf } from './config/config.ts'
import type { Settings } from './config/config.ts'
import { makeDirectory } from './config/data-directory.ts'
import { checkFileSettings } from './files/file-settings.ts'
import { createFiles } from './files/file-parts.ts'
import type { ClientLimits, FileParts } from './files/file-parts.ts'
import { engineSettings, identityOf } from './orchestrator/engine-settings.ts'
import { failureHandler, throwOutside } from './orchestrator/failure-handler.ts'
import { HandlerGuard } from './orchestrator/handler-guard.ts'
import { Health } from './orchestrator/health.ts'
import { createHistoryReader } from './orchestrator/history.ts'
import type { HistoryReader } from './orchestrator/history.ts'
import { openHistoryService, retentionOf } from './orchestrator/history-service.ts'
import type { HistoryService } from './orchestrator/history-service.ts'
import { GaugeReader } from './metrics/gauge-reader.ts'
import { countedHistory, countHot } from './metrics/job-metrics.ts'
import { Metrics } from './metrics/metrics.ts'
import type { LogFeed } from './telemetry/log-feed.ts'
import { logFeed, Telemetry } from './telemetry/telemetry.ts'
import { localClientTransport } from './client-api/local-client.ts'
import type { LocalClientOptions, LocalParts } from './client-api/local-client.ts'
import { ChangeStreams } from './client-api/change-streams.ts'
import type { StreamBounds } from './client-api/change-streams.ts'
import { Capabilities } from './auth/capabilities.ts'
import { QuotaCalendar } from './limits/quota-calendar.ts'
import { JobLines } from './orchestrator/job-lines.ts'
import { createLocalTransport } from './worker-protocol/local-transport.ts'
import type { LocalTransport } from './worker-protocol/local-transport.ts'
import { createLog, errorFields } from './runtime/log.ts'
import { IdleCollector } from './runtime/idle-collector.ts'
import { createRandom } from './runtime/random.ts'
import { applySchedules, readSchedules } from './config/schedules.ts'
import type { IsClient } from './config/schedules.ts'
import { loadSecretKey } from './config/secret-key.ts'
import type { SecretKey } from './config/secret-key.ts'
import { hasFileStore, isShared, KnownDurability, openStorage } from './orchestrator/storage.ts'
import { tellStranded } from './orchestrator/stranded-jobs.ts'
import { directoryOf } from './config/storage-choice.ts'
import { createWebhooks, webhookPolicy } from './orchestrator/webhook-service.ts'
import type { WebhookService } from './orchestrator/webhook-service.ts'
import { within } from './runtime/within.ts'
import { WorkerGateway } from './worker-protocol/worker-gateway.ts'
import { WriteProbe } from './orchestrator/write-probe.ts'

export interface OrchestratorOptions {
  /** What differs from the defaults. `loadSettings` reads all of them from the environment. */
  readonly settings?: Partial<Settings>
  /** Blueprints that are registered in code. */
  readonly blueprints?: readonly RunnableBlueprint[]
  /** What the blueprints' directory holds, read before. Without it the start reads it, when the storage is open already. */
  readonly loaded?: readonly LoadedBlueprint[]
  /** Ways to choose a worker beside those that are built in. */
  readonly strategies?: readonly Strategy[]
  /** Reload the blueprints' directory when it changes. For development. */
  readonly watch?: boolean
  /** With `watch`: check the types of the blueprints after each load, where TypeScript is installed, and log the errors. */
  readonly checksTypes?: boolean
  /** Instead of the one that `storageUrl` names. The caller closes it. */
  readonly storage?: Storage
  readonly log?: Log
  readonly clock?: Clock
  readonly random?: Random
  /** Whether schedules may name this client; without it, any. */
  readonly isClient?: (clientId: string) => boolean
  /** The limits that clients have of their own; without it, those of the settings hold for all. */
  readonly clients?: () => readonly ClientLimits[]
  /**
   * Catches what escapes from handlers (an unhandled rejection, an error in a timer, `process.exit`) and fails their
   * turn instead of the process. Also gives memory back when a load is over. Both concern the whole process, so that a program that
   * brings an orchestrator along has to ask for it. `impresario start` and `impresario dev` do.
   */
  readonly guardsProcess?: boolean
  /** Lets `http.request` and webhooks reach this machine (localhost), on any port. `impresario dev` does. */
  readonly reachesThisMachine?: boolean
  /** The storage has failed, and nothing can go on. Ends the process when it is not given. */
  readonly onFatal?: (error: Error) => void
  /** How much may be under way at once, where it differs from what the heap and the settings say. */
  readonly admissionBounds?: Partial<AdmissionBounds>
  /** How many streams of changes may be open and how often they say something, where it differs from the limits. */
  readonly streamBounds?: Partial<StreamBounds>
}

/** What an orchestrator is made of. */
export interface Parts extends WebhookService, FileParts {
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Log
  readonly storage: Storage
  readonly blueprints: ReloadableRegistry
  readonly engine: Engine
  readonly automations: AutomationService
  readonly agents: AgentBook
  readonly gateway: WorkerGateway
  readonly health: Health
  readonly guard: HandlerGuard
  /** Only where the storage is elsewhere: one in the process says by itself when a write fails. */
  readonly probe: WriteProbe | undefined
  /** What a database server promises; nothing while it is not open, and for a storage in the process. */
  readonly durability: KnownDurability
  /** For a storage that is not ready yet: who stops waits for it no longer. */
  readonly waiting: AbortController
  readonly secretKey: SecretKey
  readonly webhookPolicy: OutboundPolicy
  readonly schedules: readonly Schedule[]
  readonly history: HistoryReader
  readonly historyService: HistoryService
  readonly admissionService: AdmissionService
  readonly jobLines: JobLines
  readonly metrics: Metrics
  readonly gauges: GaugeReader
  readonly changeStreams: ChangeStreams
  readonly telemetry: Telemetry
}

/** An orchestrator inside this program, without a network: `createServer` adds the HTTP frontend to one. */
export function createOrchestrator(options: OrchestratorOptions = {}): Orchestrator {
  return new Orchestrator(options)
}

/**
 * Everything but the frontend: engine, storage, blueprints, schedules, webhooks.
 *
 * `new` → `start` → running → `stop` → stopped, for good. A start that fails has closed what it had opened.
 */
export class Orchestrator {
  readonly engine: Engine
  readonly parts: Parts
  readonly #options: OrchestratorOptions
  readonly #idleCollector = new IdleCollector()
  #unwatch: (() => void) | undefined
  #stopped: Promise<void> | undefined

  constructor(options: OrchestratorOptions) {
    this.#options = options
    this.parts = compose(options)
    this.engine = this.parts.engine
  }

  async start(): Promise<void> {
    const { settings, engine, health, sender, schedules, historyService, guard } = this.parts
    if (this.#options.guardsProcess === true) {
      guard.install()
      this.#idleCollector.start()
    }
    try {
      await this.#loadBlueprints()
      await this.parts.telemetry.start()
      await historyService.history.start()
      await this.parts.fileService.start()
      await applySchedules(engine.scheduler, settings.schedulesConfigPath, schedules)
      await engine.start()
      await sender.start()
      await this.parts.automations.start()
    } catch (error) {
      await this.stop()
      throw error
    }
    this.parts.admissionService.start()
    this.parts.probe?.start()
    this.parts.gauges.start()
    this.parts.jobLines.start()
    health.mark('ok')
    void tellStranded(this.parts, this.parts.waiting.signal)
  }

  /** Takes no more work, lets what is running finish within the time limit, and makes everything durable. */
  stop(): Promise<void> {
    this.#stopped ??= this.#shutDown(NO_FRONTEND)
    return this.#stopped
  }

  /** The same with a frontend around the orchestrator. */
  stopWith(frontend: Frontend): Promise<void> {
    this.#stopped ??= this.#shutDown(frontend)
    return this.#stopped
  }

  /**
   * A client of this process, with everything that one over HTTP has. It acts as the client `options.id`, which is `default`
   * if it is not given. `frontend`: what a server around the orchestrator adds.
   */
  client(
    options: LocalClientOptions = {},
    frontend: Partial<Pick<LocalParts, 'base' | 'reload' | 'clients'>> = {},
  ): Client {
    return new Client(this.clientTransport(options, frontend))
  }

  /** What `client` stands on: for programs that want to see or to repeat its calls. */
  clientTransport(
    options: LocalClientOptions = {},
    frontend: Partial<Pick<LocalParts, 'base' | 'reload' | 'clients'>> = {},
  ): ClientTransport {
    const { parts } = this
    const { clock, settings } = parts
    const local: LocalParts = {
      ...parts,
      timeZone: settings.timeZone,
      bodyLimitBytes: settings.bodyLimitBytes,
      rateLimit: undefined,
      capabilities: new Capabilities(parts.secretKey, clock),
      quotas: new QuotaCalendar(clock, settings.timeZone),
      base: () => settings.publicUrl,
      reload: async () => ({
        clients: 0,
        workers: 0,
        schedules: await this.reloadSchedules(),
        scope: 'this_instance' as const,
      }),
      ...frontend,
    }
    return localClientTransport(local, options)
  }

  /** For workers of this process: `createWorker({ transport: orchestrator.localTransport() })`. */
  localTransport(): LocalTransport {
    return createLocalTransport(this.parts.gateway, this.parts.taskFiles)
  }

  /** Reloads the file of schedules: all of it, or nothing when something in it is wrong. Returns their number. */
  async reloadSchedules(isClient: IsClient | undefined = this.#options.isClient): Promise<number> {
    const { settings, webhookPolicy: policy, log } = this.parts
    const schedules = readSchedules(settings, policy, isClient)
    await applySchedules(this.engine.scheduler, settings.schedulesConfigPath, schedules)
    log.info('schedules reloaded', { schedules: schedules.length })
    return schedules.length
  }

  async #loadBlueprints(): Promise<void> {
    const { settings, blueprints, engine, log } = this.parts
    const directory = settings.blueprintsDir
    if (directory === '') return
    if (this.#options.watch !== true) {
      if (this.#options.loaded !== undefined) return
      for (const warning of blueprints.replace(await loadBlueprints(directory)).warnings) log.warn(warning)
      return
    }
    const checksTypes = this.#options.checksTypes === true
    const reload = new BlueprintReload({ directory, blueprints, engine, log, checksTypes })
    this.#unwatch = () => reload.close()
    await reload.load()
  }

  async #shutDown(frontend: Frontend): Promise<void> {
    const { engine, health, storage, settings, log, sender, guard } = this.parts
    log.info('stopping')
    // Before anything that takes time: who asks whether it is ready shall send nothing more.
    health.mark('draining')
    this.parts.admissionService.stop()
    this.parts.probe?.stop()
    await this.#stopInTime(this.parts.gauges.stop(), 'the last reading of the metrics was cut')
    this.parts.waiting.abort()
    this.parts.changeStreams.close()
    this.#unwatch?.()
    await frontend.drain()
    health.mark('stopping')
    engine.desk.closePolls()
    try {
      // The frontend stays while handlers finish: workers can bring results, and readiness says what is going on.
      const stopped = this.parts.automations.stop().then(() => Promise.all([engine.stop(), sender.stop()]))
      const inTime = await within(settings.shutdownTimeoutSeconds * 1_000, stopped)
      if (!inTime) log.warn('the time to stop is up; what still runs is cut and repeated after the next start')
    } catch (error) {
      log.error('the engine did not stop cleanly', errorFields(error))
    }
    await frontend.close()
    await this.#stopInTime(this.parts.jobLines.stop(), 'the newest lines of jobs were not stored')
    await this.#closeHistory()
    await this.parts.fileService.stop()
    await this.parts.telemetry.stop()
    if (this.#options.storage === undefined) await storage.close()
    guard.uninstall()
    this.#idleCollector.stop()
    log.info('stopped')
  }

  /** A storage that hangs does not keep the process. */
  async #stopInTime(stopping: Promise<void>, otherwise: string): Promise<void> {
    const { settings, log } = this.parts
    try {
      if (!(await within(settings.shutdownTimeoutSeconds * 1_000, stopping))) log.warn(otherwise)
    } catch (error) {
      log.warn(otherwise, errorFields(error))
    }
  }

  /** Everything that has happened is written first. A disk that hangs does not keep the process. */
  async #closeHistory(): Promise<void> {
    const { historyService, log } = this.parts
    try {
      const inTime = await within(HISTORY_MS, historyService.history.close())
      if (!inTime) log.warn('the end of the history was not written')
    } catch (error) {
      log.error('the history could not be closed', errorFields(error))
    }
  }
}

/** Enough for a full buffer on a slow disk. */
const HISTORY_MS = 10_000

/** Everything is looked at before anything is opened. A refusal must leave nothing open behind. */
function compose(options: OrchestratorOptions): Parts {
  const settings = settingsOf(options.settings)
  const policy = webhookPolicy(settings, options.reachesThisMachine)
  const schedules = readSchedules(settings, policy, options.isClient)
  const clock = options.clock ?? createClock()
  const { logLevel: level, logFormat: format, timeZone, instanceId: instance } = settings
  const written = options.log ?? createLog({ level, format, timeZone, instance })
  const feed = logFeed(settings, written, clock)
  const log = feed?.log ?? written
  const blueprints = createRegistry(options, settings, log)
  const directory = options.storage === undefined ? directoryOf(settings.storageUrl) : undefined
  if (directory !== undefined) makeDirectory('STORAGE_URL', directory)
  checkFileSettings(settings)
  const secretKey = loadSecretKey(settings.secretKey, directory)
  const historyService = openHistoryService(settings, { clock, log, directory })
  try {
    return composeOn(options, {
      settings,
      webhookPolicy: policy,
      schedules,
      clock,
      log,
      blueprints,
      secretKey,
      historyService,
      feed,
      dataDirectory: directory,
    })
  } catch (error) {
    historyService.history
      .close()
      .catch((failure: unknown) => log.warn('the history could not be closed', errorFields(failure)))
    throw error
  }
}

type Ground = Pick<
  Parts,
  'settings' | 'webhookPolicy' | 'schedules' | 'clock' | 'log' | 'blueprints' | 'secretKey' | 'historyService'
> & {
  readonly feed: LogFeed | undefined
  /** Where the data of the storage lies; nothing if it is elsewhere or in memory. */
  readonly dataDirectory: string | undefined
}

function createRegistry(options: OrchestratorOptions, settings: Settings, log: Log): ReloadableRegistry {
  const attemptsMax = settings.jobMaxRetries + 1
  const blueprints = new ReloadableRegistry(options.blueprints ?? [], {
    taskAttemptsMax: attemptsMax,
    handlerAttemptsMax: attemptsMax,
    transitionsMax: settings.maxTransitionsPerJob,
    runTimeoutMs: settings.workerTimeoutSeconds * 1_000,
    offloads: hasFileStore(settings),
  })
  if (options.loaded === undefined) return blueprints
  for (const warning of blueprints.replace(options.loaded).warnings) log.warn(warning)
  return blueprints
}

function composeOn(options: OrchestratorOptions, ground: Ground): Parts {
  const { settings, clock, log } = ground
  const random = options.random ?? createRandom(() => clock.now())
  const health = new Health()
  const guard = new HandlerGuard(log)
  const endAll = options.onFatal ?? ((error) => guard.outside(() => throwOutside(error)))
  const onFailure = failureHandler(health, log, endAll)
  const { instanceId, storageWaitSeconds } = settings
  const waiting = new AbortController()
  const patience = { waitMs: storageWaitSeconds * 1_000, signal: waiting.signal }
  const durability = new KnownDurability()
  const told = { onFailure, durability }
  const storage = options.storage ?? openStorage(settings.storageUrl, { clock, log, instanceId, ...told, ...patience })
  try {
    const probe = isShared(settings.storageUrl) ? new WriteProbe(storage, log) : undefined
    health.watchWrites(() => probe?.problem)
    const opened = { storage, health, guard, probe, waiting, durability }
    return composeWith(options, { ...ground, ...opened, random })
  } catch (error) {
    if (options.storage === undefined) {
      storage.close().catch((failure: unknown) => log.warn('the storage could not be closed', errorFields(failure)))
    }
    throw error
  }
}

type Opened = Pick<Parts, 'storage' | 'health' | 'guard' | 'probe' | 'waiting' | 'durability'>

function composeWith(options: OrchestratorOptions, base: Ground & Opened & { readonly random: Random }): Parts {
  const { random, storage: records, ...bare } = base
  const metrics = new Metrics()
  const { log, settings } = bare
  const values = (): JobValues | undefined => files.fileService.values
  const storage = recordStorage({ storage: records, values, settings, log, metrics })
  const ground = { ...bare, storage }
  const { webhookPolicy: policy, clock, blueprints, secretKey, historyService, guard } = ground
  const { overloadWaitSeconds, timeZone, instanceId } = settings
  const admissionService = createAdmission(overloadWaitSeconds * 1_000, log, options.admissionBounds)
  const telemetry = new Telemetry({ settings, clock, log, metrics, feed: ground.feed })
  const { spans, calls } = telemetry
  const { agents, automations } = createAutomations({ ...ground, random, calls })
  const isSharedStorage = isShared(settings.storageUrl)
  const { endedJobMs } = retentionOf(settings).retention ?? {}
  const traceNames = telemetry.namesOf.bind(telemetry)
  const jobLines = new JobLines({ storage, clock, log, endedJobMs, traceNames })
  const fileGround = { ...ground, metrics, isShared: isSharedStorage, clients: options.clients ?? (() => []) }
  const files = createFiles(fileGround, async (id) => engine.readJob(id))
  const engine: Engine = new Engine({
    storage,
    files: files.fileService,
    logs: jobLines,
    led: [files.fileJanitor],
    blueprints: automations.blueprints(blueprints),
    clock,
    random,
    log,
    settings: engineSettings(settings),
    history: countedHistory(metrics, spans?.traced(historyService.sink) ?? historyService.sink),
    tracing: spans,
    traceNames,
    identity: identityOf(settings),
    admission: admissionService.admission,
    guard,
    ...(options.strategies === undefined ? {} : { strategies: options.strategies }),
  })
  automations.attach(engine)
  const webhooks = createWebhooks(settings, policy, { storage, clock, random, log, secretKey })
  const onDelivered = countHot.bind(undefined, metrics)
  const gateway = new WorkerGateway({ engine, clock, instanceId, jobLines, traces: spans, onDelivered })
  const history = createHistoryReader({ ...historyService, engine, log, timeZone })
  const gauges = new GaugeReader({
    metrics,
    storage,
    log,
    workers: () => engine.dispatcher.workers(),
    heldTasks: () => engine.desk.heldTasks,
    history: () => history.status,
    dataDirectory: ground.dataDirectory,
    certificatePath: settings.tlsEnabled ? settings.tlsCertPath : undefined,
  })
  const changeStreams = new ChangeStreams(engine, options.streamBounds)
  changeStreams.onCount((count) => metrics.set('impresario_change_streams', {}, count))
  const observed = { metrics, gauges, jobLines, telemetry, changeStreams }
  const parts = { engine, automations, agents, gateway, history, admissionService }
  return { ...ground, ...parts, ...observed, ...files, ...webhooks }
}
