import type { EngineSettings } from '@impresario/engine'
import type { Order } from './actors/client.ts'
import type { WorkerTraits } from './actors/worker.ts'
import { randomPiece } from './blueprints/random-piece.ts'
import { sidePieces } from './blueprints/rarities.ts'
import { companionPieces, referencePieces } from './blueprints/repertoire.ts'
import { createStage } from './blueprints/stage.ts'
import type { Piece, Stage } from './blueprints/stage.ts'
import type { Chance } from './chance.ts'
import { drawFaults } from './faults.ts'
import type { Faults } from './faults.ts'
import type { World } from './world.ts'

/** What a seed determines before the world begins. */
export interface Plan {
  readonly setup: 'cluster' | 'embedded'
  readonly faults: Faults
  readonly settings: Partial<EngineSettings>
  readonly cacheMax: number
  /** How long the faults last. */
  readonly stormMs: number
  readonly pieces: readonly Piece[]
  readonly stage: Stage
  readonly workers: readonly WorkerTraits[]
  readonly orders: readonly Order[]
}

export function drawPlan(world: World, where: 'cluster' | 'embedded' | 'both'): Plan {
  const chance = world.chance('plan')
  const drawn = chance.pick(['cluster', 'cluster', 'embedded'] as const)
  const setup = where === 'both' ? drawn : where
  const stage = createStage(world)
  const pieces = [
    ...referencePieces(),
    ...companionPieces(),
    ...sidePieces(stage),
    randomPiece('random-a', chance, stage),
    randomPiece('random-b', chance, stage),
  ]
  const settings = drawSettings(chance, setup)
  const stormMs = chance.between(30, 70) * 1_000
  return {
    setup,
    faults: drawFaults(chance),
    settings,
    cacheMax: chance.pick([1, 8, 4096]),
    stormMs,
    pieces,
    stage,
    workers: drawWorkers(chance, setup, settings.workerLeaseMs ?? 30_000),
    orders: drawOrders(chance, pieces, stormMs),
  }
}

function drawSettings(chance: Chance, setup: Plan['setup']): Partial<EngineSettings> {
  return {
    executorConcurrencyMax: chance.pick([1, 3, 1_000]),
    handlerMs: 3_000,
    workerLeaseMs: chance.pick([4_000, 10_000, 30_000]),
    workerTtlMs: chance.pick([15_000, 120_000]),
    pickupMs: chance.pick([300, 2_000, 5_000]),
    isShared: setup === 'cluster',
  }
}

const SKILLS = ['alpha', 'beta', 'gamma', 'slow'] as const

function drawWorkers(chance: Chance, setup: Plan['setup'], leaseMs: number): readonly WorkerTraits[] {
  const count = chance.between(4, 10)
  return Array.from({ length: count }, (_, index) => {
    const concurrencyMax = chance.pick([1, 2, 4])
    // The first workers share all skills among them, so that every task has a worker.
    const sure = SKILLS[index % SKILLS.length] ?? 'alpha'
    const skills = SKILLS.filter((skill) => skill === sure || chance.happens(0.4))
    return {
      worker: { id: `w${index}`, skills, concurrencyMax, costPerSecond: chance.between(0, 5) },
      concurrencyMax,
      isBatching: chance.happens(0.5),
      namesTasks: chance.happens(0.7),
      isLocal: setup === 'embedded' && index > 3 && chance.happens(0.3),
      heartbeatMs: Math.floor(leaseMs / chance.pick([2, 3, 4])),
      pollMs: chance.pick([1_000, 5_000, 10_000]),
    }
  })
}

/** Rare blueprints are about as frequent as the plain ones, because they cover more. */
function drawOrders(chance: Chance, pieces: readonly Piece[], stormMs: number): readonly Order[] {
  const count = chance.between(8, 12)
  return Array.from({ length: count }, (_, index) => {
    const key = `k${index}`
    const piece = chance.pick(pieces)
    const isDoubtful = piece.blueprint.name === 'tour' ? 0.7 : 0.12
    return {
      key,
      request: {
        blueprint: piece.blueprint.name,
        client: { id: chance.pick(['ann', 'bob']) },
        initialData: { key },
        priority: chance.between(0, 2),
        webhookUrl: chance.happens(0.5) ? 'https://hear.example/me' : undefined,
      },
      atMs: chance.between(0, Math.floor(stormMs / 2)),
      isTwin: chance.happens(0.15),
      isBatched: chance.happens(0.2),
      waits: chance.happens(0.3),
      cancelAfterMs: chance.happens(isDoubtful) ? chance.pick([0, 500, 2_000, 8_000, 30_000]) : undefined,
    }
  })
}
