import type { LeaseRef, Queue } from '@impresario/core'
import { itemName } from './batch-message.ts'
import type { Connections } from './connections.ts'
import { GroupCommit } from './group-commit.ts'
import type { Touches } from './names-in-use.ts'

export interface RenewalsOptions {
  readonly connections: Connections
  /** Quoted. */
  readonly schema: string
  /** A lane received an item that was handed back. */
  readonly onReady: (queue: Queue, lane: string) => void
}

interface Request {
  readonly leases: readonly LeaseRef[]
  readonly leaseMs: number
}

interface RefRow {
  readonly n: number
  readonly q: Queue
  readonly i: string
  readonly t: number
  /** The new lease. */
  readonly l: number
}

const SIZE_MAX = 128

/**
 * Renewals that are requested at the same time are sent together, and so are hand-backs. The two are not mixed, because
 * a renewal may be retried when its outcome is unknown, while a hand-back that is sent twice returns false the second
 * time.
 */
export class Renewals {
  readonly #options: RenewalsOptions
  readonly #renewals: GroupCommit<Request, readonly boolean[]>
  readonly #handBacks: GroupCommit<Request, readonly boolean[]>

  constructor(options: RenewalsOptions) {
    this.#options = options
    const group = (isRepeatable: boolean): GroupCommit<Request, readonly boolean[]> =>
      new GroupCommit({
        groupsMax: 2,
        sizeMax: SIZE_MAX,
        touches: touchesOf,
        send: (requests) => this.#send(requests, isRepeatable),
      })
    this.#renewals = group(true)
    this.#handBacks = group(false)
  }

  renew(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]> {
    return (leaseMs > 0 ? this.#renewals : this.#handBacks).ask({ leases, leaseMs })
  }

  async drain(): Promise<void> {
    await Promise.all([this.#renewals.drain(), this.#handBacks.drain()])
  }

  async #send(requests: readonly Request[], isRepeatable: boolean): Promise<readonly (readonly boolean[])[]> {
    const { connections, schema, onReady } = this.#options
    const { rows: refs, placeOf } = inOrder(requests)
    type Renewed = { readonly n: number; readonly lane: string; readonly ready: boolean }
    const text = `SELECT n, lane, ready FROM ${schema}.renew($1)`
    const rows = await connections.call<Renewed>(text, [JSON.stringify(refs)], { isRepeatable })
    const renewed = new Set(rows.map(({ n }) => n))
    for (const { n, lane, ready } of rows) {
      const queue = refs[n]?.q
      if (ready && queue !== undefined) onReady(queue, lane)
    }
    const seen = new Set<number>()
    return requests.map(({ leases, leaseMs }) =>
      leases.map((lease) => {
        const n = placeOf(lease)
        // The same claim, handed back a second time, no longer refers to anything.
        if (leaseMs <= 0 && seen.has(n)) return false
        seen.add(n)
        return renewed.has(n)
      }),
    )
  }
}

function touchesOf({ leases }: Request): Touches {
  return { writes: new Set(leases.map(({ queue, id }) => itemName(queue, id))), reads: new Set() }
}

/** The claims without duplicates, in the common lock order, and the position of a given claim among them. */
function inOrder(requests: readonly Request[]): {
  readonly rows: readonly RefRow[]
  readonly placeOf: (lease: LeaseRef) => number
} {
  const nameOf = ({ queue, id, token }: LeaseRef): string => `${itemName(queue, id)} ${token}`
  const unique = new Map<string, Omit<RefRow, 'n'>>()
  for (const { leases, leaseMs } of requests) {
    for (const lease of leases) {
      unique.set(nameOf(lease), { q: lease.queue, i: lease.id, t: lease.token, l: Math.ceil(leaseMs) })
    }
  }
  const sorted = [...unique].toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  const places = new Map(sorted.map(([name], n) => [name, n]))
  return {
    rows: sorted.map(([, row], n) => ({ n, ...row })),
    placeOf: (lease) => places.get(nameOf(lease)) ?? -1,
  }
}
