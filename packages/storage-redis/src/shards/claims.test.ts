import type { Item } from '@impresario/core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startRedis } from '../redis-server.fixture.ts'
import type { TestServer } from '../redis-server.fixture.ts'
import type { RedisStorage } from '../redis-storage.ts'
import { bareStorage, CutWire, nameIn } from '../shards.fixture.ts'

const SHARDS = 4
const HOUR = 3_600_000

let server: TestServer
let namespaces = 0
beforeAll(async () => {
  server = await startRedis()
}, 300_000)
const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})
afterAll(() => server.remove())

interface Counted {
  readonly storage: RedisStorage
  /** The calls since the last query. */
  readonly calls: () => readonly string[]
}

/** Two instances on one namespace, on a stopped clock. The first one receives hints. */
async function pair(time: { now: number }): Promise<readonly [Counted, Counted]> {
  namespaces += 1
  const url = `${server.url}?namespace=k${namespaces}&shards=${SHARDS}`
  const counted = (instance: string): Counted => {
    let wire: CutWire | undefined
    const { storage } = bareStorage(url, {
      instance,
      patienceMs: 0,
      now: () => time.now,
      wireOf: (whole) => (wire = new CutWire(whole, Number.MAX_SAFE_INTEGER, 'before')),
    })
    open.push(storage)
    return { storage, calls: () => wire?.names.splice(0) ?? [] }
  }
  const [one, two] = [counted('one'), counted('two')]
  const heard = new Promise((resolve) => one.storage.watch('turns', resolve))
  const nothing = Symbol('nothing yet')
  for (;;) {
    await two.storage.commit({ enqueue: [item('first')] })
    if ((await Promise.race([heard, Promise.resolve(nothing)])) !== nothing) break
  }
  const { leases } = await one.storage.claim('turns', { limit: 1, leaseMs: HOUR })
  for (const settle of leases) await one.storage.commit({ settle })
  time.now += 1_000
  one.calls()
  return [one, two]
}

function item(id: string, fields: Partial<Item> = {}): Item {
  return { queue: 'turns', id, lane: 'a', priority: 0, delayMs: 0, payload: { id }, ...fields }
}

test('[G-02] a claim asks each shard once, and then only where there may be something', async () => {
  const time = { now: Date.UTC(2026, 0, 1) }
  const [{ storage, calls }] = await pair(time)
  const claim = async (lanes: readonly string[] | undefined): Promise<readonly string[]> =>
    (await storage.claim('turns', { limit: 2, leaseMs: HOUR, ...(lanes === undefined ? {} : { lanes }) })).leases.map(
      ({ id }) => id,
    )
  expect(await claim(['a'])).toEqual([])
  expect(calls()).toEqual(Array.from({ length: SHARDS }, () => 'survey'))
  expect(await claim(['a'])).toEqual([])
  expect(calls()).toEqual([])
  await storage.commit({ enqueue: [item(nameIn(2, SHARDS, 'i'))] })
  expect(await claim(['a'])).toEqual([nameIn(2, SHARDS, 'i')])
  expect(calls()).toEqual(['commit', 'claim'])
  expect(await claim(['a'])).toEqual([])
  expect(calls()).toEqual([])
  expect(await claim(['a', 'b'])).toEqual([])
  expect(calls()).toEqual(Array.from({ length: SHARDS }, () => 'survey'))
  // Knowledge about all lanes applies to each of them.
  expect(await claim(undefined)).toEqual([])
  calls()
  expect(await claim(['c'])).toEqual([])
  expect(calls()).toEqual([])
  // Knowledge expires.
  time.now += 1_000
  expect(await claim(['a'])).toEqual([])
  expect(calls()).toHaveLength(SHARDS)
})

