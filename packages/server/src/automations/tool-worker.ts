import { newWorkerRecord } from '@impresario/core'
import type { Clock, Log, Service } from '@impresario/core'
import { marksIn, TOOL_OUTPUT } from '@impresario/automations'
import type { Delivery, Engine, Report } from '@impresario/engine'
import { parseExact, readJson, readUsage, stringifyExact, traceContextOf, writeJson } from '@impresario/protocol'
import type { DataObject, Json, TraceContext, UsageReport } from '@impresario/protocol'
import { runTool, ToolError } from '@impresario/tools'
import type { ToolRegistry } from '@impresario/tools'
import type { CallSpans } from '../telemetry/call-spans.ts'

export interface ToolWorkerOptions {
  readonly engine: Engine
  readonly tools: ToolRegistry
  readonly clock: Clock
  readonly log: Log
  readonly instanceId: string
  /** Spans of the calls; nothing where there are no traces. */
  readonly calls?: CallSpans | undefined
  /** The scopes that a tool needs and the owner of a run does not have now. */
  readonly missingScopes: (tool: string, owner: string) => readonly string[] | Promise<readonly string[]>
  /** The values of these secrets of an owner; those that are not there are left out. */
  readonly secrets: (owner: string, names: readonly string[]) => Promise<Readonly<Record<string, string>>>
}

/** What tasks of tools are called. No worker outside has these skills. */
const TYPE_PREFIX = 'tool:'

export function toolTaskType(tool: string): string {
  return `${TYPE_PREFIX}${tool}`
}

const CONCURRENCY = 100
const POLL_MS = 20_000
const HEARTBEAT_MS = 5_000
const FAILURE_PAUSE_MS = 1_000
/** How long running tools have when the process stops. What is cut off is handed out again after the next start. */
const STOP_MS = 5_000

/**
 * Runs the tools of this process as tasks, like any worker: leases, timeouts and cancellation are those of all tasks. A tool
 * that hangs, fails or answers with rubbish harms only its step.
 *
 * Stopped → (start) → idle → (wake) → working → (stop) → stopped. It registers when there is a first call to make, so that an
 * orchestrator without automations has no worker of its own in its lists.
 */
export class ToolWorker implements Service {
  readonly name = 'tools'
  readonly #options: ToolWorkerOptions
  readonly #running = new Map<string, AbortController>()
  readonly #id: string
  #stopping: AbortController | undefined
  #done: Promise<unknown> = Promise.resolve()

  constructor(options: ToolWorkerOptions) {
    this.#options = options
    this.#id = `impresario-tools-${options.instanceId}`
  }

  #isStarted = false

  start(): Promise<void> {
    this.#isStarted = true
    return Promise.resolve()
  }

