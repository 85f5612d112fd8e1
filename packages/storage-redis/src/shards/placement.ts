import { jobOfItem, shardSuffix } from '@impresario/core'
import type { Kind, Queue } from '@impresario/core'

/**
 * Where a namespace of several shards keeps what: a pure function of its name, the same in every instance.
 *
 * - A job, its turn, its tasks, timers, letters and messages are named after it, and children after their parent: all of a
 *   tree goes by the last digits of the root's UUID. So every step of a job is written in one shard.
 * - An automation, its triggers, its next firing and its audit entries go by the last digits of its id, and so do its runs,
 *   whose ids are made to end like it.
 * - An idempotency key goes by the digits of its own text, and its job gets an id that ends with them (`Random.id`).
 * - What one process at a time writes under its lead is in the first shard, where the lead is: guarded writes are then of one
 *   shard, and lists of workers ask one.
 * - Everything else goes by its own text.
 */
export interface ShardPlacement {
  readonly shards: number
  readonly ofRecord: (kind: Kind, id: string) => number
  readonly ofItem: (queue: Queue, id: string) => number
  /** The shards that may hold records of a kind. */
  readonly ofKind: (kind: Kind) => readonly number[]
  readonly ofQueue: (queue: Queue) => readonly number[]
}

const FIRST = [0]
const UNDER_LEAD: ReadonlySet<Kind> = new Set<Kind>(['worker', 'standing', 'schedule'])
const OF_JOBS: ReadonlySet<Kind> = new Set<Kind>([
  'job',
  'delivery',
  'automation',
  'subscription',
  'condition',
  'event',
  'audit',
])
const ROOT = /^(?:msg_)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{8}([0-9a-f]{4})(?![0-9a-z])/i

export function placementOf(shards: number): ShardPlacement {
  const all = Array.from({ length: shards }, (_, shard) => shard)
  const by = (digits: string): number => Number.parseInt(digits, 16) % shards
  const ofTree = (id: string): number => by(ROOT.exec(id)?.[1] ?? shardSuffix(jobOfItem(id)))
  if (shards === 1) return { shards, ofRecord: () => 0, ofItem: () => 0, ofKind: () => FIRST, ofQueue: () => FIRST }
  return {
    shards,
    ofRecord: (kind, id) => (OF_JOBS.has(kind) ? ofTree(id) : UNDER_LEAD.has(kind) ? 0 : by(shardSuffix(id))),
    ofItem: (queue, id) => (queue === 'leaders' ? 0 : ofTree(id)),
    ofKind: (kind) => (UNDER_LEAD.has(kind) ? FIRST : all),
    ofQueue: (queue) => (queue === 'leaders' ? FIRST : all),
  }
}
