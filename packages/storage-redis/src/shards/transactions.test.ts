import type { Batch, Item, Put, Storage } from '@impresario/core'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Wire } from '../client/connection.ts'
import { openRedisStorage } from '../open.ts'
import { startRedis } from '../redis-server.fixture.ts'
import type { TestServer } from '../redis-server.fixture.ts'
import type { RedisStorage } from '../redis-storage.ts'
import { bareStorage, CutWire, nameIn } from '../shards.fixture.ts'

const SHARDS = 4
const HOUR = 3_600_000

let server: TestServer
let operator: Redis
let namespaces = 0
beforeAll(async () => {
  server = await startRedis()
  operator = new Redis(server.port)
}, 300_000)
const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})
afterAll(async () => {
  operator.disconnect()
  await server.remove()
})

function newUrl(): string {
  namespaces += 1
  return `${server.url}?namespace=t${namespaces}&shards=${SHARDS}`
}

function opened(url: string, instance: string, wireOf?: (wire: Wire) => Wire): RedisStorage {
  const { storage, connection } = bareStorage(url, {
    instance,
    patienceMs: 0,
    ...(wireOf === undefined ? {} : { wireOf }),
  })
  open.push(storage, connection)
  return storage
}

const settled = nameIn(1, SHARDS, 'settled')
const added = nameIn(1, SHARDS, 'added')
const removed = nameIn(2, SHARDS, 'removed')
const changed = nameIn(2, SHARDS, 'changed')
const replaced = nameIn(3, SHARDS, 'replaced')
const dropped = nameIn(3, SHARDS, 'dropped')

function item(id: string, fields: Partial<Item> = {}): Item {
  return { queue: 'turns', id, lane: id, priority: 0, delayMs: 0, payload: 'old', ...fields }
}

function delivery(id: string, version: number): Put {
  return { kind: 'delivery', id, version, value: { version }, facets: { owner: 'ann', status: `v${version}` } }
}

function schedule(version: number): Put {
  return {
    kind: 'schedule',
    id: 's',
    version,
    value: { firedFor: version, firedAt: 1, jobId: undefined, trigger: 't' },
  }
}

/** A batch with everything that can be written, over all four shards, with its home in the first. */
async function setUp(url: string): Promise<Batch> {
  const storage = await openRedisStorage({ url, waitMs: 30_000 })
  await storage.commit({
    enqueue: [item('lead', { queue: 'leaders' }), item(settled), item(removed), item(replaced)],
    put: [schedule(1), delivery(changed, 1), delivery(dropped, 1)],
  })
  const holder = 'somebody'
  const [guard] = (await storage.claim('leaders', { limit: 1, leaseMs: HOUR, holder })).leases
  const [settle] = (await storage.claim('turns', { lanes: [settled], limit: 1, leaseMs: HOUR, holder })).leases
  await storage.close()
  if (guard === undefined || settle === undefined) throw new Error('Nothing was claimed')
  return {
    guard,
    settle,
    put: [schedule(2), delivery(changed, 2)],
    drop: [{ kind: 'delivery', id: dropped }],
    enqueue: [item(added, { payload: 'new' }), item(replaced, { payload: 'new' })],
    remove: [{ queue: 'turns', id: removed }],
  }
}

const LOOKS = {
  read: (storage) => storage.read('delivery', changed),
  list: (storage) => storage.list('delivery', { limit: 9 }),
  counts: (storage) => storage.counts('delivery', { owner: 'ann' }),
  peek: (storage) => storage.peek('turns', [replaced]),
  lanes: (storage) => storage.lanes('turns'),
  claim: (storage) => storage.claim('turns', { lanes: ['nobody'], limit: 1, leaseMs: 1 }),
  expired: (storage) => storage.claimExpired('turns', { limit: 1, leaseMs: 1 }),
} as const satisfies Readonly<Record<string, (storage: Storage) => Promise<unknown>>>

/** All data, read in each possible way, starting with one of them. */
async function picture(storage: Storage, first: keyof typeof LOOKS): Promise<unknown> {
  await LOOKS[first](storage)
  const views = await storage.peek('turns', [settled, added, removed, replaced])
  const lanes = await storage.lanes('turns')
  return {
    schedule: (await storage.read('schedule', 's'))?.version,
    changed: (await storage.read('delivery', changed))?.version,
    dropped: (await storage.read('delivery', dropped))?.version,
    items: views.map((view) => view?.payload),
    lanes: lanes.map(({ lane }) => lane).toSorted(),
    listed: (await storage.list('delivery', { limit: 9 })).map(({ id, version }) => [id, version]),
    counts: await storage.counts('delivery', {}),
  }
}

