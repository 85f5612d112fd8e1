import { isEnded } from '@impresario/core'
import type { Storage } from '@impresario/core'
import { createMemoryStorage } from '@impresario/storage-embedded'
import type { Order } from '../actors/client.ts'
import type { Piece } from '../blueprints/stage.ts'
import type { Finding } from '../checkers/finding.ts'
import { Chronicle } from '../chronicle.ts'
import type { Version } from '../chronicle.ts'
import { clearAway } from '../clear-away.ts'
import { Connection } from '../connection.ts'
import { noFaults } from '../faults.ts'
import { Fleet } from '../fleet.ts'
import type { Depot, Setting } from '../fleet.ts'
import { judge } from '../judge.ts'
import type { Node } from '../node.ts'
import { populate, sourceOf } from '../populate.ts'
import { Recorder } from '../recorder.ts'
import { Tally } from '../tally.ts'
import { World } from '../world.ts'
import { FaultPlan, effectiveCalls, plannedLink } from './planned-link.ts'
import type { Numbering, SingleFault } from './planned-link.ts'

export interface SmallWorldOptions {
  /** The seed of all random decisions except the faults: ids, jitter, a person's answers. */
  readonly seed: number
  readonly piece: Piece
  /** What its jobs may run as children. */
  readonly pieces: readonly Piece[]
  readonly faults: ReadonlyMap<number, SingleFault>
  readonly numbering: Numbering
  readonly cancelAfterMs?: number | undefined
  readonly keepsLines?: boolean
}

export interface SmallWorldReport {
  /** Calls that were numbered before the job had ended. */
  readonly calls: number
  readonly status: string
  readonly findings: readonly Finding[]
  readonly steps: number
  readonly lines: readonly string[]
}

/** Longer than any lease, retry and wait of the reference blueprints together. */
const LIMIT_MS = 600_000
const SETTINGS = { workerLeaseMs: 3_000, workerTtlMs: 60_000, pickupMs: 1_000, handlerMs: 1_000 }

/** One engine, two workers, one job, and faults at exactly the requested calls. */
export async function runSmallWorld(options: SmallWorldOptions): Promise<SmallWorldReport> {
  const { piece, pieces, cancelAfterMs } = options
  const world = new World(options.seed)
  const chronicle = new Chronicle(world, { keepsLines: options.keepsLines === true })
  const jobs = new Map<string, Version>()
  const setting: Setting = { world, chronicle, tally: new Tally(), faults: noFaults(), jobs }
  const plan = new FaultPlan(options.faults)
  const depot = plannedDepot(setting, plan, options.numbering)
  const blueprints = sourceOf(pieces)
  const fleet = new Fleet({ ...setting, depot, blueprints, settings: SETTINGS, size: 1 })
  const cast = { workers: [workerTraits('w0'), workerTraits('w1')], orders: [orderOf(piece, cancelAfterMs)] }
  const isSettled = populate(setting, cast, fleet)
  const isOver = (): boolean => isSettled() && jobs.size > 0 && [...jobs.values()].every(({ job }) => isEnded(job))
  await world.run(() => isOver() || world.age > LIMIT_MS)
  plan.isOver = true
  await clearAway(setting, fleet, () => depot.truth)
  const findings = await judge({ ...setting, pieces, storage: depot.truth, isSettled: isSettled(), fleet })
  const root = [...jobs.values()].find(({ job }) => job.parent === undefined)
  const status = root?.job.status ?? 'missing'
  return { calls: plan.calls, status, findings, steps: world.steps, lines: chronicle.lines ?? [] }
}

function plannedDepot(setting: Setting, plan: FaultPlan, numbering: Numbering): Depot {
  const truth = createMemoryStorage({ now: () => setting.world.now })
  const recorder = new Recorder({ ...setting, inner: truth, truth })
  const open = async (node: Node): Promise<Storage> => {
    if (numbering === 'all') return new Connection(recorder, plannedLink(node, plan))
    const unnumbered = new Connection(recorder, plannedLink(node, new FaultPlan(new Map())))
    return effectiveCalls(unnumbered, truth, node, plan)
  }
  return { truth, open }
}

function workerTraits(id: string): Parameters<typeof populate>[1]['workers'][number] {
  return {
    worker: { id, skills: ['alpha', 'beta', 'gamma', 'slow'], concurrencyMax: 2 },
    concurrencyMax: 2,
    isBatching: id === 'w1',
    namesTasks: true,
    isLocal: false,
    heartbeatMs: 1_500,
    pollMs: 5_000,
  }
}

function orderOf(piece: Piece, cancelAfterMs: number | undefined): Order {
  const { name } = piece.blueprint
  const request = { blueprint: name, client: { id: 'ann' }, initialData: { key: 'k' } }
  return { key: 'k', request, atMs: 10, isTwin: false, isBatched: false, waits: false, cancelAfterMs }
}
