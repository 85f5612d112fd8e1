import { randomUUID } from 'node:crypto'
import { setImmediate as immediate } from 'node:timers/promises'
import { isEnded, newWorkerRecord } from '@impresario/core'
import type { Clock, Job, Log, LogFields, Random, Storage } from '@impresario/core'
import { Engine } from '@impresario/engine'
import { NO_USAGE } from '@impresario/protocol'
import type { DataObject, JsonObject, TaskErrorCode, UsageReport } from '@impresario/protocol'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import type { Actor, AuditEntry } from './audit.ts'
import { Automations } from './automations.ts'
import { Conditions } from './conditions.ts'
import { EventLog } from './event-log.ts'
import { EventPump } from './event-pump.ts'
import { FiringPump } from './firing-pump.ts'
import type { AutomationRecord } from './record.ts'
import { withRuns } from './run-blueprint.ts'
import type { RunBookOptions } from './run-book.ts'
import { TOOL_OUTPUT } from './run-outcome.ts'
import { runBlueprintName } from './run-start.ts'
import { runViewOf } from './run-view.ts'
import type { RunView } from './run-view.ts'
import type { Vault } from './vault.ts'

/** Time that stands still until it is moved on. Sleeps last until they are ended. */
export class StillClock implements Clock {
  time = Date.parse('2026-03-02T08:00:00Z')
  readonly now = (): number => this.time

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    if (ms <= 0) return immediate()
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }
}

/** Ids in the shape of ours, which count up. */
class CountingRandom implements Random {
  #count = 0
  readonly #instance: number

  constructor(instance: number) {
    this.#instance = instance
  }

  next(): number {
    return 0.5
  }

  id(): string {
    this.#count += 1
    const count = this.#count.toString(16).padStart(12, '0')
    return `${count.slice(0, 8)}-${count.slice(8)}-7000-800${this.#instance}-00000000${count.slice(-4)}`
  }
}

class ListLog implements Log {
  readonly errors: string[] = []
  debug(): void {}
  info(): void {}
  warn(): void {}
  error(message: string, fields?: LogFields): void {
    this.errors.push(`${message} ${JSON.stringify(fields)}`)
  }
}

export const ANNA: Actor = { id: 'anna', isAdmin: false }
export const BEN: Actor = { id: 'ben', isAdmin: false }
export const ADMIN: Actor = { id: 'admin', isAdmin: true }

/** What a tool of the tests answers, or the code that it fails with. */
type Answer = (
  input: JsonObject,
) => ({ readonly output: JsonObject | string } | { readonly code: TaskErrorCode }) & { readonly used?: UsageReport }

/** `gone` was there when the automation was written. */
const TOOLS: ReadonlySet<string> = new Set(['echo', 'delay', 'gone'])

export interface OfficeOptions {
  readonly storage?: Storage
  readonly clock?: StillClock
  /** Tells the ids of several on one storage apart. */
  readonly instance?: number
  readonly automationsBytesMax?: number
  readonly eventsBytesMax?: number
  readonly waitingBytesMax?: number
}

/** Automations on a real engine and a real storage, with time in the test's hands. */
export class Office {
  readonly clock: StillClock
  readonly storage: Storage
  readonly log = new ListLog()
  readonly engine: Engine
  readonly automations: Automations
  readonly parts: RunBookOptions
  readonly events: EventLog
  readonly conditions: Conditions
  readonly firings: FiringPump
  readonly deliveries: EventPump
  /** What the tool `echo` was called with. */
  readonly calls: JsonObject[] = []
  answer: Answer = (input) => ({ output: input })
  /** Scopes that the owners of runs have lost. */
  lost: readonly string[] = []
  /** Whether calls of tools are answered at once. */
  isWorking = true
  #hasWorker = false
  readonly #worker: string

