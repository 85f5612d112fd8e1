import { randomUUID } from 'node:crypto'
import type { Item, Job, Lease, Put, Storage } from '@impresario/core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openPostgresStorage } from './open.ts'
import type { PostgresStorageOptions } from './open.ts'
import { missingPostgres, startPostgres } from './postgres-server.fixture.ts'
import type { PostgresServer } from './postgres-server.fixture.ts'

let server: PostgresServer
let count = 0

async function open(namespace: string, options: Partial<PostgresStorageOptions> = {}): Promise<Storage> {
  const storage = await openPostgresStorage({ url: server.url, namespace, poolMax: 4, ...options })
  onTestFinished(() => storage.close())
  return storage
}

function openAll(howMany: number, options: Partial<PostgresStorageOptions> = {}): Promise<readonly Storage[]> {
  const namespace = `many_${++count}`
  return Promise.all(Array.from({ length: howMany }, () => open(namespace, options)))
}

const item = (id: string, fields: Partial<Item> = {}): Item => ({
  queue: 'turns',
  id,
  lane: 'a',
  priority: 0,
  delayMs: 0,
  payload: null,
  ...fields,
})

const record = (id: string, version: number, fields: { status?: string; expiresMs?: number } = {}): Put => ({
  kind: 'key',
  id,
  version,
  value: { jobId: id, fingerprint: 'f', createdAt: version },
  facets: { owner: `owner ${id.length % 3}`, status: fields.status ?? 'new' },
  ...(fields.expiresMs === undefined ? {} : { expiresMs: fields.expiresMs }),
})

async function claimAll(storage: Storage, limit: number, got: Lease[]): Promise<void> {
  for (;;) {
    const { leases, nextInMs } = await storage.claim('turns', { limit, leaseMs: 60_000 })
    if (leases.length === 0 && nextInMs === undefined) return
    got.push(...leases)
    for (const lease of leases) expect(await storage.commit({ settle: lease })).toBe('committed')
  }
}

