import { overrideStorage } from '@impresario/core'
import type { Batch, ClaimOptions, Queue, Storage } from '@impresario/core'
import type { Link } from '../connection.ts'
import { Lost } from '../links.ts'
import { never } from '../node.ts'
import type { Node } from '../node.ts'

export const SINGLE_FAULTS = ['crash-before', 'crash-after', 'lost-request', 'lost-reply'] as const
export type SingleFault = (typeof SINGLE_FAULTS)[number]

/** Which calls are numbered: all, or only those that change something. */
export type Numbering = 'all' | 'effective'

/** Counts the calls of all processes of one world, and applies the planned faults. */
export class FaultPlan {
  readonly #faults: ReadonlyMap<number, SingleFault>
  calls = 0
  isOver = false

  constructor(faults: ReadonlyMap<number, SingleFault>) {
    this.#faults = faults
  }

  next(): SingleFault | undefined {
    if (this.isOver) return undefined
    this.calls += 1
    return this.#faults.get(this.calls - 1)
  }
}

/** Calls take no time here; only the planned ones fail. */
async function strike<T>(node: Node, fault: SingleFault | undefined, run: () => Promise<T>): Promise<T> {
  if (!node.isAlive) return never()
  if (fault === undefined) return run()
  if (fault === 'lost-request') throw new Lost(fault)
  if (fault === 'crash-before') {
    node.die()
    return never()
  }
  const answer = await run()
  if (fault === 'lost-reply') throw new Lost(fault)
  node.die()
  return never<typeof answer>()
}

/** Every call is numbered. */
export function plannedLink(node: Node, plan: FaultPlan): Link {
  return {
    carry: (_call, run) => (node.isAlive ? strike(node, plan.next(), run) : never()),
    hint: (run) => {
      if (node.isAlive) run()
    },
  }
}

/**
 * Only commits, renewals and claims that will find something are numbered. Leader election of the background processes
 * and worker statistics are left out: no job depends on them, and the number of pairs grows with the square of the
 * calls.
 */
export function effectiveCalls(storage: Storage, truth: Storage, node: Node, plan: FaultPlan): Storage {
  const claim = async (queue: Queue, options: ClaimOptions): ReturnType<Storage['claim']> => {
    if (!node.isAlive) return never()
    if (queue === 'leaders') return storage.claim(queue, options)
    const ready = new Set((await truth.lanes(queue)).map(({ lane }) => lane))
    const { lanes, limit } = options
    const finds = limit > 0 && (lanes === undefined ? ready.size > 0 : lanes.some((lane) => ready.has(lane)))
    return finds ? strike(node, plan.next(), () => storage.claim(queue, options)) : storage.claim(queue, options)
  }
  return overrideStorage(storage, {
    claim,
    commit: (batch: Batch) => {
      if (isOfBackground(batch)) return storage.commit(batch)
      return node.isAlive ? strike(node, plan.next(), async () => storage.commit(batch)) : never()
    },
    renew: (leases, leaseMs) => {
      if (leases.every(({ queue }) => queue === 'leaders')) return storage.renew(leases, leaseMs)
      return node.isAlive ? strike(node, plan.next(), () => storage.renew(leases, leaseMs)) : never()
    },
  })
}

function isOfBackground({ guard, enqueue = [], put = [] }: Batch): boolean {
  return (
    guard !== undefined ||
    enqueue.some(({ queue }) => queue === 'leaders' || queue === 'signals') ||
    put.some(({ kind }) => kind === 'standing')
  )
}
