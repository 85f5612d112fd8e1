import type { Storage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import type { DataObject } from '@impresario/protocol'
import { createMemoryStorage } from '@impresario/storage-embedded'
import type { Finding } from '../checkers/finding.ts'
import { Connection } from '../connection.ts'
import { calm, drawFaults, noFaults } from '../faults.ts'
import type { Faults } from '../faults.ts'
import { effectiveCalls, FaultPlan, plannedLink } from '../exhaustive/planned-link.ts'
import type { SingleFault } from '../exhaustive/planned-link.ts'
import { remoteLink } from '../links.ts'
import { Node } from '../node.ts'
import { Tally } from '../tally.ts'
import { World } from '../world.ts'
import { AUTOMATION_BUGS } from './automation-bugs.ts'
import type { AutomationBugName } from './automation-bugs.ts'
import { automationNode } from './automation-node.ts'
import type { AutomationNode } from './automation-node.ts'
import { checkEvents, checkOccurrences, checkRuns } from './occurrences.ts'
import type { KnownEvent } from './occurrences.ts'

export interface AutomationReport {
  readonly seed: number
  readonly steps: number
  readonly findings: readonly Finding[]
  readonly runs: number
  readonly skips: number
  readonly events: number
  readonly crashes: number
}

const ACTOR = { id: 'ann', isAdmin: false }
const PROCESSES = 2
const STORM_MS = 40 * 60_000
const CALM_MS = 15 * 60_000
const EVENTS = 12
const STRUCK_MS = 2 * 60_000
const STRUCK_CALM_MS = 6 * 60_000
const MINUTE = 60_000

const pipeline = (seconds: number): DataObject => ({ pipeline: [{ id: 'wait', uses: 'delay', with: { seconds } }] })

/** One of each kind: policies for what was missed, overlap, calendars, jitter. */
const STANDING: readonly DataObject[] = [
  { title: 'run_once', triggers: [{ every: 60 }], ...pipeline(1) },
  { title: 'skip', triggers: [{ every: 45 }], misfire: 'skip', overlap: 'parallel', ...pipeline(2) },
  {
    title: 'catch_up',
    triggers: [{ every: 90 }],
    misfire: { catch_up: { max: 3, spread_seconds: 60 } },
    ...pipeline(1),
  },
  { title: 'overlap', triggers: [{ every: 30 }], overlap: 'skip', ...pipeline(50) },
  { title: 'two triggers', triggers: [{ cron: '*/2 * * * *' }, { every: 75 }], jitter_seconds: 20, ...pipeline(1) },
  { title: 'calendar', triggers: [{ every: 60 }], calendars: { exclude: ['odd'] }, ...pipeline(1) },
]
const LISTENING: readonly DataObject[] = [
  { title: 'all', triggers: [{ event: 'order.#' }], overlap: 'parallel', ...pipeline(1) },
  { title: 'one by one', triggers: [{ event: 'order.*' }], ...pipeline(3) },
]

/** Two processes on one storage, with crashes, lost calls, downtime and clocks that jump; then calm; then the count. */
export async function runAutomationWorld(
  seed: number,
  { bug, isQuiet = false }: { readonly bug?: AutomationBugName; readonly isQuiet?: boolean } = {},
): Promise<AutomationReport> {
  const town = new Town(seed, bug, isQuiet ? noFaults() : drawFaults(new World(seed).chance('faults')))
  const { world } = town
  const ids = await town.found()
  town.boot()
  await world.run(() => world.age >= STORM_MS)
  town.calmDown()
  await world.run(() => world.age >= STORM_MS + CALM_MS)
  return town.judge(ids)
}

/** One fault at one call that changes something, in a short world that is quiet otherwise. Says how many such calls there are. */
export async function runStruckWorld(
  faults: ReadonlyMap<number, SingleFault>,
): Promise<AutomationReport & { readonly calls: number }> {
  const plan = new FaultPlan(faults)
  const town = new Town(1, undefined, noFaults(), plan)
  const { world } = town
  const ids = await town.found()
  town.start()
  await world.run(() => world.age >= STRUCK_MS)
  plan.isOver = true
  town.calmDown()
  await world.run(() => world.age >= STRUCK_MS + STRUCK_CALM_MS)
  return { ...(await town.judge(ids)), calls: plan.calls }
}

class Town {
  readonly world: World
  readonly #truth: Storage
  readonly #faults: Faults
  readonly #bug: AutomationBugName | undefined
  readonly #nodes = new Map<number, AutomationNode>()
  readonly #jumps = Array.from({ length: PROCESSES }, () => ({ ms: 0 }))
  readonly #ids = { value: 0 }
  readonly #known: KnownEvent[] = []
  #isCalm = false
  #crashes = 0

  readonly #plan: FaultPlan | undefined
  #events = 0

  constructor(seed: number, bug: AutomationBugName | undefined, faults: Faults, plan?: FaultPlan) {
    this.world = new World(seed)
    this.#plan = plan
    const { world } = this
    this.#truth = createMemoryStorage({ now: () => world.now })
    this.#faults = faults
    this.#bug = bug
  }

  /** Creates the automations, before anything can go wrong. */
  async found(): Promise<{ readonly standing: readonly string[]; readonly listening: readonly string[] }> {
    const { automations } = this.#reliable('founder')
    const start = new Date(this.world.now).toISOString().slice(0, 19)
    const odd = { rrule: 'FREQ=MINUTELY;INTERVAL=10', dtstart: start, duration_seconds: 240 }
    const create = async (bodies: readonly DataObject[]): Promise<readonly string[]> => {
      const made: string[] = []
      for (const body of bodies) made.push((await automations.create(body, ACTOR)).id)
      return made
    }
    await automations.calendars.put('odd', { timezone: 'UTC', entries: [odd] }, ACTOR)
    return { standing: await create(STANDING), listening: await create(LISTENING) }
  }

  /** Starts the processes, and clients that publish events within this time. */
  start(count = 2, withinMs = STRUCK_MS / 2): void {
    for (let slot = 0; slot < PROCESSES; slot += 1) this.#start(slot)
    const chance = this.world.chance('clients begin')
    this.#events = count
    for (let number = 0; number < count; number += 1) {
      this.world.after(chance.between(0, withinMs), () => this.#publish(`event ${number}`))
    }
  }

  /** Everything, with a time in which nothing runs, and clocks that jump. */
  boot(): void {
    this.start(EVENTS, STORM_MS)
    const chance = this.world.chance('town')
    this.world.after(chance.between(MINUTE, STORM_MS / 2), () => this.#blackout(chance.between(1, 10) * MINUTE))
    this.#jumpSometimes()
  }

  calmDown(): void {
    this.#isCalm = true
    calm(this.#faults)
    for (const jump of this.#jumps) jump.ms = 0
    this.#release(this.#reliable('person').engine)
  }

  /** A person looks at what stands aside because its process ended too often. */
  #release(engine: Engine): void {
    const look = async (): Promise<void> => {
      const aside = await this.#truth.list('job', { status: 'quarantined', limit: 1_000 })
      for (const { id } of aside) await engine.retryJob(id, 'person')
    }
    look().then(
      () => this.world.after(10_000, () => this.#release(engine)),
      (error: unknown) => this.#troubles.push(String(error)),
    )
  }

  readonly #troubles: string[] = []

  async judge(ids: Awaited<ReturnType<Town['found']>>): Promise<AutomationReport> {
    const { automations } = this.#reliable('judge')
    const findings: Finding[] = []
    // The last firings may still be under way: two of the longest periods.
    const mustReach = this.world.now - 4 * MINUTE
    const jobs = await this.#truth.list('job', { limit: 100_000 })
    for (const id of ids.standing) {
      const record = await automations.read(id, ACTOR)
      findings.push(...(await checkOccurrences(automations, this.#truth, record, mustReach)))
    }
    for (const problem of this.#troubles) findings.push({ rule: 'a person can release jobs', problem })
    if (this.#known.length < this.#events) {
      findings.push({ rule: 'acknowledged', problem: 'an event was never acknowledged' })
    }
    findings.push(...(await checkEvents(this.#truth, ids.listening, this.#known)), ...(await this.#stale()))
    const skips = await automations.audit({ action: 'run.skipped', limit: 100_000 })
    const { seed, steps } = this.world
    const counts = { runs: jobs.length, skips: skips.items.length, events: this.#known.length, crashes: this.#crashes }
    return { seed, steps, findings, ...counts }
  }

  /** Runs that began long ago and have not ended. */
  async #stale(): Promise<readonly Finding[]> {
    const old = this.world.now - 5 * MINUTE
    const jobs = await this.#truth.list('job', { limit: 100_000 })
    const young = new Set(jobs.filter(({ value }) => value.createdAt > old).map(({ id }) => id))
    const open = await checkRuns(this.#truth)
    return open.filter(({ problem }) => !young.has(problem.split(' ')[0] ?? ''))
  }

  /** A process that nothing happens to. It runs no pumps. */
  #reliable(name: string): AutomationNode {
    return automationNode(new Node(name, this.world), this.#truth, { ms: 0 }, this.#ids)
  }

  #start(slot: number): void {
    const { world } = this
    const chance = world.chance('starts')
    const node = new Node(`${slot}.${world.steps}`, world, chance.between(-1_000, 1_000))
    const running = automationNode(node, this.#connect(node), this.#jumps[slot] ?? { ms: 0 }, this.#ids)
    this.#nodes.set(slot, running)
    node.onDeath(() => {
      this.#crashes += 1
      this.#nodes.delete(slot)
      world.after(chance.between(1, 20_000), () => this.#start(slot))
    })
    this.#stops.set(slot, () => node.die())
    running.start().catch(() => node.die())
  }

  #connect(node: Node): Storage {
    const truth = this.#truth
    if (this.#plan !== undefined) {
      return effectiveCalls(new Connection(truth, plannedLink(node, new FaultPlan(new Map()))), truth, node, this.#plan)
    }
    const link = remoteLink({ node, faults: this.#faults, chance: this.world.chance('link'), tally: new Tally() })
    const connection = new Connection(truth, link)
    return this.#bug === undefined ? connection : AUTOMATION_BUGS[this.#bug].plant(connection)
  }

  readonly #stops = new Map<number, () => void>()

  /** No process runs for a while. */
  #blackout(ms: number): void {
    for (const stop of this.#stops.values()) stop()
    const until = this.world.now + ms
    const again = (): void => {
      if (this.#isCalm || this.world.now >= until) return
      for (const stop of this.#stops.values()) stop()
      this.world.after(500, again)
    }
    again()
  }

  #jumpSometimes(): void {
    const chance = this.world.chance('jumps')
    this.world.after(chance.between(MINUTE, 10 * MINUTE), () => {
      if (this.#isCalm) return
      const jump = chance.pick(this.#jumps)
      jump.ms = chance.pick([0, 0, 2 * MINUTE, 5 * MINUTE, -2 * MINUTE])
      this.#jumpSometimes()
    })
  }

  /** A client that sends an event until it is acknowledged, always with the same key. */
  #publish(key: string): void {
    const { world } = this
    const chance = world.chance('clients')
    let isDone = false
    const again = (): void => {
      if (isDone) return
      const node = this.#nodes.get(chance.between(0, PROCESSES - 1))
      const said = { topic: 'order.paid', payload: { key }, idempotencyKey: key }
      node?.events.publish(said, ACTOR).then(
        ({ id }) => {
          if (isDone) return
          isDone = true
          this.#known.push({ id, key })
        },
        () => undefined,
      )
      world.after(chance.between(1_000, 15_000), again)
    }
    again()
  }
}
