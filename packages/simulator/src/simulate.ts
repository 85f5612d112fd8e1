import { isEnded } from '@impresario/core'
import type { BlueprintSource } from '@impresario/engine'
import { ClientActor } from './actors/client.ts'
import type { Order } from './actors/client.ts'
import { People } from './actors/people.ts'
import { WorkerActor } from './actors/worker.ts'
import type { Piece } from './blueprints/stage.ts'
import { BUGS } from './bugs/index.ts'
import type { BugName } from './bugs/index.ts'
import type { Finding } from './checkers/finding.ts'
import { Chronicle } from './chronicle.ts'
import type { Version } from './chronicle.ts'
import { embeddedDepot, sharedDepot } from './depots.ts'
import { calm } from './faults.ts'
import { Fleet } from './fleet.ts'
import type { Setting } from './fleet.ts'
import { localLink, remoteLink } from './links.ts'
import { Network } from './network.ts'
import { drawPlan } from './plan.ts'
import type { Plan } from './plan.ts'
import { judge } from './judge.ts'
import { Tally } from './tally.ts'
import { World } from './world.ts'

export interface SimulateOptions {
  readonly bug?: BugName | undefined
  readonly keepsLines?: boolean
}

export interface WorldReport {
  readonly seed: number
  readonly setup: 'cluster' | 'embedded'
  readonly steps: number
  readonly simulatedMs: number
  readonly jobs: number
  readonly hash: number
  readonly findings: readonly Finding[]
  readonly counts: Readonly<Record<string, number>>
  readonly lines: readonly string[]
}

/** Everything has to be over within this time after the faults have ended. */
const CONVERGE_MS = 3_600_000
/** Then letters and timers that have become pointless are still cleared away. */
const CLEAR_MS = 60_000

/** Runs the engine in the world of this seed and says what went wrong in it. */
export async function simulate(seed: number, options: SimulateOptions = {}): Promise<WorldReport> {
  const world = new World(seed)
  const chronicle = new Chronicle(world, { keepsLines: options.keepsLines === true })
  const tally = new Tally()
  const kind = options.bug === undefined ? undefined : BUGS[options.bug]
  const plan = drawPlan(world, kind?.setup ?? 'both')
  const jobs = new Map<string, Version>()
  const setting: Setting = { world, chronicle, tally, faults: plan.faults, jobs }
  const bug = kind?.plant()
  const linkChance = world.chance('link')
  const linkOf = (node: Parameters<typeof remoteLink>[0]['node']): ReturnType<typeof remoteLink> =>
    (plan.setup === 'cluster' ? remoteLink : localLink)({ ...setting, node, chance: linkChance })
  const depot =
    plan.setup === 'cluster'
      ? sharedDepot({ ...setting, linkOf, bug })
      : embeddedDepot({ ...setting, linkOf, bug }, plan.cacheMax)
  const fleet = new Fleet({
    ...setting,
    depot,
    blueprints: sourceOf(plan.pieces),
    settings: plan.settings,
    size: plan.setup === 'cluster' ? 3 : 1,
  })
  const isSettled = populate(setting, plan, fleet)
  const isOver = (): boolean => isSettled() && [...jobs.values()].every(({ job }) => isEnded(job))
  await world.run(() => world.age >= plan.stormMs)
  calm(plan.faults)
  chronicle.note('world', 'the storm is over')
  const limit = world.now + CONVERGE_MS
  await world.run(() => isOver() || world.now > limit)
  const clearedAt = world.now + CLEAR_MS
  await world.run(() => world.now > clearedAt)
  const findings = await judge({ ...setting, plan, storage: depot.truth, isSettled: isSettled() })
  return {
    seed,
    setup: plan.setup,
    steps: world.steps,
    simulatedMs: world.age,
    jobs: jobs.size,
    hash: chronicle.hash,
    findings,
    counts: tally.toRecord(),
    lines: chronicle.lines ?? [],
  }
}

/** Brings workers, clients and people to life. The answer says whether all clients have said what they had to say. */
function populate(setting: Setting, plan: Plan, fleet: Fleet): () => boolean {
  const network = new Network({ ...setting, fleet })
  const workers = plan.workers.map((traits) => new WorkerActor({ ...setting, network, traits }))
  fleet.onBirth((node) =>
    node.onDeath(() => {
      for (const worker of workers) if (worker.isLocal) worker.die()
    }),
  )
  fleet.start()
  for (const worker of workers) worker.start()
  const open = new Set<Order>(plan.orders)
  const onSettled = (order: Order): void => void open.delete(order)
  for (const order of plan.orders) new ClientActor({ ...setting, network, onSettled }, order).start()
  new People({ ...setting, network }).start()
  return () => open.size === 0
}

function sourceOf(pieces: readonly Piece[]): BlueprintSource {
  const byName = new Map(pieces.map(({ blueprint }) => [blueprint.name, blueprint]))
  return { get: (name) => byName.get(name), latest: (name) => byName.get(name) }
}
