import { randomUUID } from 'node:crypto'
import { childJobId, messageId, shardSuffix, taskId, timerId, turnId } from '@impresario/core'
import type { Kind, Queue } from '@impresario/core'
import { expect, test } from 'vitest'
import { partsOf, shardOf } from './parts.ts'
import { placementOf } from './placement.ts'
import { nameIn } from '../shards.fixture.ts'

/** Everything that is named after a job, named as the engine does it. */
function shardsOfTree(root: string, shards: number): ReadonlySet<number> {
  const { ofRecord, ofItem } = placementOf(shards)
  const child = childJobId(root, 3, 'left')
  const grandchild = childJobId(child, 1, '0')
  return new Set(
    [root, child, grandchild].flatMap((job) => [
      ofRecord('job', job),
      ofItem('turns', turnId(job)),
      ofItem('tasks', taskId(job, 2, 'a.b')),
      ofItem('timers', timerId(job, 'life')),
      ofItem('mail', `${job}.order`),
      ofItem('mail', `${job}.ended`),
      ofItem('mail', `${job}.quarantined.4`),
      ofItem('outbox', messageId(job, 2, 'finished')),
      ofRecord('delivery', messageId(job, 2, 'finished')),
    ]),
  )
}

test('[G-02] a job, all that is named after it, and its children lie in one shard', () => {
  const used = new Set<number>()
  for (let round = 0; round < 200; round += 1) {
    const found = shardsOfTree(randomUUID(), 7)
    expect(found.size).toBe(1)
    for (const shard of found) used.add(shard)
  }
  expect([...used].toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6])
})

test('[G-02] a job lies where its idempotency key is, if its id was made near it', () => {
  for (let round = 0; round < 50; round += 1) {
    const key = `018f-client/order.${round}`
    const id = `${randomUUID().slice(0, 32)}${shardSuffix(key)}`
    const { ofRecord } = placementOf(16)
    expect(ofRecord('job', id)).toBe(ofRecord('key', key))
  }
})

test('[G-02] what is written under a lead lies where the lead is', () => {
  const placement = placementOf(9)
  for (const kind of ['worker', 'standing', 'schedule'] as const) {
    expect(placement.ofRecord(kind, randomUUID())).toBe(placement.ofItem('leaders', 'scheduler'))
    expect(placement.ofKind(kind)).toEqual([0])
  }
  expect(placement.ofQueue('leaders')).toEqual([0])
  expect(placement.ofQueue('tasks')).toHaveLength(9)
})

test('[G-02] every name has a place, whatever it is, and one shard is the place of all', () => {
  const names = [
    '',
    '.',
    'ü',
    'x'.repeat(1_000),
    'msg_',
    `${randomUUID()}f`,
    randomUUID().toUpperCase(),
    '../{x}',
    '😀.1',
  ]
  const kinds: readonly Kind[] = ['job', 'key', 'worker', 'token', 'nonce', 'quota', 'delivery', 'endpoint']
  const queues: readonly Queue[] = ['turns', 'mail', 'leaders']
  for (const shards of [1, 2, 5, 256]) {
    const { ofRecord, ofItem } = placementOf(shards)
    for (const name of names) {
      for (const shard of [
        ...kinds.map((kind) => ofRecord(kind, name)),
        ...queues.map((queue) => ofItem(queue, name)),
      ]) {
        expect(Number.isInteger(shard) && shard >= 0 && shard < shards).toBe(true)
      }
    }
  }
})

test('[G-02] a batch of several shards has its home where its guard is, else its claim, else its items', () => {
  const placement = placementOf(4)
  const item = { queue: 'turns', lane: 'a', priority: 0, delayMs: 0, payload: null } as const
  const [zero = '', one = '', two = '', three = ''] = [0, 1, 2, 3].map((shard) => nameIn(shard, 4, 'i'))
  const settle = { queue: 'turns', id: two, token: 1 } as const
  const guard = { queue: 'turns', id: three, token: 2 } as const
  const enqueue = [
    { ...item, id: one },
    { ...item, id: zero },
    { ...item, id: `${one}.1` },
  ]
  const shardsOf = (batch: Parameters<typeof partsOf>[0]): readonly number[] =>
    partsOf(batch, placement).map(({ shard }) => shard)
  expect(shardsOf({ settle, guard, enqueue })).toEqual([3, 2, 1, 0])
  expect(shardsOf({ settle, enqueue })).toEqual([2, 1, 0])
  expect(shardsOf({ enqueue, drop: [{ kind: 'job', id: three }] })).toEqual([1, 0, 3])
  expect(partsOf({ settle, enqueue }, placement).map(({ places }) => places)).toEqual([[], [1, 3], [2]])
  expect(shardOf({ enqueue }, placement)).toBeUndefined()
  expect(shardOf({ settle, remove: [{ queue: 'mail', id: two }] }, placement)).toBe(2)
  expect(shardOf({}, placement)).toBe(0)
})
