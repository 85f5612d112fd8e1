import { TOOL_OUTPUT } from '@impresario/automations'
import type { Automations } from '@impresario/automations'
import { newWorkerRecord } from '@impresario/core'
import type { Clock } from '@impresario/core'
import type { Delivery, Engine } from '@impresario/engine'
import { NO_USAGE } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import type { Node } from '../node.ts'

/** What the tools of this world see: a value that goes up and down. */
export interface Gauge {
  celsius: number
}

export const TOOL_NAMES: readonly string[] = ['gauge', 'pay']

export function toolTask(name: string): string {
  return `tool:${name}`
}

interface HandsParts {
  readonly node: Node
  readonly engine: Engine
  readonly automations: Automations
  readonly clock: Clock
  readonly gauge: Gauge
}

interface HandsOptions extends HandsParts {
  /** The tasks that are in its hands. */
  readonly running: Set<string>
  /** Its process is gone. */
  readonly signal: AbortSignal
}

const BEAT_MS = 5_000
const POLL_MS = 10_000
const AGAIN_MS = 1_000

/**
 * Runs the tools of one process, as a worker inside it: `gauge` reads the value, `pay` reports that it has used one dollar and
 * sends that report until it is answered. Dies with its process.
 */
export function startHands(parts: HandsParts): void {
  const life = new AbortController()
  parts.node.onDeath(() => life.abort())
  const options = { ...parts, running: new Set<string>(), signal: life.signal }
  void insist(options, () => poll(options))
  void beat(options)
}

async function poll(options: HandsOptions): Promise<void> {
  const { engine, clock, signal, node } = options
  const id = idOf(options)
  const skills = TOOL_NAMES.map(toolTask)
  await engine.desk.register(newWorkerRecord({ id, skills, concurrencyMax: 10 }, clock.now()))
  while (node.isAlive) {
    const how = { limit: 10, waitMs: POLL_MS, signal, isLocal: true }
    const { deliveries } = await engine.desk.poll(id, how)
    for (const delivery of deliveries) void run(options, delivery)
  }
}

async function beat(options: HandsOptions): Promise<void> {
  const { engine, clock, node, running, signal } = options
  while (node.isAlive) {
    await clock.sleep(BEAT_MS, signal)
    await engine.desk.heartbeat(idOf(options), undefined, [...running]).catch(() => undefined)
  }
}

async function run(options: HandsOptions, { taskId, call }: Delivery): Promise<void> {
  const { engine, automations, gauge, running } = options
  const worker = idOf(options)
  running.add(taskId)
  let output: JsonObject = { celsius: gauge.celsius }
  if (call.type === toolTask('pay')) {
    const metering = { usage: { ...NO_USAGE, usd: 1 }, eventId: 'paid' }
    await insist(options, () => automations.budgets.meter(worker, taskId, metering))
    output = { paid: true }
  }
  const report = { taskId, status: 'success', data: { [TOOL_OUTPUT]: output } }
  await insist(options, () => engine.desk.results(worker, [report]))
  running.delete(taskId)
}

/** Again and again, until it is answered or the process is gone. */
async function insist<T>({ clock, node, signal }: HandsOptions, send: () => Promise<T>): Promise<T | undefined> {
  while (node.isAlive) {
    try {
      return await send()
    } catch {
      await clock.sleep(AGAIN_MS, signal)
    }
  }
  return undefined
}

function idOf({ node }: HandsOptions): string {
  return `tools-${node.name}`
}