describe.skipIf(missingPostgres !== undefined)(`PostgreSQL with several instances ${missingPostgres ?? ''}`, () => {
  beforeAll(async () => {
    server = await startPostgres()
  }, 120_000)
  afterAll(() => server.stop())

  test('[G-03] no item is handed out twice, whoever claims, and none is left', async () => {
    const storages = await openAll(4)
    const items = Array.from({ length: 400 }, (_, index) => item(`i${index}`, { lane: `lane ${index % 5}` }))
    await storages[0]?.commit({ enqueue: items })
    const got: Lease[] = []
    await Promise.all(
      storages.flatMap((storage, index) => [claimAll(storage, 1 + index, got), claimAll(storage, 7, got)]),
    )
    expect(got.map(({ id }) => id).toSorted()).toEqual(items.map(({ id }) => id).toSorted())
    expect(new Set(got.map(({ token }) => token)).size).toBe(items.length)
    expect(got.every(({ deliveries }) => deliveries === 1)).toBe(true)
  })

  test('[G-03] claims of one moment are one transaction, and each gets its own', async () => {
    const namespace = `many_${++count}`
    const storage = await open(namespace)
    const own = Array.from({ length: 30 }, (_, index) => item(`own ${index}`, { lane: `lane ${index}` }))
    const common = Array.from({ length: 25 }, (_, index) => item(`common ${index}`, { lane: 'common' }))
    await storage.commit({ enqueue: [...own, ...common] })
    const options = { limit: 1, leaseMs: 60_000 }
    const [ofOwn, ofCommon] = await Promise.all([
      Promise.all(own.map(({ lane }) => storage.claim('turns', { ...options, lanes: [lane], holder: lane }))),
      Promise.all(Array.from({ length: 30 }, () => storage.claim('turns', { ...options, lanes: ['common'] }))),
    ])
    expect(ofOwn.map(({ leases }) => leases.map(({ id }) => id))).toEqual(own.map(({ id }) => [id]))
    const got = ofCommon.map(({ leases }) => leases.map(({ id }) => id))
    // The earliest requests get items, the best first; five requests get none.
    expect(got).toEqual([...common.map(({ id }) => [id]), [], [], [], [], []])
    const [row] = await server.query(`SELECT count(DISTINCT xmin::text)::integer AS n FROM ${namespace}.items`)
    expect(row).toEqual({ n: 1 })
  })

  test('[G-03] a claim brings the jobs of its items, unless they are large', async () => {
    const [one, two] = await openAll(2)
    // So that no compression makes it small.
    const large = Array.from({ length: 2_000 }, () => randomUUID()).join('')
    /** Boundary: the storage does not look into what it keeps. */
    const job = (id: string): Job => ({ id, data: id === 'large' ? large : '' }) as unknown as Job
    for (const id of ['j1', 'j2', 'large']) {
      const enqueue = ['a', 'b'].map((branch) => item(`${id}.1.${branch}`))
      await one?.commit({ put: [{ kind: 'job', id, version: 1, value: job(id) }], enqueue })
    }
    const unasked = { lanes: ['a'], limit: 1, leaseMs: 60_000 }
    const [plain, claimed] = await Promise.all([
      two?.claim('turns', unasked),
      two?.claim('turns', { ...unasked, limit: 10, brings: 'job' }),
    ])
    expect([plain?.leases.length, claimed?.leases.length]).toEqual([1, 5])
    expect(plain?.leases[0]?.job).toBeUndefined()
    const brought = claimed?.leases.flatMap((lease) => (lease.job === undefined ? [] : [lease.job]))
    expect(brought).toEqual(['j1', 'j2'].map((id) => ({ version: 1, value: job(id) })))
  })

  test('[G-03] a read sees what was committed before it was asked for, however many travel together', async () => {
    const [storage] = await openAll(1)
    const write = async (index: number): Promise<void> => {
      for (let version = 1; version <= 5; version++) {
        expect(await storage?.commit({ put: [record(`k${index}`, version)], enqueue: [item(`i${index}`)] })).toBe(
          'committed',
        )
        const [found, [view]] = await Promise.all([
          storage!.read('key', `k${index}`),
          storage!.peek('turns', [`i${index}`, 'nothing']),
        ])
        expect([found?.version, view?.id]).toEqual([version, `i${index}`])
      }
    }
    await Promise.all(Array.from({ length: 40 }, (_, index) => write(index)))
  })

  test('[G-03] batches that touch the same in opposite orders all get an outcome, and none counts half', async () => {
    const storages = await openAll(3)
    const ids = Array.from({ length: 6 }, (_, index) => `k${index}`)
    await storages[0]?.commit({ put: ids.map((id) => record(id, 1)), enqueue: ids.map((id) => item(id)) })
    let committed = 0
    const change = async (storage: Storage, round: number): Promise<void> => {
      const some = ids.filter((_, index) => (index * 7 + round) % 3 !== 0)
      const order = round % 2 === 0 ? some : some.toReversed()
      const versions = await Promise.all(order.map((id) => storage.read('key', id)))
      const put = order.map((id, index) => record(id, (versions[index]?.version ?? 0) + 1, { status: `s${round % 4}` }))
      const enqueue = order.toReversed().map((id) => item(id))
      if ((await storage.commit({ put, enqueue })) === 'committed') committed++
      await storage.renew((await storage.claim('turns', { limit: 3, leaseMs: 1_000 })).leases, 0)
    }
    for (let round = 0; round < 40; round++) {
      await Promise.all(storages.flatMap((storage, index) => [change(storage, round + index), change(storage, round)]))
    }
    expect(committed).toBeGreaterThanOrEqual(40)
    const [storage] = storages
    const listed = (await storage?.list('key', { limit: 100 })) ?? []
    const tally: Record<string, number> = {}
    const rows = await server.query(`SELECT status, count(*)::integer AS n FROM many_${count}.records GROUP BY 1`)
    for (const { status, n } of rows) tally[String(status)] = Number(n)
    expect(listed).toHaveLength(ids.length)
    expect(await storage?.counts('key', {})).toEqual(tally)
  })

  test('[G-03] of writers on several instances that create the same, one wins', async () => {
    const storages = await openAll(4)
    for (let round = 0; round < 25; round++) {
      // The other records make each batch large enough to overlap with the others.
      const batch = (writer: number): readonly Put[] => [
        ...Array.from({ length: 10 }, (_, index) => record(`w${writer} ${round} ${index}`, 1)),
        record(`k${round}`, 1, { status: `w${writer}` }),
      ]
      const outcomes = await Promise.all(
        storages.map(async (storage, writer) => storage.commit({ put: batch(writer) })),
      )
      expect(outcomes.filter((outcome) => outcome === 'committed')).toHaveLength(1)
    }
    const counts = (await storages[0]?.counts('key', {})) ?? {}
    expect(Object.values(counts).reduce((sum, n) => sum + n, 0)).toBe(25 * 11)
  })

  test('[F-05] what a dead process had in its own hands goes to the others, what its workers hold does not', async () => {
    const namespace = `many_${++count}`
    const dying = await open(namespace)
    const other = await open(namespace)
    await dying.commit({ enqueue: [item('own'), item('held', { lane: 'b' })] })
    const [own] = (await dying.claim('turns', { lanes: ['a'], limit: 1, leaseMs: 3_600_000 })).leases
    const [held] = (await dying.claim('turns', { lanes: ['b'], limit: 1, leaseMs: 3_600_000, holder: 'w' })).leases
    expect((await other.claim('turns', { limit: 5, leaseMs: 1_000 })).leases).toEqual([])
    // Twenty seconds without a heartbeat, and the next check by any process.
    await server.query(`UPDATE ${namespace}.sessions SET alive_until = now() - interval '1 second'
      WHERE id = (SELECT session FROM ${namespace}.items WHERE id = 'own')`)
    await server.query(`SELECT * FROM ${namespace}.heartbeat(nextval('${namespace}.session_ids'), NULL, 1000)`)
    expect((await other.claim('turns', { limit: 5, leaseMs: 1_000 })).leases).toMatchObject([
      { id: 'own', deliveries: 2 },
    ])
    expect(await dying.commit({ settle: own! })).toBe('conflict')
    expect(await dying.commit({ settle: held! })).toBe('committed')
  })

  test('[I-07] a process that closes hands back what it had in its own hands', async () => {
    const namespace = `many_${++count}`
    const closing = await openPostgresStorage({ url: server.url, namespace })
    const other = await open(namespace)
    await closing.commit({ enqueue: [item('i1')] })
    await closing.claim('turns', { limit: 1, leaseMs: 3_600_000 })
    const heard = new Promise<string>((resolve) => other.watch('turns', resolve))
    await closing.close()
    expect(await heard).toBe('a')
    expect((await other.claim('turns', { limit: 5, leaseMs: 1_000 })).leases).toHaveLength(1)
    await expect(closing.commit({})).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
  })

  test('[G-03] other instances hear of new work at once, also after the listening connection broke', async () => {
    // The poll is so rare that it cannot be what wakes the listener.
    const [one, two] = await openAll(2, { pollMs: 3_600_000 })
    const next = (): Promise<string> => new Promise((resolve) => one!.watch('tasks', resolve))
    const first = next()
    await two!.commit({ enqueue: [item('i1', { queue: 'tasks', lane: 'any:{"type":"x"}' })] })
    expect(await first).toBe('any:{"type":"x"}')
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%many_${count}%'`,
    )
    // Everything that was missed meanwhile is found when the connection is back.
    const second = next()
    await two!.commit({ enqueue: [item('i2', { queue: 'tasks', lane: 'b' })] })
    expect(['b', 'any:{"type":"x"}']).toContain(await second)
  })

  test('[G-03] without notifications the poll finds new work', async () => {
    const [one, two] = await openAll(2, { listen: false, pollMs: 20 })
    const heard = new Promise<string>((resolve) => one!.watch('mail', resolve))
    await two!.commit({ enqueue: [item('i1', { queue: 'mail', lane: 'x' })] })
    expect(await heard).toBe('x')
  })

  test('[G-03] lanes that do not fit into a notification are found by a look', async () => {
    const [one, two] = await openAll(2, { pollMs: 3_600_000 })
    const lanes = Array.from({ length: 400 }, (_, index) => `${index} ${'x'.repeat(200)}`)
    const heard = new Set<string>()
    const all = new Promise<void>((resolve) =>
      one!.watch('turns', (lane) => {
        if (heard.add(lane).size === lanes.length) resolve()
      }),
    )
    await two!.commit({ enqueue: lanes.map((lane) => item(lane, { lane })) })
    await all
    expect(heard).toEqual(new Set(lanes))
  })

  test('[G-05] expired records are taken away, and the counts stay right', async () => {
    const namespace = `many_${++count}`
    const storage = await open(namespace)
    const put = Array.from({ length: 30 }, (_, index) => record(`k${index}`, 1, { expiresMs: index < 20 ? 0 : 60_000 }))
    await storage.commit({ put })
    expect(await storage.counts('key', {})).toEqual({ new: 10 })
    const [row] = await server.query(`SELECT ${namespace}.purge(1000) AS n`)
    const [left] = await server.query(`SELECT count(*)::integer AS n FROM ${namespace}.records`)
    // The storage's own heartbeat may have been faster.
    expect(Number(row?.['n'])).toBeLessThanOrEqual(20)
    expect(left).toEqual({ n: 10 })
    expect(await storage.counts('key', {})).toEqual({ new: 10 })
  })
})
