import { isEnded } from '@impresario/core'
import { BUGS } from './bugs/index.ts'
import type { BugName } from './bugs/index.ts'
import type { Finding } from './checkers/finding.ts'
import { Chronicle } from './chronicle.ts'
import type { Version } from './chronicle.ts'
import { clearAway } from './clear-away.ts'
import { embeddedDepot, sharedDepot } from './depots.ts'
import { calm } from './faults.ts'
import { Fleet } from './fleet.ts'
import type { Setting } from './fleet.ts'
import { localLink, remoteLink } from './links.ts'
import { drawPlan } from './plan.ts'
import { populate, sourceOf } from './populate.ts'
import { judge } from './judge.ts'
import { Tally } from './tally.ts'
import { World } from './world.ts'

export interface SimulateOptions {
  readonly bug?: BugName | undefined
  readonly keepsLines?: boolean
}

export interface WorldReport {
  readonly seed: number
  readonly setup: 'cluster' | 'embedded' | 'unknown'
  readonly steps: number
  readonly simulatedMs: number
  readonly jobs: number
  readonly hash: number
  readonly findings: readonly Finding[]
  readonly counts: Readonly<Record<string, number>>
  readonly lines: readonly string[]
}

/** All jobs have to end within this time after the faults have ended. */
const CONVERGE_MS = 3_600_000

/** Runs the engine in the world of this seed and reports what went wrong. */
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
    stage: plan.stage,
    size: plan.setup === 'cluster' ? 3 : 1,
  })
  const isSettled = populate(setting, { ...plan, bug }, fleet)
  const isOver = (): boolean => isSettled() && [...jobs.values()].every(({ job }) => isEnded(job))
  await world.run(() => world.age >= plan.stormMs)
  calm(plan.faults)
  chronicle.note('world', 'the storm is over')
  const limit = world.now + CONVERGE_MS
  await world.run(() => isOver() || world.now > limit)
  await clearAway(setting, fleet, () => depot.truth)
  const findings = await judge({ ...setting, pieces: plan.pieces, storage: depot.truth, isSettled: isSettled(), fleet })
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
