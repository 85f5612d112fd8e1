import { jobOfItem } from '@impresario/core'
import type { ItemView, Lease, Queue } from '@impresario/core'
import { unpack, valueOf } from './codec.ts'

/** A claim's reply in place of the next wait: a transaction has locked the next item. */
const BLOCKED = -2

type LeaseReply = readonly [
  token: number,
  lane: string,
  priority: number,
  deliveries: number,
  left: number | false,
  rank?: number,
  sequence?: string,
]
type ViewReply = readonly [
  lane: string,
  priority: number,
  deliveries: number,
  dueInMs: number,
  token: number | false,
  holder: string | false,
  endsInMs: number,
]
export type ClaimReply = readonly [next: number, ...(Buffer | number)[]]

/** A lease and its rank among those of other shards. */
export interface Ranked {
  readonly lease: Lease
  readonly rank: number
  readonly sequence: string
}

export interface ClaimResult {
  readonly found: readonly Ranked[]
  /** Zero: there is more now; `undefined`: no upcoming item is known. */
  readonly nextInMs: number | undefined
  readonly isBlocked: boolean
}

export function claimResultOf(queue: Queue, [next, ...rows]: ClaimReply): ClaimResult {
  const found: Ranked[] = []
  const jobs = new Map<string, NonNullable<Lease['job']>>()
  for (const [id, meta, body] of triplesOf(rows)) {
    // After the leases come the jobs that were asked for: id, version, body.
    if (typeof meta === 'number') jobs.set(textOf(id), { value: valueOf<'job'>(bytesOf(body)), version: meta })
    else found.push(rankedOf(queue, textOf(id), meta, body))
  }
  const isBlocked = next === BLOCKED
  const nextInMs = isBlocked ? 0 : next < 0 ? undefined : next
  return { found: jobs.size === 0 ? found : withJobs(found, jobs), isBlocked, nextInMs }
}

function rankedOf(queue: Queue, id: string, meta: Buffer, body: Buffer | number): Ranked {
  const [token, lane, priority, deliveries, left, rank = 0, sequence = ''] = unpack<LeaseReply>(meta)
  const expiresInMs = left === false ? undefined : left
  const payload: Lease['payload'] = unpack(bytesOf(body))
  return { lease: { queue, id, token, lane, priority, payload, deliveries, expiresInMs }, rank, sequence }
}

function withJobs(found: readonly Ranked[], jobs: Map<string, NonNullable<Lease['job']>>): readonly Ranked[] {
  return found.map((one) => {
    const id = jobOfItem(one.lease.id)
    const job = jobs.get(id)
    // Each goes to the first of its items.
    jobs.delete(id)
    return job === undefined ? one : { ...one, lease: { ...one.lease, job } }
  })
}

export function isBlockedReply(reply: Buffer | number | undefined): boolean {
  return reply === BLOCKED
}

export function viewOf(
  name: Pick<ItemView, 'queue' | 'id'>,
  meta: Buffer | null,
  body: Buffer | null,
): ItemView | undefined {
  if (meta === null || body === null) return undefined
  const [lane, priority, deliveries, dueInMs, token, holder, endsInMs] = unpack<ViewReply>(meta)
  const lease = token === false ? undefined : { token, holder: holder === false ? undefined : holder, endsInMs }
  return { ...name, lane, priority, payload: unpack(body), deliveries, dueInMs, lease }
}

export function pairsOf<T>(flat: readonly T[]): readonly (readonly [T, T])[] {
  const pairs: (readonly [T, T])[] = []
  for (let index = 0; index + 1 < flat.length; index += 2) pairs.push([flat[index] as T, flat[index + 1] as T])
  return pairs
}

export function triplesOf<T>(flat: readonly T[]): readonly (readonly [T, T, T])[] {
  const triples: (readonly [T, T, T])[] = []
  for (let index = 0; index + 2 < flat.length; index += 3) {
    triples.push([flat[index] as T, flat[index + 1] as T, flat[index + 2] as T])
  }
  return triples
}

export function bytesOf(value: unknown): Buffer {
  if (!Buffer.isBuffer(value)) throw new TypeError('The server answered something else where bytes belong')
  return value
}

export function textOf(value: Buffer | number): string {
  return value.toString()
}

/** The smaller of two waits, either of which may be unknown. */
export function sooner(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b
  return b === undefined ? a : Math.min(a, b)
}