  /** There is something to do now or soon. */
  wake(): void {
    if (!this.#isStarted || this.#stopping !== undefined) return
    const stopping = new AbortController()
    this.#stopping = stopping
    this.#done = Promise.all([this.#poll(stopping.signal), this.#beat(stopping.signal)])
  }

  async stop(): Promise<void> {
    this.#isStarted = false
    const stopping = this.#stopping
    if (stopping === undefined) return
    stopping.abort()
    await this.#done
    const { clock } = this.#options
    for (let waitedMs = 0; this.#running.size > 0 && waitedMs < STOP_MS; waitedMs += 50) {
      await clock.sleep(50, NEVER)
    }
    for (const controller of this.#running.values()) controller.abort()
    this.#stopping = undefined
  }

  tick(): Promise<{ readonly worked: number }> {
    return Promise.resolve({ worked: 0 })
  }

  /** There are other tools than before. */
  toolsChanged(): void {
    if (this.#stopping === undefined || this.#stopping.signal.aborted) return
    const { log } = this.#options
    this.#register().catch((error: unknown) => log.warn('tools cannot be registered', { error: String(error) }))
  }

  async #register(): Promise<void> {
    const { engine, tools, clock } = this.#options
    const skills = tools
      .list()
      .filter(({ kind }) => kind === 'built_in' || kind === 'mcp')
      .map(({ name }) => toolTaskType(name))
    await engine.desk.register(
      newWorkerRecord({ id: this.#id, type: 'impresario-tools', skills, concurrencyMax: CONCURRENCY }, clock.now()),
    )
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { engine, log, clock } = this.#options
    let isRegistered = false
    while (!signal.aborted) {
      try {
        if (!isRegistered) await this.#register()
        isRegistered = true
        const limit = Math.max(1, CONCURRENCY - this.#running.size)
        const options = { limit, waitMs: POLL_MS, signal, isLocal: true, wantsCancelled: true }
        const { deliveries, cancelled, giveBack } = await engine.desk.poll(this.#id, options)
        if (signal.aborted && deliveries.length > 0) await giveBack()
        else for (const delivery of deliveries) void this.#run(delivery)
        for (const taskId of cancelled) this.#running.get(taskId)?.abort()
      } catch (error) {
        isRegistered = false
        log.warn('tools cannot be polled for', { error: String(error) })
        await clock.sleep(FAILURE_PAUSE_MS, signal)
      }
    }
  }

  async #beat(signal: AbortSignal): Promise<void> {
    const { engine, clock, log } = this.#options
    while (!signal.aborted) {
      await clock.sleep(HEARTBEAT_MS, signal)
      if (signal.aborted) return
      try {
        const { cancelled } = await engine.desk.heartbeat(this.#id, undefined, [...this.#running.keys()])
        for (const taskId of cancelled) this.#running.get(taskId)?.abort()
      } catch (error) {
        log.warn('tools cannot say that they are alive', { error: String(error) })
      }
    }
  }

  async #run(delivery: Delivery): Promise<void> {
    const { engine, log } = this.#options
    const { taskId } = delivery
    const controller = new AbortController()
    this.#running.set(taskId, controller)
    try {
      const report = await this.#traced(delivery, controller.signal)
      await engine.desk.results(this.#id, [report])
    } catch (error) {
      // The task is handed out again when its lease ends.
      log.warn('the result of a tool could not be reported', { task_id: taskId, error: String(error) })
    } finally {
      this.#running.delete(taskId)
    }
  }

  async #meter(taskId: string, report: UsageReport, count: number): Promise<void> {
    const usage = readUsage(report)
    if (typeof usage === 'string') throw new ToolError('PERMANENT_ERROR', `The usage cannot be counted: ${usage}`)
    await this.#options.engine.desk.meter(this.#id, taskId, { usage, eventId: String(count) })
  }

  /** With a span, where there are traces. */
  async #traced(delivery: Delivery, signal: AbortSignal): Promise<Report> {
    const { calls, tools } = this.#options
    const name = delivery.call.type.slice(TYPE_PREFIX.length)
    const isOutside = name === 'http.request' || tools.named(name)?.tool.kind === 'mcp'
    const span = calls?.openTool(delivery, {
      name: `Tool:${name}`,
      kind: isOutside ? 'client' : 'internal',
      attributes: { 'gen_ai.tool.name': name, 'job.id': delivery.jobId, 'task.attempt': delivery.attempt },
    })
    // What is not recorded here is passed on as it came, so that it is not recorded elsewhere either.
    if (span === undefined) return this.#report(delivery, signal, traceContextOf(delivery.tracing ?? {}))
    const report = await span.run(() => this.#report(delivery, signal, span.context))
    const { error } = report
    span.end(error === undefined ? {} : { error: error.message, attributes: { 'error.type': error.code } })
    return report
  }

  async #report(
    { taskId, call, idempotencyKey, jobId }: Delivery,
    signal: AbortSignal,
    tracing?: TraceContext,
  ): Promise<Report> {
    const { engine, tools, log } = this.#options
    const name = call.type.slice(TYPE_PREFIX.length)
    const registered = tools.named(name)
    let reports = 0
    try {
      if (registered === undefined) throw new ToolError('PERMANENT_ERROR', `There is no tool "${name}".`)
      const owner = (await engine.readJob(jobId))?.value.client.id
      if (owner === undefined) throw new ToolError('PERMANENT_ERROR', 'The run is gone.')
      const [missing] = await this.#options.missingScopes(name, owner)
      if (missing !== undefined) throw new ToolError('PERMANENT_ERROR', `${name} needs the scope ${missing}.`)
      const input = asSeen(call.params)
      const names = marksIn(input)
      const output = await runTool(input, {
        registered,
        secrets: names.length === 0 ? {} : await this.#options.secrets(owner, names),
        call: {
          signal,
          idempotencyKey,
          ...(tracing === undefined ? {} : { tracing }),
          owner,
          runId: jobId,
          meter: (report) => this.#meter(taskId, report, (reports += 1)),
          log: (message, details) => log.info('step log', { run: jobId, message, ...(details && { details }) }),
        },
      })
      return { taskId, status: 'success', data: asKept({ [TOOL_OUTPUT]: output }) }
    } catch (error) {
      const isKnown = error instanceof ToolError
      if (!isKnown) log.error('a tool failed in an unexpected way', { tool: name, error: String(error) })
      const code = isKnown ? error.code : 'TRANSIENT_ERROR'
      const message = isKnown ? error.message : `${name} failed in an unexpected way.`
      return { taskId, status: 'failure', error: { code, message } }
    }
  }
}

const NEVER = new AbortController().signal

/** Boundary: numbers as tools see them. */
function asSeen(value: Json): DataObject {
  return parseExact(writeJson(value)) as DataObject
}

/** Boundary: numbers as they are stored. */
function asKept(value: DataObject): Json {
  return readJson(stringifyExact(value))
}
