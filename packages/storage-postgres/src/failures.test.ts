import type { Put, Storage } from '@impresario/core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openPostgresStorage } from './open.ts'
import type { PostgresStorageOptions } from './open.ts'
import { missingPostgres, startPostgres } from './postgres-server.fixture.ts'
import type { PostgresServer } from './postgres-server.fixture.ts'

let server: PostgresServer
let count = 0

async function open(options: Partial<PostgresStorageOptions> = {}): Promise<Storage> {
  const storage = await openPostgresStorage({ url: server.url, namespace: `failing_${++count}`, ...options })
  onTestFinished(() => storage.close())
  return storage
}

const record = (id: string): Put => ({
  kind: 'key',
  id,
  version: 1,
  value: { jobId: id, fingerprint: 'f', createdAt: 1 },
})
const turn = (id: string) => ({ queue: 'turns', id, lane: 'a', priority: 0, delayMs: 0, payload: id }) as const

describe.skipIf(missingPostgres !== undefined)(`PostgreSQL that fails ${missingPostgres ?? ''}`, () => {
  beforeAll(async () => {
    server = await startPostgres([])
  }, 120_000)
  afterAll(() => server.stop())

  test(
    '[G-03] what was committed is there after the server was killed and started again',
    { timeout: 60_000 },
    async () => {
      const storage = await open({ strict: true })
      const acknowledged: string[] = []
      const refusals: unknown[] = []
      const over = new AbortController()
      const write = async (writer: number): Promise<void> => {
        for (let index = 0; !over.signal.aborted; index++) {
          const id = `k${writer} ${index}`
          try {
            await storage.commit({ put: [record(id)], enqueue: [turn(id)] })
            acknowledged.push(id)
          } catch (error) {
            refusals.push(error)
          }
        }
      }
      const writers = Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)))
      const atLeast = async (more: number): Promise<void> => {
        const goal = acknowledged.length + more
        while (acknowledged.length < goal) await new Promise((resolve) => setTimeout(resolve, 1))
      }
      await atLeast(200)
      await server.kill()
      await server.start()
      // It recovers by itself, with the same storage.
      await atLeast(100)
      over.abort()
      await writers
      for (const error of refusals) expect(error).toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
      const there = await server.query(
        `SELECT r.id FROM failing_${count}.records r JOIN failing_${count}.items i USING (id)`,
      )
      const ids = new Set(there.map(({ id }) => String(id)))
      expect(acknowledged.filter((id) => !ids.has(id))).toEqual([])
    },
  )

  test(
    '[G-03] calls are refused in time while the server is away, and work when it is back',
    { timeout: 60_000 },
    async () => {
      const storage = await open({ callMs: 500 })
      await storage.commit({ put: [record('k1')], enqueue: [turn('i1')] })
      await server.kill()
      const calls: readonly (() => Promise<unknown>)[] = [
        () => storage.read('key', 'k1'),
        () => storage.list('key', { limit: 1 }),
        () => storage.counts('key', {}),
        () => storage.peek('turns', ['i1']),
        () => storage.lanes('turns'),
        () => storage.claim('turns', { limit: 1, leaseMs: 1_000 }),
        () => storage.claimExpired('turns', { limit: 1, leaseMs: 1_000 }),
        () => storage.renew([{ queue: 'turns', id: 'i1', token: 1 }], 1_000),
        async () => storage.commit({ put: [record('k2')] }),
      ]
      for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
      await server.start()
      expect(await storage.read('key', 'k1')).toMatchObject({ version: 1 })
      expect((await storage.claim('turns', { limit: 1, leaseMs: 1_000 })).leases).toMatchObject([{ id: 'i1' }])
    },
  )

  test.each([
    [{ namespace: 'Shop' }, 'cannot name a schema'],
    [{ namespace: 'pg_shop' }, 'cannot name a schema'],
    [{ url: 'postgres://nobody@127.0.0.1:PORT/postgres' }, 'refuses the user'],
    [{ url: 'postgres://impresario@127.0.0.1:PORT/nowhere' }, 'does not exist'],
  ])('[G-03] settings that cannot work are refused with what to do: %j', async (options, message) => {
    const url = (options as { url?: string }).url?.replace('PORT', String(server.port)) ?? server.url
    const opening = openPostgresStorage({ ...options, url })
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' })
    await expect(opening).rejects.toThrow(message)
  })

  test('[G-03] a server that is not there is waited for, but not for ever', async () => {
    const opening = openPostgresStorage({ url: 'postgres://impresario@127.0.0.1:1/x', startMs: 10 })
    await expect(opening).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
  })

  test('[G-03] what the server promises is told, and strict mode refuses less', { timeout: 60_000 }, async () => {
    const weak = await startPostgres(['fsync=off', 'synchronous_commit=off'])
    onTestFinished(() => weak.stop())
    const told: string[] = []
    const note = (message: string): void => {
      told.push(message)
    }
    const log = { debug: note, info: note, warn: note, error: note }
    await expect(openPostgresStorage({ url: weak.url, strict: true })).rejects.toThrow('fsync = off')
    await (await openPostgresStorage({ url: weak.url, log })).close()
    await (await openPostgresStorage({ url: server.url, namespace: 'strong', log, strict: true })).close()
    expect(told.join('\n')).toMatch(/synchronous_commit = off.*may lose[\s\S]*keeps what it has acknowledged/)
    await weak.query("ALTER ROLE impresario SET default_transaction_isolation = 'serializable'")
    await expect(openPostgresStorage({ url: weak.url })).rejects.toThrow('read committed')
  })

  test('[G-03] texts that PostgreSQL cannot hold are kept in values and refused in names', async () => {
    const storage = await open()
    const value = { jobId: 'a\0b\uD800', fingerprint: 'f', createdAt: 1 }
    const put = { kind: 'key', id: 'k\uD800', version: 1, value, facets: { text: 'A\0B', status: 'x' } } as const
    expect(await storage.commit({ put: [put], enqueue: [{ ...turn('i1'), payload: 'p\0' }] })).toBe('committed')
    expect(await storage.read('key', 'k\uFFFD')).toEqual({ value, version: 1 })
    expect(await storage.list('key', { limit: 9, search: 'a\0' })).toHaveLength(1)
    expect(await storage.peek('turns', ['i1'])).toMatchObject([{ payload: 'p\0' }])
    for (const batch of [{ put: [{ ...put, id: 'k\0' }] }, { enqueue: [{ ...turn('i2'), lane: '\0' }] }]) {
      await expect(storage.commit(batch)).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    }
    // A query for such a name finds nothing, and does not affect queries that are made at the same time.
    const found = await Promise.all([storage.read('key', 'k\0'), storage.read('key', 'k\uFFFD')])
    expect(found).toEqual([undefined, { value, version: 1 }])
    expect(await storage.peek('turns', ['\0', 'i1', 'none\0'])).toMatchObject([undefined, { id: 'i1' }, undefined])
    for (const query of [
      { owner: '\0' },
      { name: '\0' },
      { status: '\0' },
      { statuses: ['\0'] },
      { from: 'k\uFFFD\0' },
    ]) {
      expect(await storage.list('key', { limit: 9, ...query })).toEqual([])
    }
    expect(
      await storage.list('key', { limit: 9, statuses: ['\0', 'x'], before: 'k\uFFFD\0', from: 'k\0' }),
    ).toHaveLength(1)
    expect(await storage.counts('key', { owner: '\0' })).toEqual({})
    expect(await storage.claim('turns', { lanes: ['\0'], limit: 1, leaseMs: 1 })).toMatchObject({ leases: [] })
    const { leases } = await storage.claim('turns', { lanes: ['\0', turn('i1').lane], limit: 1, leaseMs: 60_000 })
    const stranger = { queue: 'turns', id: '\0', token: 1 } as const
    expect(await storage.renew([stranger, ...leases], 60_000)).toEqual([false, true])
  })
})
