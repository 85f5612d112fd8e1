import type { Batch, Item } from '@impresario/core'
import type { ShardPlacement } from './placement.ts'

/** What a batch writes to one shard. */
export interface Part {
  readonly shard: number
  readonly batch: Batch
  /** The positions of this part's items in the whole batch, counted from one. */
  readonly places: readonly number[]
}

/** The only shard that a batch affects; `undefined` if there are several. An empty batch counts for the first shard. */
export function shardOf(batch: Batch, placement: ShardPlacement): number | undefined {
  const { put = [], drop = [], enqueue = [], remove = [], settle, guard } = batch
  let shard = -1
  const isOther = (one: number): boolean => {
    if (shard === -1) shard = one
    return shard !== one
  }
  if (settle !== undefined && isOther(placement.ofItem(settle.queue, settle.id))) return undefined
  if (guard !== undefined && isOther(placement.ofItem(guard.queue, guard.id))) return undefined
  for (const { kind, id } of put) if (isOther(placement.ofRecord(kind, id))) return undefined
  for (const { queue, id } of enqueue) if (isOther(placement.ofItem(queue, id))) return undefined
  for (const { queue, id } of remove) if (isOther(placement.ofItem(queue, id))) return undefined
  for (const { kind, id } of drop) if (isOther(placement.ofRecord(kind, id))) return undefined
  return Math.max(0, shard)
}

/**
 * The parts of a batch, the home first. The home is the shard of the guard, which is checked at the moment of decision
 * and never locked; or of the settled claim; or the shard with the most items, so that the others have only records and
 * no claim encounters their locks.
 */
export function partsOf(batch: Batch, placement: ShardPlacement): readonly Part[] {
  const { put = [], drop = [], enqueue = [], remove = [], settle, guard } = batch
  const itemShards = enqueue.map(({ queue, id }) => placement.ofItem(queue, id))
  const numbers = new Set([
    ...(guard === undefined ? [] : [placement.ofItem(guard.queue, guard.id)]),
    ...(settle === undefined ? [] : [placement.ofItem(settle.queue, settle.id)]),
    ...byFrequency([...itemShards, ...remove.map(({ queue, id }) => placement.ofItem(queue, id))]),
    ...byFrequency([...put, ...drop].map(({ kind, id }) => placement.ofRecord(kind, id))),
  ])
  return [...numbers].map((shard) => {
    const isItemHere = ({ queue, id }: Pick<Item, 'queue' | 'id'>): boolean => placement.ofItem(queue, id) === shard
    const places = itemShards.flatMap((one, index) => (one === shard ? [index + 1] : []))
    return {
      shard,
      places,
      batch: {
        put: put.filter(({ kind, id }) => placement.ofRecord(kind, id) === shard),
        drop: drop.filter(({ kind, id }) => placement.ofRecord(kind, id) === shard),
        enqueue: enqueue.filter((item) => isItemHere(item)),
        remove: remove.filter((item) => isItemHere(item)),
        ...(settle !== undefined && isItemHere(settle) ? { settle } : {}),
        ...(guard !== undefined && isItemHere(guard) ? { guard } : {}),
      },
    }
  })
}

function byFrequency(shards: readonly number[]): readonly number[] {
  const counts = new Map<number, number>()
  for (const shard of shards) counts.set(shard, (counts.get(shard) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a).map(([shard]) => shard)
}
