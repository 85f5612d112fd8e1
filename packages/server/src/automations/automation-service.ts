import {
  Automations,
  Conditions,
  EventListeners,
  EventLog,
  EventPump,
  FiringPump,
  Reruns,
  RunBook,
  withRuns,
} from '@impresario/automations'
import type {
  Actor,
  AutomationDefinition,
  RunBlueprintOptions,
  ToolCheck,
  ToolRoute,
  Vault,
} from '@impresario/automations'
import type { Clock, Log, Random, Service, Storage } from '@impresario/core'
import type { BlueprintSource, Engine } from '@impresario/engine'
import { hasScope, readScopes } from '@impresario/protocol'
import type { Scope } from '@impresario/protocol'
import { emailSend, httpRequest, log as logTool, ToolRegistry, transform } from '@impresario/tools'
import type { BuiltInTool } from '@impresario/tools'
import type { OutboundPolicy } from '@impresario/webhooks'
import { kernelTools } from './kernel-tools.ts'
import type { CallSpans } from '../telemetry/call-spans.ts'
import { ToolWorker, toolTaskType } from './tool-worker.ts'
import { TASK, unknownTasks, workerTasks } from './worker-tasks.ts'
import type { WorkerTask } from './worker-tasks.ts'

export interface AutomationServiceOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly policy: OutboundPolicy
  readonly timeZone: string
  readonly instanceId: string
  readonly calls?: CallSpans | undefined
  readonly vault: Vault
  readonly automationsBytesMax?: number
  readonly eventsBytesMax?: number
  /** What an agent may do now; nothing for clients, whose role says everything. */
  readonly scopesOf: (owner: string) => ScopesNow | Promise<ScopesNow>
}

type ScopesNow = readonly Scope[] | undefined

/** Waits without holding anything: the run itself sleeps, however long. */
const delay: BuiltInTool = {
  name: 'delay',
  description: 'Waits for some seconds. The wait survives restarts and takes no place of a worker.',
  kind: 'built_in',
  input: {
    type: 'object',
    additionalProperties: false,
    required: ['seconds'],
    properties: { seconds: { type: 'number', minimum: 0, maximum: 31_536_000 } },
  },
  output: {},
  timeoutSeconds: 10,
  scopes: [],
  isIdempotent: true,
  isReadOnly: true,
  run: () => null,
}

/** Tasks of workers and other blueprints are tools too, under these names. Whether they fit is seen when they run. */
const BLUEPRINT = 'blueprint.'

/** Standing orders of an orchestrator: what keeps them, what fires them, and the tools of their steps. */
export class AutomationService implements Service {
  readonly name = 'automations'
  readonly tools = new ToolRegistry()
  readonly #options: AutomationServiceOptions
  #parts: Parts | undefined