  constructor({ storage, clock = new StillClock(), instance = 0, ...bounds }: OfficeOptions = {}) {
    this.clock = clock
    this.storage = storage ?? testStorage({ now: clock.now })
    this.#worker = `tools-${instance}`
    const random = new CountingRandom(instance)
    const { log } = this
    const blueprints = withRuns(
      { get: () => undefined, latest: () => undefined },
      {
        clock,
        random,
        missingScopes: () => this.lost,
        route: (tool) => {
          if (tool === 'gone') return undefined
          if (tool === 'delay') return { kind: 'sleep', ms: (input) => Number(input['seconds']) * 1_000 }
          return { kind: 'task', type: `tool:${tool}`, timeoutMs: 10_000 }
        },
      },
    )
    this.engine = new Engine({ storage: this.storage, blueprints, clock, random, log })
    const { engine } = this
    const tools = {
      named: (name: string) => (TOOLS.has(name) ? { check: () => [] } : undefined),
      similar: () => ['echo'],
    }
    const base = { storage: this.storage, engine, clock, random, log, ...bounds }
    this.parts = base
    this.automations = new Automations({ ...base, tools: () => tools, timezone: 'UTC', vault: VAULT })
    const { launcher, zones, calendars } = this.automations
    this.events = new EventLog(base)
    const read = (id: string, actor: Actor): Promise<AutomationRecord> => this.automations.read(id, actor)
    this.conditions = new Conditions({ ...base, launcher, read })
    this.firings = new FiringPump({
      ...base,
      launcher,
      zones,
      calendars,
      others: { ...this.conditions.served, ...calendars.served },
    })
    this.deliveries = new EventPump({ ...base, launcher })
  }

  create(body: DataObject, actor: Actor = ANNA): Promise<AutomationRecord> {
    return this.automations.create({ title: 'Test', pipeline: [ECHO], ...body }, actor)
  }

  /** Rounds until nothing is left that needs no time to pass. */
  async settle(): Promise<void> {
    for (let rounds = 0; rounds < 500; rounds += 1) {
      let worked = 0
      for (const service of [this.firings, this.deliveries, this.engine]) worked += (await service.tick()).worked
      worked += await this.#work()
      if (worked === 0) return
    }
    throw new Error('The office does not come to rest.')
  }

  /** Lets time pass in steps, and what follows from it. */
  async after(ms: number, stepMs = ms): Promise<void> {
    for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) {
      this.clock.time += Math.min(leftMs, stepMs)
      await this.settle()
    }
  }

  async runs(automationId: string): Promise<readonly RunView[]> {
    const found = await this.engine.listJobs({ name: runBlueprintName(automationId), limit: 1_000 })
    return found.map(({ value }) => viewOf(value)).toReversed()
  }

  async run(runId: string): Promise<RunView> {
    const stored = await this.engine.readJob(runId)
    if (stored === undefined) throw new Error(`There is no run ${runId}.`)
    return viewOf(stored.value)
  }

  /** The audit log of an automation, oldest first. */
  async audit(automationId: string): Promise<readonly AuditEntry[]> {
    const { items } = await this.automations.audit({ subject: automationId, limit: 1_000 })
    return items.toReversed()
  }

  async skips(automationId: string): Promise<readonly DataObject[]> {
    const entries = await this.audit(automationId)
    return entries.filter(({ action }) => action === 'run.skipped').map(({ details }) => details)
  }

  async #work(): Promise<number> {
    if (!this.isWorking) return 0
    const { desk } = this.engine
    const worker = this.#worker
    if (!this.#hasWorker) {
      this.#hasWorker = true
      await desk.register(newWorkerRecord({ id: worker, skills: ['tool:echo'], concurrencyMax: 50 }, this.clock.now()))
    }
    const { deliveries } = await desk.poll(worker, { limit: 50, waitMs: 0, signal: new AbortController().signal })
    for (const { taskId, call } of deliveries) {
      this.calls.push(call.params)
      const answer = this.answer(call.params)
      if (answer.used !== undefined) {
        const metering = { usage: { ...NO_USAGE, ...answer.used }, eventId: 'all' }
        await this.automations.budgets.meter(worker, taskId, metering)
      }
      const said =
        'code' in answer
          ? { status: 'failure', error: { code: answer.code, message: 'it did not work' } }
          : { status: 'success', data: { [TOOL_OUTPUT]: answer.output } }
      await desk.results(worker, [{ taskId, ...said }])
    }
    return deliveries.length
  }

  async isOver(runId: string): Promise<boolean> {
    const stored = await this.engine.readJob(runId)
    return stored !== undefined && isEnded(stored.value)
  }
}

/** A vault without locks: what is sealed is only written in another way. */
const VAULT: Vault = {
  seal: (text, purpose) => Buffer.from(`${purpose} ${text}`).toString('hex'),
  open: (sealed, purpose) => {
    const text = Buffer.from(sealed, 'hex').toString()
    return text.startsWith(`${purpose} `) ? text.slice(purpose.length + 1) : undefined
  },
  secret: () => randomUUID(),
}

const ECHO: DataObject = {
  id: 'say',
  uses: 'echo',
  with: { text: "${event.scheduled_for || event.payload || 'now'}" },
}

function viewOf(job: Job): RunView {
  const view = runViewOf(job)
  if (view === undefined) throw new Error(`${job.id} is not a run.`)
  return view
}