const BEFORE = {
  schedule: 1,
  changed: 1,
  dropped: 1,
  items: ['old', undefined, 'old', 'old'],
  lanes: [removed, replaced],
  listed: [dropped, changed].map((id) => [id, 1] as const),
  counts: { v1: 2 },
}
const AFTER = {
  schedule: 2,
  changed: 2,
  dropped: undefined,
  items: [undefined, 'new', undefined, 'new'],
  lanes: [added, replaced],
  listed: [[changed, 2]],
  counts: { v2: 1 },
}

/** The keys that transactions leave behind until they are over. */
async function remainsOf(url: string): Promise<readonly string[]> {
  const namespace = new URL(url).searchParams.get('namespace') ?? ''
  const keys = await operator.keys(`impresario:{${namespace}/*`)
  return keys.filter((key) => /:(lock|part|open|parcel:.*)$/.test(key))
}

const STEPS = ['begin', 'prepare', 'prepare', 'prepare', 'decide', 'finish', 'finish', 'finish', 'forget']
const DECISION = STEPS.indexOf('decide') + 1

test('[G-02] [G-01] a batch over four shards is written, in these steps, and leaves nothing else behind', async () => {
  const url = newUrl()
  const batch = await setUp(url)
  let wire: CutWire | undefined
  const storage = opened(url, 'one', (whole) => (wire = new CutWire(whole, 100, 'before')))
  expect(await storage.commit(batch)).toBe('committed')
  expect(wire?.names).toEqual(STEPS)
  expect(await picture(storage, 'read')).toEqual(AFTER)
  expect(await storage.commit(batch)).toBe('conflict')
  expect(await remainsOf(url)).toEqual([])
})

/** Around the decision each way to read comes first once; before and after it, one of them. */
const DEATHS = STEPS.flatMap((step, index) =>
  (['before', 'after'] as const).map((when) => {
    const all = Object.keys(LOOKS) as (keyof typeof LOOKS)[]
    const looks = Math.abs(index + 1 - DECISION) <= 1 ? all : all.slice(index % all.length).slice(0, 1)
    return { at: index + 1, step, when, looks }
  }),
)

test.for(DEATHS)(
  '[G-02] [G-01] whoever dies $when step $at ($step) leaves all of a batch or nothing',
  async ({ at, when, looks }) => {
    const expected = at > DECISION || (at === DECISION && when === 'after') ? AFTER : BEFORE
    for (const first of looks) {
      const url = newUrl()
      const batch = await setUp(url)
      const dying = opened(url, 'dying', (wire) => new CutWire(wire, at, when))
      const outcome = await dying.commit(batch).catch(() => 'unknown')
      // After the decision the outcome is fixed, regardless of what happens to the remaining calls.
      expect(outcome).toBe(at > DECISION ? 'committed' : 'unknown')
      const other = opened(url, 'other')
      expect(await picture(other, first)).toEqual(expected)
      // Nothing is stuck: all of it can be written again, and the process that died comes back.
      await writeAll(other, expected === AFTER ? 2 : 1)
      open.push(await openRedisStorage({ url, instance: 'dying', waitMs: 30_000 }))
      expect(await remainsOf(url)).toEqual([])
    }
  },
)

/** Claims all claimable items, and writes every record and item of the batch, in one shard each. */
async function writeAll(storage: Storage, version: number): Promise<void> {
  const { leases } = await storage.claim('turns', { limit: 9, leaseMs: HOUR })
  expect(leases.map(({ id }) => id).toSorted()).toEqual(version === 1 ? [removed, replaced] : [added, replaced])
  expect(await storage.commit({ put: [delivery(changed, version + 1)] })).toBe('committed')
  expect(await storage.commit({ put: [delivery(dropped, version === 1 ? 2 : 1)] })).toBe('committed')
  expect(await storage.commit({ put: [schedule(version + 1)] })).toBe('committed')
  for (const id of [settled, added, removed, replaced]) {
    expect(await storage.commit({ enqueue: [item(id)] })).toBe('committed')
  }
}