  constructor(options: AutomationServiceOptions) {
    this.#options = options
    const parts = { engine: () => this.#attached.engine, events: () => this.#attached.events }
    const { policy } = options
    this.tools.add([httpRequest({ policy }), emailSend({ policy }), logTool, transform, delay, ...kernelTools(parts)])
  }

  /** The blueprints that the engine runs: those of users, and runs of automations. */
  blueprints(source: BlueprintSource): BlueprintSource {
    const { clock, random } = this.#options
    const missingScopes = this.#missingScopes.bind(this)
    const options: RunBlueprintOptions = { clock, random, route: (tool) => this.#route(tool), missingScopes }
    return withRuns(source, options)
  }

  /** To be called once, with the engine that has these blueprints. */
  attach(engine: Engine): void {
    const { timeZone: timezone, ...base } = this.#options
    const whole = { ...base, engine }
    const automations = new Automations({ ...whole, timezone, tools: (actor) => this.#check(actor) })
    engine.desk.meterWith((workerId, taskId, metering) => automations.budgets.meter(workerId, taskId, metering))
    const secrets = (owner: string, names: readonly string[]) => automations.secrets.values(owner, names)
    const worker = new ToolWorker({
      ...whole,
      tools: this.tools,
      secrets,
      missingScopes: this.#missingScopes.bind(this),
    })
    const { launcher, zones, calendars } = automations
    const events = new EventLog(whole)
    const conditions = new Conditions({ ...whole, launcher, read: (id, actor) => automations.read(id, actor) })
    const others = { ...conditions.served, ...calendars.served }
    const firings = new FiringPump({ ...whole, launcher, zones, calendars, others })
    const pumps = [firings, new EventPump({ ...whole, launcher })]
    const listeners = new EventListeners(whole)
    const reruns = new Reruns({ ...whole, launcher })
    this.#parts = {
      engine,
      automations,
      conditions,
      events,
      listeners,
      firings,
      runs: new RunBook(whole),
      reruns,
      worker,
      services: [worker, ...pumps],
    }
  }

  get automations(): Automations {
    return this.#attached.automations
  }

  get conditions(): Conditions {
    return this.#attached.conditions
  }

  get events(): EventLog {
    return this.#attached.events
  }

  /** Who hears an event. */
  get listeners(): EventListeners {
    return this.#attached.listeners
  }

  /** When this process looked for due runs last. */
  get lookedAt(): number | undefined {
    return this.#attached.firings.lookedAt
  }

  get reruns(): Reruns {
    return this.#attached.reruns
  }

  get runs(): RunBook {
    return this.#attached.runs
  }

  /** Tools have come or gone. */
  toolsChanged(): void {
    this.#attached.worker.toolsChanged()
  }

  /** What the live workers do, as pipelines can use it; nothing for callers who may not see workers. */
  workerTasks(scopes: ScopesNow): readonly WorkerTask[] {
    if (scopes !== undefined && !hasScope(scopes, 'jobs:read') && !hasScope(scopes, 'jobs:write')) return []
    return workerTasks(this.#attached.engine.dispatcher.workers())
  }

  /** What is doubtful in a definition that is valid. */
  warningsFor({ pipeline }: Pick<AutomationDefinition, 'pipeline'>): readonly string[] {
    return unknownTasks(pipeline.steps, this.#attached.engine.dispatcher.workers())
  }

  async start(): Promise<void> {
    const { services, worker } = this.#attached
    for (const service of services) await service.start()
    const counts = await this.#options.storage.counts('automation', {})
    if (Object.values(counts).some((count) => count > 0)) worker.wake()
  }

  async stop(): Promise<void> {
    await Promise.all(this.#attached.services.map((service) => service.stop()))
  }

  async tick(): Promise<{ readonly worked: number }> {
    let worked = 0
    for (const service of this.#attached.services) worked += (await service.tick()).worked
    return { worked }
  }

  get #attached(): Parts {
    if (this.#parts === undefined) throw new Error('The automations have no engine yet.')
    return this.#parts
  }

  #check({ scopes }: Actor): ToolCheck {
    const may = (needed: readonly string[]): boolean =>
      scopes === undefined || readScopes(needed).scopes.every((scope) => hasScope(scopes, scope))
    const registered = this.tools.checkFor(may)
    return {
      named: (name) => {
        if (prefixOf(name) === undefined) return registered.named(name)
        return may(WORK_SCOPES) ? KEEPING : undefined
      },
      missing: (name) => {
        const needed = this.#neededFor(name)
        return scopes === undefined ? [] : readScopes(needed).scopes.filter((scope) => !hasScope(scopes, scope))
      },
      similar: (name) => registered.similar(name),
    }
  }

  #neededFor(name: string): readonly string[] {
    return prefixOf(name) === undefined ? (this.tools.named(name)?.tool.scopes ?? []) : WORK_SCOPES
  }

  #missingScopes(name: string, owner: string): readonly Scope[] | Promise<readonly Scope[]> {
    const needed = this.#neededFor(name)
    if (needed.length === 0) return []
    const missing = (scopes: ScopesNow): readonly Scope[] =>
      scopes === undefined ? [] : readScopes(needed).scopes.filter((scope) => !hasScope(scopes, scope))
    const scopes = this.#options.scopesOf(owner)
    return scopes instanceof Promise ? scopes.then(missing) : missing(scopes)
  }

  #route(name: string): ToolRoute | undefined {
    const prefix = prefixOf(name)
    if (prefix === TASK) return { kind: 'task', type: name.slice(TASK.length), timeoutMs: undefined }
    if (prefix === BLUEPRINT) return { kind: 'child', blueprint: name.slice(BLUEPRINT.length) }
    if (name === delay.name) return { kind: 'sleep', ms: ({ seconds }) => Number(seconds) * 1_000 }
    const tool = this.tools.named(name)?.tool
    if (tool === undefined) return undefined
    this.#attached.worker.wake()
    return { kind: 'task', type: toolTaskType(name), timeoutMs: tool.timeoutSeconds * 1_000 }
  }
}

interface Parts {
  readonly engine: Engine
  readonly automations: Automations
  readonly conditions: Conditions
  readonly events: EventLog
  readonly listeners: EventListeners
  readonly firings: FiringPump
  readonly runs: RunBook
  readonly reruns: Reruns
  readonly worker: ToolWorker
  readonly services: readonly Service[]
}

/** What an agent needs to give work to workers and other blueprints. */
const WORK_SCOPES: readonly Scope[] = ['jobs:write']

/** What goes to workers and other jobs is kept in their records. */
const KEEPING = { check: () => [], takesSecrets: false }

function prefixOf(name: string): string | undefined {
  return [TASK, BLUEPRINT].find((prefix) => name.startsWith(prefix) && name.length > prefix.length)
}
