import type { ClientInfo, Clock, Log, Random, RunnableBlueprint, Schedule, Storage, Strategy } from '@impresario/core'
import { Engine } from '@impresario/engine'
import { mustBeWebhookUrl } from '@impresario/webhooks'
import type { OutboundPolicy } from '@impresario/webhooks'
import { BlueprintLibrary } from './blueprint-library.ts'
import { loadBlueprints, watchDirectory } from './blueprint-loader.ts'
import { createClock } from './clock.ts'
import { settingsOf } from './config.ts'
import type { Settings } from './config.ts'
import { Health } from './health.ts'
import { createHistoryReader } from './history.ts'
import type { HistoryReader } from './history.ts'
import { openHistoryService, retentionOf } from './history-service.ts'
import type { HistoryService } from './history-service.ts'
import { LocalClient } from './local-client.ts'
import { createLocalTransport } from './local-transport.ts'
import type { LocalTransport } from './local-transport.ts'
import { createLog, errorFields } from './log.ts'
import { createRandom } from './random.ts'
import { applySchedules, backgroundSettings, readSchedules } from './schedules.ts'
import type { IsClient } from './schedules.ts'
import { loadSecretKey } from './secret-key.ts'
import type { SecretKey } from './secret-key.ts'
import { directoryOf, isShared, openStorage } from './storage.ts'
import { createWebhooks, webhookPolicy } from './webhook-service.ts'
import type { WebhookService } from './webhook-service.ts'
import { within } from './within.ts'
import { WorkerCalls } from './worker-calls.ts'

export interface OrchestratorOptions {
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
  /** Whether schedules may name this client; without it, any. */
  readonly isClient?: (clientId: string) => boolean
  /** The storage has failed, and nothing can go on. Ends the process when it is not given. */
  readonly onFatal?: (error: Error) => void
}

/** What an orchestrator is made of. */
export interface Parts extends WebhookService {
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Log
  readonly storage: Storage
  readonly blueprints: BlueprintLibrary
  readonly engine: Engine
  readonly calls: WorkerCalls
  readonly health: Health
  readonly secretKey: SecretKey
  readonly webhookPolicy: OutboundPolicy
  readonly schedules: readonly Schedule[]
  readonly history: HistoryReader
  readonly historyService: HistoryService
}

/** An orchestrator inside this program, without a network: `createServer` adds the HTTP face to one. */
export function createOrchestrator(options: OrchestratorOptions = {}): Orchestrator {
  return new Orchestrator(options)
}

/** What an orchestrator shows to the outside. */
export interface Face {
  /** Lets those who come here find another way, before anything stops. */
  drain(): Promise<void>
  /** Comes last, so that results are taken to the end. */
  close(): Promise<void>
}

const NO_FACE: Face = { drain: () => Promise.resolve(), close: () => Promise.resolve() }
const OWN_CLIENT: ClientInfo = { id: 'default' }

/**
 * Everything but the face: engine, storage, blueprints, schedules, webhooks.
 *
 * `new` → `start` → running → `stop` → stopped, for good. A start that fails has closed what it had opened.
 */
export class Orchestrator {
  readonly engine: Engine
  readonly parts: Parts
  readonly #options: OrchestratorOptions
  #unwatch: (() => void) | undefined
  #stopped: Promise<void> | undefined

  constructor(options: OrchestratorOptions) {
    this.#options = options
    this.parts = compose(options)
    this.engine = this.parts.engine
  }

  async start(): Promise<void> {
    const { settings, engine, health, sender, schedules, historyService } = this.parts
    try {
      await this.#loadBlueprints()
      await historyService.history.start()
      await applySchedules(engine.scheduler, settings.schedulesConfigPath, schedules)
      await engine.start()
      await sender.start()
    } catch (error) {
      await this.stop()
      throw error
    }
    health.mark('ok')
  }

  /** Takes no more work, lets what is running finish within the time limit, and makes everything durable. */
  stop(): Promise<void> {
    this.#stopped ??= this.#shutDown(NO_FACE)
    return this.#stopped
  }

  /** The same for whoever has given the orchestrator a face. */
  stopWith(face: Face): Promise<void> {
    this.#stopped ??= this.#shutDown(face)
    return this.#stopped
  }