test('[C-01] [G-02] lanes are given in turn, wherever their items lie', async () => {
  const [{ storage }] = await pair({ now: Date.UTC(2026, 0, 1) })
  const flood = Array.from({ length: 40 }, (_, index) => item(`flood${index}`, { lane: 'flood' }))
  await storage.commit({ enqueue: flood })
  await storage.commit({ enqueue: ['b', 'c'].map((lane) => item(lane, { lane })) })
  const lanes = async (limit: number): Promise<readonly string[]> =>
    (await storage.claim('turns', { limit, leaseMs: HOUR })).leases.map(({ lane }) => lane)
  expect((await lanes(10)).slice(0, 3).toSorted()).toEqual(['b', 'c', 'flood'])
  await storage.commit({ enqueue: [item('d', { lane: 'd' })] })
  expect((await lanes(10)).indexOf('d')).toBeLessThan(2)
})

test('[G-02] what becomes claimable later is found, whoever put it there', async () => {
  const time = { now: Date.UTC(2026, 0, 1) }
  const [{ storage, calls }, { storage: other }] = await pair(time)
  const claim = async (): Promise<readonly [readonly string[], number | undefined]> => {
    const { leases, nextInMs } = await storage.claim('turns', { lanes: ['a', 'z'], limit: 9, leaseMs: HOUR })
    return [leases.map(({ id }) => id), nextInMs]
  }
  expect(await claim()).toEqual([[], undefined])
  await storage.commit({ enqueue: [item('mine', { delayMs: 50 })] })
  expect(await claim()).toEqual([[], 50])
  time.now += 50
  expect(await claim()).toEqual([['mine'], HOUR])
  await storage.commit({ enqueue: [item('shared', { lane: 'y', fallback: { lane: 'z', afterMs: 80 } })] })
  expect(await claim()).toEqual([[], 80])
  time.now += 80
  expect((await claim())[0]).toEqual(['shared'])
  // A delayed item of another instance is not announced.
  await other.commit({ enqueue: [item('theirs', { delayMs: 60 })] })
  time.now += 300
  expect((await claim())[0]).toEqual(['theirs'])
  calls()
})

test('[G-02] nothing is taken for empty by those who do not hear the others', async () => {
  const time = { now: Date.UTC(2026, 0, 1) }
  const [{ storage }, { storage: deaf, calls }] = await pair(time)
  expect((await deaf.claim('turns', { limit: 1, leaseMs: HOUR })).leases).toEqual([])
  calls()
  await storage.commit({ enqueue: [item('i1')] })
  expect((await deaf.claim('turns', { limit: 1, leaseMs: HOUR })).leases).toMatchObject([{ id: 'i1' }])
  expect(calls().toSorted()).toEqual(['claim', ...Array.from({ length: SHARDS }, () => 'survey')])
})

test('[G-02] every step of a job is one call', async () => {
  const [{ storage, calls }] = await pair({ now: Date.UTC(2026, 0, 1) })
  const id = '01890000-0000-7000-8000-00000000beef'
  const value = { jobId: id, fingerprint: 'f', createdAt: 1 }
  const delivery = (version: number) => ({ kind: 'delivery', id, version, value: {} }) as const
  expect(await storage.commit({ put: [delivery(1)], enqueue: [item(id)] })).toBe('committed')
  const [turn] = (await storage.claim('turns', { limit: 1, leaseMs: HOUR })).leases
  calls()
  const enqueue = [item(`${id}.1.a`, { queue: 'tasks' }), item(`${id}.life`, { queue: 'timers', delayMs: HOUR })]
  const settle = turn === undefined ? {} : { settle: turn }
  expect(await storage.commit({ ...settle, put: [delivery(2)], enqueue })).toBe('committed')
  const remove = [{ queue: 'timers', id: `${id}.life` }] as const
  const message = item(`msg_${id}_1_finished`, { queue: 'outbox' })
  const letter = item(`${id}-1-a.order`, { queue: 'mail' })
  expect(await storage.commit({ put: [delivery(3)], remove, enqueue: [message, letter] })).toBe('committed')
  expect(calls()).toEqual(['commit', 'commit'])
  // A record in another shard needs a transaction.
  expect(await storage.commit({ put: [delivery(4), { kind: 'key', id: 'k1', version: 1, value }] })).toBe('committed')
  expect(calls()).toContain('decide')
})
