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
import {
  checkBudget,
  checkCrossings,
  checkEvents,
  checkHeard,
  checkOccurrences,
  checkRuns,
  checkUsage,
} from './occurrences.ts'
import type { KnownEvent, Watched } from './occurrences.ts'

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

const watched = { overlap: 'parallel', ...pipeline(1) }
/** Runs that one automation may start; its day does not end in this world. */
const BUDGET = 12
const HELD_S = 20
/** A value stays for so long at least. */
const STAYS_MS = 2 * MINUTE

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
  { title: 'budget', triggers: [{ every: 40 }], budget: { runs_per_day: BUDGET }, overlap: 'parallel', ...pipeline(1) },
]
/** Conditions over what is reported: at once, and only what holds for a while. */
const WATCHING: readonly DataObject[] = [
  { title: 'at once', triggers: [{ kind: 'condition', expression: 'output.celsius > 30' }], ...watched },
  {
    title: 'held',
    triggers: [{ kind: 'condition', expression: 'output.celsius > 30', for_seconds: HELD_S }],
    ...watched,
  },
]
/** What a run of it costs, and what it may cost in a day. */
const PRICE = 1
const PURSE = 8
/** Pays for each run, one after the other. A run that failed is not repeated, so that each pays once at most. */
const PAYING: readonly DataObject[] = [
  {
    title: 'paying',
    triggers: [{ every: 100 }],
    budget: { usd_per_day: PURSE },
    retry: { max_retries: 0 },
    pipeline: [{ id: 'pay', uses: 'pay', with: {} }],
  },
]
/** A condition over what a tool says. */
const PROBING: readonly DataObject[] = [
  {
    title: 'probed',
    triggers: [{ kind: 'condition', uses: 'gauge', every_seconds: 20, expression: 'output.celsius > 30' }],
    ...watched,
  },
]
const HOOKED: readonly DataObject[] = [
  { title: 'hooked', triggers: [{ kind: 'webhook', source: 'shop' }], overlap: 'parallel', ...pipeline(1) },
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

interface Founded {
  readonly standing: readonly string[]
  readonly listening: readonly string[]
  readonly hooked: readonly string[]
  readonly paying: readonly string[]
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
  async found(): Promise<Founded> {
    const { automations } = this.#reliable('founder')
    const start = new Date(this.world.now).toISOString().slice(0, 19)
    const odd = { rrule: 'FREQ=MINUTELY;INTERVAL=10', dtstart: start, duration_seconds: 240 }
    const create = async (bodies: readonly DataObject[]): Promise<readonly string[]> => {
      const made: string[] = []
      for (const body of bodies) made.push((await automations.create(body, ACTOR)).id)
      return made
    }
    await automations.calendars.put('odd', { timezone: 'UTC', entries: [odd] }, ACTOR)
    const { record } = await automations.hooks.put('shop', { preset: 'token', secret: 'correct horse' }, ACTOR)
    this.#address = record.address
    const [standing, listening, hooked] = [await create(STANDING), await create(LISTENING), await create(HOOKED)]
    this.#watching = (await create(WATCHING)).map((id) => ({ id, rises: 0 }))
    this.#probed = (await create(PROBING)).map((id) => ({ id, rises: 0 }))
    return { standing, listening, hooked, paying: await create(PAYING) }
  }

  /** What the tool `gauge` reads, and the conditions over it. */
  readonly #gauge = { celsius: 20 }
  #probed: readonly Watched[] = []

  #address = ''
  #watching: readonly Watched[] = []
  readonly #delivered: KnownEvent[] = []
  #deliveries = 0

  /** Starts the processes, and clients that publish events within this time. */
  start(count = 2, withinMs = STRUCK_MS / 2): void {
    for (let slot = 0; slot < PROCESSES; slot += 1) this.#start(slot)
    const chance = this.world.chance('clients begin')
    this.#events = count
    for (let number = 0; number < count; number += 1) {
      this.world.after(chance.between(0, withinMs), () => this.#publish(`event ${number}`))
      this.world.after(chance.between(0, withinMs), () => this.#deliver(`delivery ${number}`))
    }
    this.#deliveries = count
    for (const one of this.#watching) this.#report(one, 40)
    for (const one of this.#probed) this.world.after(MINUTE / 2, () => this.#heat(one))
  }

  /** It gets warm, and stays so until the run that it has to start is there. */
  #heat(one: Watched): void {
    if (this.#isCalm) return
    this.#gauge.celsius = 40
    one.rises += 1
    this.#whenTrue(
      async () => (await checkCrossings(this.#truth, one)).length === 0,
      () => this.#cool(one),
    )
  }

  /** It gets cold, and stays so until that was seen. */
  #cool(one: Watched): void {
    this.#gauge.celsius = 20
    this.#whenTrue(
      () => this.#isClear(one),
      () => this.world.after(STAYS_MS, () => this.#heat(one)),
    )
  }

  #whenTrue(look: () => Promise<boolean>, then: () => void): void {
    look().then(
      (isTrue) => {
        if (isTrue) then()
        else this.world.after(MINUTE / 2, () => this.#whenTrue(look, then))
      },
      (error: unknown) => this.#troubles.push(String(error)),
    )
  }

  async #isClear(one: Watched): Promise<boolean> {
    const { conditions } = this.#reliable('looker')
    const [found] = await conditions.list(one.id, ACTOR)
    return found?.record.edge.phase === 'clear'
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
    for (const id of [...ids.standing, ...ids.paying]) {
      const record = await automations.read(id, ACTOR)
      findings.push(...(await checkOccurrences(automations, this.#truth, record, mustReach)))
    }
    for (const problem of this.#troubles) findings.push({ rule: 'a person can release jobs', problem })
    if (this.#known.length < this.#events) {
      findings.push({ rule: 'acknowledged', problem: 'an event was never acknowledged' })
    }
    if (this.#delivered.length < this.#deliveries) {
      findings.push({ rule: 'acknowledged', problem: 'a delivery was never acknowledged' })
    }
    const all = [...this.#known, ...this.#delivered]
    findings.push(...(await checkEvents(this.#truth, all)), ...(await this.#stale()))
    findings.push(...(await checkHeard(this.#truth, ids.listening, this.#known)))
    findings.push(...(await checkHeard(this.#truth, ids.hooked, this.#delivered)))
    for (const one of [...this.#watching, ...this.#probed]) findings.push(...(await checkCrossings(this.#truth, one)))
    for (const id of ids.paying) {
      const purse = { limit: PURSE, price: PRICE }
      findings.push(...(await checkUsage(automations, this.#truth, await automations.read(id, ACTOR), purse)))
    }
    const budget = ids.standing[STANDING.findIndex(({ title }) => title === 'budget')] ?? ''
    findings.push(...(await checkBudget(automations, this.#truth, await automations.read(budget, ACTOR), BUDGET)))
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
    return automationNode(new Node(name, this.world), this.#truth, { ms: 0 }, this.#ids, this.#gauge)
  }

  #start(slot: number): void {
    const { world } = this
    const chance = world.chance('starts')
    const node = new Node(`${slot}.${world.steps}`, world, chance.between(-1_000, 1_000))
    const running = automationNode(node, this.#connect(node), this.#jumps[slot] ?? { ms: 0 }, this.#ids, this.#gauge)
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

  /** A sender of webhooks, who sends again until it is acknowledged. */
  #deliver(key: string): void {
    this.#insist(
      async ({ automations, events }) => {
        const found = await automations.hooks.at(this.#address)
        if (found === undefined) throw new Error('The source is gone.')
        const said = { topic: 'shop.sold', payload: { key }, source: found.hook.name, idempotencyKey: key }
        return (await events.publish(said, ACTOR)).id
      },
      (id) => this.#delivered.push({ id, key }),
    )
  }

  /**
   * A monitor that reports a value until it is acknowledged, and stays with it for a while: high, low, high and so on.
   * Each time that it goes up has to start one run.
   */
  #report(one: Watched, celsius: number): void {
    if (this.#isCalm) return
    this.#insist(
      async ({ conditions }) => conditions.report(one.id, { celsius }, ACTOR),
      () => {
        if (celsius > 30) one.rises += 1
        this.world.after(STAYS_MS, () => this.#next(one, celsius))
      },
    )
  }

  /** It goes down when the run that it has to start is there. While no process runs, nothing is noticed. */
  #next(one: Watched, celsius: number): void {
    checkCrossings(this.#truth, one).then(
      (missing) => {
        if (missing.length === 0 || celsius < 30) this.#report(one, celsius > 30 ? 20 : 40)
        else if (!this.#isCalm) this.world.after(MINUTE, () => this.#next(one, celsius))
      },
      (error: unknown) => this.#troubles.push(String(error)),
    )
  }

  #insist<T>(send: (node: AutomationNode) => Promise<T>, acknowledged: (reply: T) => void): void {
    const { world } = this
    const chance = world.chance('senders')
    let isDone = false
    const again = (): void => {
      if (isDone) return
      const node = this.#nodes.get(chance.between(0, PROCESSES - 1))
      if (node !== undefined) {
        send(node).then(
          (reply) => {
            if (isDone) return
            isDone = true
            acknowledged(reply)
          },
          () => undefined,
        )
      }
      world.after(chance.between(1_000, 15_000), again)
    }
    again()
  }

  /** A client that sends an event until it is acknowledged, always with the same key. */
  #publish(key: string): void {
    this.#insist(
      async ({ events }) =>
        (await events.publish({ topic: 'order.paid', payload: { key }, idempotencyKey: key }, ACTOR)).id,
      (id) => this.#known.push({ id, key }),
    )
  }
}
