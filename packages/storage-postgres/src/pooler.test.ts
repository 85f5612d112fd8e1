import type { Lease } from '@impresario/core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { missingPooler, startPooler } from '../../../test/servers/pooler-server.ts'
import { openPostgresStorage } from './open.ts'
import { missingPostgres, startPostgres } from './postgres-server.fixture.ts'

const missing = missingPostgres ?? missingPooler

const task = (id: string, lane: string) =>
  ({ queue: 'tasks', id, lane, priority: 0, delayMs: 0, payload: null }) as const

describe.skipIf(missing !== undefined)(`PostgreSQL behind a pooler ${missing ?? ''}`, () => {
  test('[G-03] everything works through a pooler by transaction', { timeout: 120_000 }, async () => {
    const server = await startPostgres()
    onTestFinished(() => server.stop())
    const pooler = await startPooler(server)
    onTestFinished(() => pooler.stop())
    const { url } = pooler
    const direct = encodeURIComponent(server.url)
    const one = await openPostgresStorage({ url: `${url}?schema=pooled&listen=${direct}`, pollMs: 3_600_000 })
    const two = await openPostgresStorage({ url: `${url}?schema=pooled&listen=off`, pollMs: 20 })
    onTestFinished(async () => {
      await Promise.all([one.close(), two.close()])
    })
    const heard = [one, two].map((storage) => new Promise<string>((resolve) => storage.watch('tasks', resolve)))
    const items = Array.from({ length: 200 }, (_, index) => task(`i${index}`, `lane ${index % 3}`))
    await Promise.all(items.map((item) => two.commit({ enqueue: [item] })))
    for (const lane of await Promise.all(heard)) expect(lane).toMatch(/^lane \d$/)
    const got: Lease[] = []
    const work = async (storage: typeof one): Promise<void> => {
      for (;;) {
        const { leases, nextInMs } = await storage.claim('tasks', { limit: 5, leaseMs: 60_000 })
        if (leases.length === 0 && nextInMs === undefined) return
        got.push(...leases)
        expect(await storage.renew(leases, 60_000)).toEqual(leases.map(() => true))
        const outcomes = await Promise.all(leases.map((lease) => storage.commit({ settle: lease })))
        expect(outcomes).toEqual(leases.map(() => 'committed'))
      }
    }
    await Promise.all([one, two, one, two].map((storage) => work(storage)))
    expect(got.map(({ id }) => id).toSorted()).toEqual(items.map(({ id }) => id).toSorted())
  })
})
