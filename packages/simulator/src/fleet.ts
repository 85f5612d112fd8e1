import type { Clock, Log, Storage } from '@impresario/core'
import { Engine } from '@impresario/engine'
import type { BlueprintSource, EngineSettings, TurnGuard } from '@impresario/engine'
import type { Stage } from './blueprints/stage.ts'
import type { Chance } from './chance.ts'
import type { Chronicle, Version } from './chronicle.ts'
import type { Faults } from './faults.ts'
import { Node, clockOf, randomOf } from './node.ts'
import type { Tally } from './tally.ts'
import type { World } from './world.ts'

/** Everything that the parts of one world share. */
export interface Setting {
  readonly world: World
  readonly chronicle: Chronicle
  readonly tally: Tally
  readonly faults: Faults
  readonly jobs: Map<string, Version>
}

/** Where processes find their storage: shared by all of them, or opened separately by each. */
export interface Depot {
  /** The storage that a new process uses. */
  open(node: Node): Promise<Storage>
  /** The storage itself, for inspection. */
  readonly truth: Storage
}

export interface FleetParts extends Setting {
  readonly depot: Depot
  readonly blueprints: BlueprintSource
  readonly settings: Partial<EngineSettings>
  readonly size: number
  /** Where user code runs that may crash its process. */
  readonly stage?: Stage
}

const STOP_EVERY_MS = 10_000

/** The processes that run engines. One that dies is replaced after a while, as by a supervisor. */
export class Fleet {
  readonly #parts: FleetParts
  readonly #nodes = new Set<Node>()
  readonly #births: ((node: Node) => void)[] = []
  readonly #chance: Chance
  readonly #ids = { value: 0 }
  #count = 0
  crashes = 0

  constructor(parts: FleetParts) {
    this.#parts = parts
    this.#chance = parts.world.chance('fleet')
  }

  start(): void {
    for (let slot = 0; slot < this.#parts.size; slot += 1) this.#boot(slot)
  }

  /** Calls back for every process that starts. */
  onBirth(greet: (node: Node) => void): void {
    this.#births.push(greet)
  }

  pick(chance: Chance): Node | undefined {
    const { ready } = this
    return ready.length === 0 ? undefined : chance.pick(ready)
  }

  /** Those that are running now. */
  get ready(): readonly Node[] {
    return [...this.#nodes].filter((node) => node.isStarted)
  }

  /** Whether every process is up. While one is down, its storage may show what a dying process left in memory. */
  get isWhole(): boolean {
    return this.ready.length === this.#parts.size
  }

  #boot(slot: number): void {
    const { world } = this.#parts
    this.#count += 1
    const skewMs = this.#parts.size === 1 ? 0 : this.#chance.between(-2_000, 2_000)
    const node = new Node(`e${slot}.${this.#count}`, world, skewMs)
    this.#nodes.add(node)
    node.onDeath(() => {
      this.crashes += 1
      this.#parts.chronicle.note(node.name, 'dies')
      this.#nodes.delete(node)
      world.after(this.#chance.between(1, 5_000), () => this.#boot(slot))
    })
    // A process that cannot start ends, and its supervisor retries.
    this.#run(node).catch(() => node.die())
  }

  async #run(node: Node): Promise<void> {
    const { world, blueprints, settings, depot, chronicle } = this.#parts
    const storage = await depot.open(node)
    const clock = clockOf(node)
    const random = randomOf(world, world.chance(`engine ${node.name}`), this.#ids)
    const log = logOf(chronicle, node.name)
    node.engine = new Engine({ storage, blueprints, clock, random, log, settings, guard: this.#guardOf(node) })
    await node.engine.start()
    if (!node.isAlive) return
    node.isStarted = true
    chronicle.note(node.name, 'started')
    for (const greet of this.#births) greet(node)
    await this.#stopSometimes(node, clock)
  }

  #guardOf(node: Node): TurnGuard | undefined {
    const { stage, tally, chronicle } = this.#parts
    if (stage === undefined) return undefined
    const strike = (jobId: string, visit: number): void => {
      tally.sometimes('fault: handler ended its process')
      chronicle.add({ type: 'struck', jobId, visit })
      node.die()
    }
    return { run: ({ jobId, visit }, code) => stage.within({ die: () => strike(jobId, visit) }, code) }
  }

  async #stopSometimes(node: Node, clock: Clock): Promise<void> {
    const { faults, tally, chronicle } = this.#parts
    const unending = new AbortController().signal
    while (node.isAlive) {
      await clock.sleep(STOP_EVERY_MS, unending)
      if (!this.#chance.happens(faults.stop)) continue
      tally.sometimes('fault: engine stopped')
      chronicle.note(node.name, 'stops')
      node.isStarted = false
      await node.engine.stop()
      node.die()
    }
  }
}

function logOf(chronicle: Chronicle, name: string): Log {
  const write = (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    chronicle.note(name, `${message} ${Object.values(fields).map(String).join(' ')}`)
  }
  return { debug: () => undefined, info: write, warn: write, error: write }
}