test('[G-02] [G-01] what an undecided transaction has locked is free for whoever has lost patience with it', async () => {
  const ways: readonly ((storage: Storage, batch: Batch) => Promise<unknown>)[] = [
    async (storage) => expect(await storage.commit({ put: [delivery(changed, 2)] })).toBe('committed'),
    async (storage, { settle }) => expect(await storage.renew(settle === undefined ? [] : [settle], 1)).toEqual([true]),
    async (storage, { settle }) =>
      expect(await storage.commit(settle === undefined ? {} : { settle })).toBe('committed'),
    async (storage) =>
      expect((await storage.claim('turns', { limit: 9, leaseMs: HOUR })).leases).toMatchObject([{}, {}]),
    async (storage) =>
      expect((await storage.claim('turns', { lanes: [replaced], limit: 1, leaseMs: 1 })).leases).toMatchObject([{}]),
    // Another transaction over several shards.
    async (storage, batch) => expect(await storage.commit(batch)).toBe('committed'),
  ]
  for (const way of ways) {
    const url = newUrl()
    const batch = await setUp(url)
    const dying = opened(url, 'dying', (wire) => new CutWire(wire, DECISION, 'before'))
    await expect(dying.commit(batch)).rejects.toThrow('cut')
    await way(opened(url, 'other'), batch)
  }
})

test.for([true, false])(
  '[G-02] [G-01] who comes too late to decide starts anew on what is there then; something else is: %s',
  async (isInTheWay) => {
    const url = newUrl()
    const batch = await setUp(url)
    const other = opened(url, 'other')
    let isHeld = true
    const late = opened(url, 'late', (wire) => ({
      async call(name, args, shard) {
        if (name === 'decide' && isHeld) {
          isHeld = false
          // While this instance sleeps, another one ends its transaction.
          await other.commit({ put: [delivery(changed, isInTheWay ? 2 : 9)] })
        }
        return wire.call(name, args, shard)
      },
      listen: (...given) => wire.listen(...given),
      close: () => wire.close(),
    }))
    expect(await late.commit(batch)).toBe(isInTheWay ? 'conflict' : 'committed')
    const listed = BEFORE.listed.map(([id, version]) => [id, id === changed ? 2 : version])
    const expected = isInTheWay ? { ...BEFORE, changed: 2, counts: { v1: 1, v2: 1 }, listed } : AFTER
    expect(await picture(other, 'read')).toEqual(expected)
    expect(await remainsOf(url)).toEqual([])
  },
)

test('[G-02] [G-01] instances that write two shards together lose no step, and nobody sees half of one', async () => {
  const url = newUrl()
  const [a, b] = [nameIn(1, SHARDS, 'a'), nameIn(2, SHARDS, 'b')]
  const storages = await Promise.all(['one', 'two', 'three'].map((name) => openRedisStorage({ url, instance: name })))
  open.push(...storages)
  const versionOf = async (storage: Storage, id: string): Promise<number> =>
    (await storage.read('delivery', id))?.version ?? 0
  let steps = 0
  const write = async (storage: Storage): Promise<void> => {
    for (let done = 0; done < 12;) {
      const version = (await versionOf(storage, a)) + 1
      if ((await storage.commit({ put: [delivery(a, version), delivery(b, version)] })) !== 'committed') continue
      done += 1
      steps += 1
    }
  }
  const state = { isOver: false }
  const watcher = async (storage: Storage): Promise<number> => {
    let looks = 0
    for (; !state.isOver; looks += 1) {
      const [x, y] = looks % 2 === 0 ? [a, b] : [b, a]
      const first = await versionOf(storage, x)
      expect(await versionOf(storage, y)).toBeGreaterThanOrEqual(first)
    }
    return looks
  }
  const [watched = storages[0]] = storages
  if (watched === undefined) throw new Error('There are three')
  const looking = [watcher(watched), watcher(watched)]
  await Promise.all(storages.map((storage) => write(storage)))
  state.isOver = true
  for (const looks of await Promise.all(looking)) expect(looks).toBeGreaterThan(0)
  expect(steps).toBe(36)
  expect([await versionOf(watched, a), await versionOf(watched, b)]).toEqual([36, 36])
})
