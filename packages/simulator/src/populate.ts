import type { BlueprintSource } from '@impresario/engine'
import { ClientActor } from './actors/client.ts'
import type { Order } from './actors/client.ts'
import { People } from './actors/people.ts'
import { WorkerActor } from './actors/worker.ts'
import type { WorkerTraits } from './actors/worker.ts'
import type { Piece } from './blueprints/stage.ts'
import type { Bug } from './bugs/bug.ts'
import type { Fleet, Setting } from './fleet.ts'
import { Network } from './network.ts'

export interface Cast {
  readonly workers: readonly WorkerTraits[]
  readonly orders: readonly Order[]
  readonly bug?: Bug | undefined
}

/** Starts engines, workers, clients and people. The returned function tells whether all clients are done. */
export function populate(setting: Setting, cast: Cast, fleet: Fleet): () => boolean {
  const network = new Network({ ...setting, fleet })
  const workers = cast.workers.map((traits) => new WorkerActor({ ...setting, network, traits, bug: cast.bug }))
  fleet.onBirth((node) =>
    node.onDeath(() => {
      for (const worker of workers) if (worker.isLocal) worker.die()
    }),
  )
  fleet.start()
  for (const worker of workers) worker.start()
  const open = new Set<Order>(cast.orders)
  const onSettled = (order: Order): void => {
    open.delete(order)
  }
  for (const order of cast.orders) new ClientActor({ ...setting, network, onSettled }, order).start()
  new People({ ...setting, network }).start()
  return () => open.size === 0
}

export function sourceOf(pieces: readonly Piece[]): BlueprintSource {
  const byName = new Map(pieces.map(({ blueprint }) => [blueprint.name, blueprint]))
  return { get: (name) => byName.get(name), latest: (name) => byName.get(name) }
}
