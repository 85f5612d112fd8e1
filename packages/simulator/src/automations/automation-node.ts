import { Automations, Conditions, EventLog, EventPump, FiringPump, withRuns } from '@impresario/automations'
import type { ToolCheck, Vault } from '@impresario/automations'
import type { Clock, Log, Storage } from '@impresario/core'
import { Engine } from '@impresario/engine'
import { clockOf, randomOf } from '../node.ts'
import type { Node } from '../node.ts'
import { startHands, TOOL_NAMES, toolTask } from './tool-hands.ts'
import type { Gauge } from './tool-hands.ts'

/** What one process runs: an engine, and beside it what fires automations and brings events to them. */
export interface AutomationNode {
  readonly engine: Engine
  readonly automations: Automations
  readonly events: EventLog
  readonly conditions: Conditions
  start(): Promise<void>
}

const SETTINGS = { handlerMs: 1_000 }
const TOOLS: ToolCheck = {
  named: (name) => (name === 'delay' || TOOL_NAMES.includes(name) ? { check: () => [] } : undefined),
  similar: () => [],
}
const TOOL_MS = 20_000
const VAULT: Vault = { seal: (text) => text, open: (text) => text, secret: () => 'secret' }

/** `jump`: how far the wall clock of this process is off. */
export function automationNode(
  node: Node,
  storage: Storage,
  jump: { readonly ms: number },
  ids: { value: number },
  gauge: Gauge,
): AutomationNode {
  const { world } = node
  const base = clockOf(node)
  const clock: Clock = { ...base, wall: () => world.now + node.skewMs + jump.ms }
  const random = randomOf(world, world.chance(`automations ${node.name}`), ids)
  const blueprints = withRuns(
    { get: () => undefined, latest: () => undefined },
    {
      clock,
      random,
      missingScopes: () => [],
      route: (tool) =>
        tool === 'delay'
          ? { kind: 'sleep', ms: ({ seconds }) => Number(seconds) * 1_000 }
          : { kind: 'task', type: toolTask(tool), timeoutMs: TOOL_MS },
    },
  )
  const engine = new Engine({ storage, blueprints, clock, random, log: SILENT, settings: SETTINGS })
  const parts = { storage, engine, clock, random, log: SILENT }
  const automations = new Automations({ ...parts, tools: () => TOOLS, timezone: 'UTC', vault: VAULT })
  const { launcher, zones, calendars } = automations
  const conditions = new Conditions({ ...parts, launcher, read: (id, actor) => automations.read(id, actor) })
  const others = { ...conditions.served, ...calendars.served }
  const firings = new FiringPump({ ...parts, launcher, zones, calendars, others })
  const deliveries = new EventPump({ ...parts, launcher })
  return {
    engine,
    automations,
    events: new EventLog(parts),
    conditions,
    start: async () => {
      for (const service of [engine, firings, deliveries]) await service.start()
      startHands({ node, engine, automations, clock, gauge })
    },
  }
}

const nothing = (): void => undefined
const SILENT: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing }
