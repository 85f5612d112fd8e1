import type { Item, Job, Storage } from '@impresario/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openRedisStorage } from './open.ts'
import { startRedis } from './redis-server.fixture.ts'
import type { TestServer } from './redis-server.fixture.ts'

let server: TestServer
let namespaces = 0

beforeAll(async () => {
  server = await startRedis()
}, 300_000)
afterAll(() => server.remove())

const HOUR = 3_600_000

function item(id: string, fields: Partial<Item> = {}): Item {
  return { queue: 'turns', id, lane: 'a', priority: 0, delayMs: 0, payload: { id }, ...fields }
}

/** Opens storages on one namespace that is empty at first, and closes all of them at the end. */
async function withNamespace(
  run: (open: (instance?: string) => ReturnType<typeof openRedisStorage>) => Promise<void>,
  shards = 1,
): Promise<void> {
  const url = `${server.url}?namespace=i${++namespaces}&shards=${shards}`
  const opened: Storage[] = []
  try {
    await run(async (instance) => {
      const storage = await openRedisStorage({ url, waitMs: 30_000, ...(instance === undefined ? {} : { instance }) })
      opened.push(storage)
      return storage
    })
  } finally {
    for (const storage of opened) await storage.close()
  }
}

test.for([1, 4])('[G-02] six instances with 24 claimers get each of 1,200 items once, in %i shards', async (shards) => {
  await withNamespace(async (open) => {
    const storages = await Promise.all(Array.from({ length: 6 }, () => open()))
    const ids = Array.from({ length: 1_200 }, (_, index) => `i${index}`)
    const [first] = storages
    for (let start = 0; start < ids.length; start += 300) {
      const enqueue = ids.slice(start, start + 300).map((id, index) => item(id, { lane: `lane${index % 9}` }))
      await first?.commit({ enqueue })
    }
    const lanes = Array.from({ length: 9 }, (_, lane) => `lane${lane}`)
    const got: string[] = []
    const tokens = new Set<number>()
    const work = async (storage: Storage, number: number): Promise<void> => {
      const from = number % 2 === 0 ? {} : { lanes }
      for (;;) {
        const { leases } = await storage.claim('turns', { limit: 1 + (number % 4), leaseMs: HOUR, ...from })
        if (leases.length === 0) return
        for (const lease of leases) {
          got.push(lease.id)
          tokens.add(lease.token)
          expect(await storage.commit({ settle: lease })).toBe('committed')
        }
      }
    }
    await Promise.all(storages.flatMap((storage) => [0, 1, 2, 3].map((number) => work(storage, number))))
    expect(got.toSorted()).toEqual(ids.toSorted())
    expect(tokens.size).toBe(ids.length)
    expect(await first?.lanes('turns')).toEqual([])
  }, shards)
})

test('[G-02] instances that count one record up lose no step', async () => {
  await withNamespace(async (open) => {
    const storages = await Promise.all([open(), open(), open()])
    const step = async (storage: Storage): Promise<void> => {
      for (;;) {
        const stored = await storage.read('quota', 'ann')
        const value = { period: '2026-01', used: (stored?.value.used ?? 0) + 1 }
        const put = [{ kind: 'quota', id: 'ann', version: (stored?.version ?? 0) + 1, value } as const]
        if ((await storage.commit({ put })) === 'committed') return
      }
    }
    await Promise.all(
      storages.map(async (storage) => {
        for (let round = 0; round < 40; round++) await step(storage)
      }),
    )
    expect(await storages[0].read('quota', 'ann')).toMatchObject({ value: { used: 120 }, version: 120 })
  })
})

test('[G-02] a restarted instance sets free what it had in its own hands, and nothing of others', async () => {
  await withNamespace(async (open) => {
    const other = await open('two')
    const url = `${server.url}?namespace=i${namespaces}`
    await other.commit({ enqueue: ['mine', 'held', 'theirs', 'expired'].map((lane) => item(lane, { lane })) })
    await other.commit({ enqueue: [item('expired', { lane: 'expired', unclaimedMs: 0 })] })
    // It ends without notice: it is not closed before the next process of its name has started.
    const crashed = await openRedisStorage({ url, instance: 'one', waitMs: 30_000 })
    const [mine] = (await crashed.claim('turns', { lanes: ['mine'], limit: 1, leaseMs: HOUR })).leases
    if (mine === undefined) throw new Error('Nothing was claimed')
    await crashed.claim('turns', { lanes: ['held'], limit: 1, leaseMs: HOUR, holder: 'worker' })
    await other.claim('turns', { lanes: ['theirs'], limit: 1, leaseMs: HOUR })
    expect((await crashed.claimExpired('turns', { limit: 1, leaseMs: HOUR })).leases).toMatchObject([{ id: 'expired' }])
    expect((await other.claim('turns', { limit: 9, leaseMs: HOUR })).leases).toEqual([])

    const again = await open('one')
    expect((await other.claim('turns', { limit: 9, leaseMs: HOUR })).leases).toMatchObject([
      { id: 'mine', deliveries: 2 },
    ])
    expect((await other.claimExpired('turns', { limit: 9, leaseMs: HOUR })).leases).toMatchObject([{ id: 'expired' }])
    expect(await again.peek('turns', ['held'])).toMatchObject([{ lease: { holder: 'worker' } }])
    expect(await crashed.commit({ settle: mine })).toBe('conflict')
    await crashed.close()
  })
})

test('[G-02] what an instance holds when it is closed is free for the others at once', async () => {
  await withNamespace(async (open) => {
    const [one, two] = [await open(), await open()]
    await one.commit({ enqueue: Array.from({ length: 450 }, (_, index) => item(`i${index}`)) })
    expect((await one.claim('turns', { limit: 1_000, leaseMs: HOUR })).leases).toHaveLength(450)
    await one.close()
    expect((await two.claim('turns', { limit: 1_000, leaseMs: HOUR })).leases).toHaveLength(450)
    await expect(one.claim('turns', { limit: 1, leaseMs: HOUR })).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
  })
})

test('[G-02] a commit of one instance wakes those who watch at another', async () => {
  await withNamespace(async (open) => {
    const [one, two] = [await open(), await open()]
    const lanes: string[] = []
    const heard = new Promise<void>((resolve) => {
      two.watch('turns', (lane) => {
        lanes.push(lane)
        resolve()
      })
    })
    // The subscription uses another connection: until it is established, hints are missed.
    const nothing = Symbol('nothing yet')
    for (;;) {
      await one.commit({ enqueue: [item('i1', { lane: 'x' })] })
      if ((await Promise.race([heard, Promise.resolve(nothing)])) !== nothing) break
    }
    expect(new Set(lanes)).toEqual(new Set(['x']))
    const lease = (await one.claim('turns', { limit: 1, leaseMs: HOUR })).leases
    const back = new Promise((resolve) => two.watch('turns', resolve))
    await one.renew(lease, 0)
    expect(await back).toBe('x')
  })
})

test.for([1, 4])('[G-02] a signal that is due is told to all and not kept, in %i shards', async (shards) => {
  await withNamespace(async (open) => {
    const [one, two] = await Promise.all([open(), open()])
    const heard: string[] = []
    // One stem: one shard.
    const signal = (name: string, fields: Partial<Item> = {}): Item =>
      item(`s.${name}`, { queue: 'signals', lane: name, ...fields })
    two.watch('signals', (lane) => heard.push(lane))
    // The subscription uses another connection: until it is established, hints are missed.
    while (!heard.includes('ready')) await one.commit({ enqueue: [signal('ready')] })
    const told = new Promise((resolve) => {
      two.watch('signals', (lane) => {
        if (lane === 'third') resolve(lane)
      })
    })
    const enqueue = [signal('first'), signal('second', { delayMs: HOUR }), signal('third')]
    expect(await one.commit({ enqueue })).toBe('committed')
    await told
    expect(heard.filter((lane) => lane !== 'ready')).toEqual(['first', 'third'])
    const views = await two.peek('signals', ['s.first', 's.second', 's.third'])
    expect(views.map((view) => view?.lane)).toEqual([undefined, 'second', undefined])
    expect(await two.lanes('signals')).toEqual([])
  }, shards)
})

test('[G-02] all instances go by the clock of the server', async () => {
  await withNamespace(async (open) => {
    const [one, two] = [await open(), await open()]
    await one.commit({ enqueue: [item('i1', { delayMs: 30 }), item('i2', { delayMs: HOUR, lane: 'b' })] })
    const due = async (): Promise<readonly string[]> => {
      for (;;) {
        const { leases, nextInMs = 0 } = await two.claim('turns', { limit: 9, leaseMs: 20 })
        if (leases.length > 0) return leases.map(({ id }) => id)
        expect(nextInMs).toBeLessThanOrEqual(30)
      }
    }
    expect(await due()).toEqual(['i1'])
    expect(await due()).toEqual(['i1'])
    const [view] = await one.peek('turns', ['i2'])
    expect(view?.dueInMs).toBeGreaterThan(0)
    expect(view?.dueInMs).toBeLessThanOrEqual(HOUR)
  })
})

test('[G-02] more than one call can clear away is done in several', async () => {
  await withNamespace(async (open) => {
    let now = Date.UTC(2026, 0, 1)
    const url = `${server.url}?namespace=many`
    const storage = await openRedisStorage({ url, now: () => now, waitMs: 30_000 })
    for (let start = 0; start < 1_700; start += 425) {
      const enqueue = Array.from({ length: 425 }, (_, index) => item(`i${start + index}`, { delayMs: 1_000 }))
      await storage.commit({ enqueue })
    }
    now += 1_000
    expect(await storage.claim('turns', { limit: 0, leaseMs: 0 })).toEqual({ leases: [], nextInMs: 0 })
    expect(await storage.lanes('turns')).toEqual([{ lane: 'a', ready: 1_700 }])
    expect((await storage.claim('turns', { limit: 5_000, leaseMs: 1_000 })).leases).toHaveLength(1_000)
    expect(
      await storage.peek(
        'turns',
        Array.from({ length: 1_700 }, (_, index) => `i${index}`),
      ),
    ).toHaveLength(1_700)
    await storage.close()
    await open()
  })
})

test('[G-02] lists go over many pages, with filters that few records meet', async () => {
  await withNamespace(async (open) => {
    const storage = await open()
    const ids = Array.from({ length: 1_300 }, (_, index) => `k${String(index).padStart(5, '0')}`)
    const value = { jobId: 'j', fingerprint: 'f', createdAt: 1 }
    for (let start = 0; start < ids.length; start += 325) {
      const put = ids.slice(start, start + 325).map((id, index) => {
        const facets = { owner: 'ann', status: index % 100 === 0 ? 'rare' : 'usual', text: id.toUpperCase() }
        return { kind: 'key', id, version: 1, value, facets } as const
      })
      await storage.commit({ put })
    }
    const listed = async (query: object): Promise<readonly string[]> =>
      (await storage.list('key', { limit: 2_000, ...query })).map(({ id }) => id)
    expect(await listed({})).toEqual(ids.toReversed())
    expect(await listed({ limit: 700 })).toEqual(ids.toReversed().slice(0, 700))
    expect(await listed({ owner: 'ann' })).toHaveLength(1_300)
    expect(await listed({ owner: 'ann', status: 'rare' })).toHaveLength(16)
    expect(await listed({ statuses: ['rare', 'usual'] })).toEqual(ids.toReversed())
    expect(await listed({ search: 'k0000', limit: 3 })).toEqual(['k00009', 'k00008', 'k00007'])
  })
})

test.for([1, 4])('[G-02] a claim brings the jobs of its items, unless they are large, in %i shards', async (shards) => {
  await withNamespace(async (open) => {
    const [one, two] = [await open(), await open()]
    /** Boundary: the storage does not look into what it keeps. */
    const job = (id: string): Job => ({ id, data: id === 'large' ? 'x'.repeat(20_000) : '' }) as unknown as Job
    for (const id of ['j1', 'j2', 'large']) {
      const enqueue = ['a', 'b'].map((branch) => item(`${id}.1.${branch}`))
      await one.commit({ put: [{ kind: 'job', id, version: 1, value: job(id) }], enqueue })
    }
    const { leases } = await two.claim('turns', { lanes: ['a'], limit: 10, leaseMs: HOUR, brings: 'job' })
    expect(leases).toHaveLength(6)
    const brought = leases.flatMap((lease) => (lease.job === undefined ? [] : [lease.job]))
    expect(brought).toEqual(['j1', 'j2'].map((id) => ({ version: 1, value: job(id) })))
  }, shards)
})