  /** Starts and watches jobs in the name of a client; without one, of a client called `default`. */
  client(client: ClientInfo = OWN_CLIENT): LocalClient {
    const { webhookPolicy: policy } = this.parts
    return new LocalClient(this.engine, client, (url) => mustBeWebhookUrl(url, policy))
  }

  /** For workers of this process: `createWorker({ transport: orchestrator.localTransport() })`. */
  localTransport(): LocalTransport {
    return createLocalTransport(this.engine, this.parts.calls)
  }

  /** Reads the file of schedules anew: all of it, or nothing when something in it cannot work. Gives their number. */
  async reloadSchedules(isClient: IsClient | undefined = this.#options.isClient): Promise<number> {
    const { settings, webhookPolicy: policy, log } = this.parts
    const schedules = readSchedules(settings, policy, isClient)
    await applySchedules(this.engine.scheduler, settings.schedulesConfigPath, schedules)
    log.info('schedules reloaded', { schedules: schedules.length })
    return schedules.length
  }

  async #loadBlueprints(): Promise<void> {
    const { settings, blueprints, log } = this.parts
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

  async #shutDown(face: Face): Promise<void> {
    const { engine, health, storage, settings, log, sender } = this.parts
    log.info('stopping')
    this.#unwatch?.()
    health.mark('draining')
    await face.drain()
    health.mark('stopping')
    engine.desk.closePolls()
    try {
      // The face stays while handlers finish: workers can bring results, and readiness says what is going on.
      const stopped = Promise.all([engine.stop(), sender.stop()])
      const inTime = await within(settings.shutdownTimeoutSeconds * 1_000, stopped)
      if (!inTime) log.warn('the time to stop is up; what still runs is cut and repeated after the next start')
    } catch (error) {
      log.error('the engine did not stop cleanly', errorFields(error))
    }
    await face.close()
    await this.#closeHistory()
    if (this.#options.storage === undefined) await storage.close()
    log.info('stopped')
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

/** Nobody catches it there, so it ends the process. */
function throwOutside(error: Error): void {
  setImmediate(() => {
    throw error
  })
}

/** A refusal must leave nothing open behind. */
function compose(options: OrchestratorOptions): Parts {
  const settings = settingsOf(options.settings)
  const policy = webhookPolicy(settings)
  const schedules = readSchedules(settings, policy, options.isClient)
  const clock = options.clock ?? createClock()
  const { logLevel: level, logFormat: format, timeZone, instanceId: instance } = settings
  const log = options.log ?? createLog({ level, format, timeZone, instance })
  const directory = options.storage === undefined ? directoryOf(settings.storageUrl) : undefined
  const historyService = openHistoryService(settings, { clock, log, directory })
  try {
    return composeOn(options, { settings, webhookPolicy: policy, schedules, clock, log, historyService, directory })
  } catch (error) {
    historyService.history
      .close()
      .catch((failure: unknown) => log.warn('the history could not be closed', errorFields(failure)))
    throw error
  }
}

type Ground = Pick<Parts, 'settings' | 'webhookPolicy' | 'schedules' | 'clock' | 'log' | 'historyService'> & {
  readonly directory: string | undefined
}

function composeOn(options: OrchestratorOptions, ground: Ground): Parts {
  const { settings, webhookPolicy: policy, clock, log, historyService, directory } = ground
  const random = options.random ?? createRandom(() => clock.now())
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
  const storage =
    options.storage ?? openStorage(settings.storageUrl, { clock, log, instanceId: settings.instanceId, onFailure })
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
      isShared: isShared(settings.storageUrl),
      ...backgroundSettings(settings),
      ...retentionOf(settings),
    },
    history: historyService.sink,
    ...(options.strategies === undefined ? {} : { strategies: options.strategies }),
  })
  const secretKey = loadSecretKey(settings.secretKey, directory)
  const webhooks = createWebhooks(settings, policy, { storage, clock, random, log, secretKey })
  const calls = new WorkerCalls({ engine, clock, instanceId: settings.instanceId })
  const { timeZone } = settings
  const history = createHistoryReader({ engine, history: historyService.history, log, timeZone })
  return { ...ground, storage, blueprints, engine, calls, health, secretKey, history, ...webhooks }
}
