import { expect } from 'vitest'
import type { Storage } from '@impresario/core'
import { claimedIds, idsOf, item, putJob, SECOND } from './fixtures.ts'
import type { Check, CheckDurable } from './storage-under-test.ts'

/** Whether a record exists, checked with every kind of query. */
async function seen(storage: Storage, id: string): Promise<readonly unknown[]> {
  const read = await storage.read('job', id)
  const listed = idsOf(await storage.list('job', { limit: 100 })).includes(id)
  const owned = idsOf(await storage.list('job', { limit: 100, owner: 'client', status: 'running' })).includes(id)
  return [read?.version, listed, owned]
}
const GONE = [undefined, false, false]

export function checkRecordExpiry(check: Check): void {
  check('[G-01] a record is there until its time is over, and not after it', async ({ storage, advance }) => {
    await storage.commit({ put: [putJob('j1', 1, { expiresMs: 5 * SECOND }), putJob('j2', 1)] })
    await advance(4 * SECOND)
    expect(await seen(storage, 'j1')).toEqual([1, true, true])
    await advance(SECOND)
    expect(await seen(storage, 'j1')).toEqual(GONE)
    expect(await seen(storage, 'j2')).toEqual([1, true, true])
    expect(await storage.counts('job', {})).toEqual({ running: 1 })
  })

  check('[G-01] a record that was durable expires as well', async ({ storage, advance }) => {
    const ids = Array.from({ length: 12 }, (_, index) => `j${index}`)
    await storage.commit({ put: ids.map((id) => putJob(id, 1, { expiresMs: 5 * SECOND })) })
    await storage.sync()
    await advance(5 * SECOND)
    for (const id of ids) expect(await seen(storage, id)).toEqual(GONE)
    await storage.sync()
    for (const id of ids) expect(await seen(storage, id)).toEqual(GONE)
  })

  check('[G-01] the id of an expired record is free again', async ({ storage, advance }) => {
    for (const isSynced of [false, true]) {
      const id = `j${isSynced}`
      await storage.commit({ put: [putJob(id, 1, { expiresMs: 2 * SECOND })] })
      await storage.commit({ put: [putJob(id, 2, { expiresMs: 2 * SECOND })] })
      if (isSynced) await storage.sync()
      expect(await storage.commit({ put: [putJob(id, 1)] })).toBe('conflict')
      await advance(2 * SECOND)
      expect(await storage.commit({ put: [putJob(id, 3)] })).toBe('conflict')
      expect(await storage.commit({ put: [putJob(id, 1, { owner: 'bob' })] })).toBe('committed')
      await storage.sync()
      await advance(60 * SECOND)
      expect((await storage.read('job', id))?.version).toBe(1)
      expect(await storage.commit({ put: [putJob(id, 2, { owner: 'bob' })] })).toBe('committed')
      await storage.sync()
      expect(idsOf(await storage.list('job', { limit: 9, owner: 'bob' }))).toContain(id)
    }
  })

  check('[G-01] each put sets the expiry anew', async ({ storage, advance }) => {
    const expiring = { expiresMs: 5 * SECOND }
    await storage.commit({ put: ['longer', 'for ever', 'later'].map((id) => putJob(id, 1, expiring)) })
    await storage.commit({ put: [putJob('shorter', 1, { expiresMs: 60 * SECOND }), putJob('ends', 1)] })
    await storage.sync()
    await advance(3 * SECOND)
    await storage.commit({
      put: [
        putJob('longer', 2, expiring),
        putJob('for ever', 2),
        putJob('shorter', 2, { expiresMs: SECOND }),
        putJob('ends', 2, { expiresMs: SECOND }),
      ],
    })
    await advance(2 * SECOND)
    expect(idsOf(await storage.list('job', { limit: 9 }))).toEqual(['longer', 'for ever'])
    await storage.sync()
    await advance(3 * SECOND)
    expect(idsOf(await storage.list('job', { limit: 9 }))).toEqual(['for ever'])
    expect(await storage.counts('job', {})).toEqual({ running: 1 })
    expect(await storage.commit({ put: [putJob('longer', 1), putJob('shorter', 1), putJob('ends', 1)] })).toBe(
      'committed',
    )
  })

  check('[G-01] a page is full although records before it have expired', async ({ storage, advance }) => {
    const ids = Array.from({ length: 9 }, (_, index) => `j${index}`)
    const put = ids.map((id, index) => putJob(id, 1, index % 2 === 0 ? {} : { expiresMs: SECOND }))
    await storage.commit({ put })
    await storage.sync()
    await advance(SECOND)
    expect(idsOf(await storage.list('job', { limit: 3 }))).toEqual(['j8', 'j6', 'j4'])
    expect(idsOf(await storage.list('job', { limit: 3, before: 'j4', status: 'running' }))).toEqual(['j2', 'j0'])
  })

  check('[G-01] a record that lives for no time at all is gone at once', async ({ storage }) => {
    expect(await storage.commit({ put: [putJob('j1', 1, { expiresMs: 0 })] })).toBe('committed')
    expect(await seen(storage, 'j1')).toEqual(GONE)
    expect(await storage.counts('job', {})).toEqual({})
  })

  check('[G-01] two thousand records that expire at once are all gone', async ({ storage, advance }) => {
    const put = Array.from({ length: 2_000 }, (_, index) => putJob(`j${index}`, 1, { expiresMs: 2 * SECOND }))
    await storage.commit({ put: [...put, putJob('kept', 1)] })
    await storage.sync()
    await advance(2 * SECOND)
    expect(idsOf(await storage.list('job', { limit: 10 }))).toEqual(['kept'])
    expect(await storage.counts('job', {})).toEqual({ running: 1 })
    for (let round = 0; round < 6; round++) await storage.sync()
    expect(await storage.commit({ put: put.slice(0, 50) })).toBe('committed')
    expect(await storage.counts('job', {})).toEqual({ running: 51 })
  })
}

export function checkDrops(check: Check): void {
  check('[G-01] a dropped record is gone, and its id is free again', async ({ storage }) => {
    for (const isSynced of [false, true]) {
      await storage.commit({ put: [putJob('j1', 1), putJob('j2', 1)] })
      await storage.commit({ put: [putJob('j1', 2)] })
      if (isSynced) await storage.sync()
      expect(await storage.commit({ drop: [{ kind: 'job', id: 'j1' }] })).toBe('committed')
      expect(await seen(storage, 'j1')).toEqual(GONE)
      if (isSynced) await storage.sync()
      expect(await seen(storage, 'j1')).toEqual(GONE)
      expect(await storage.counts('job', {})).toEqual({ running: 1 })
      expect(await storage.commit({ put: [putJob('j1', 3)] })).toBe('conflict')
      expect(await storage.commit({ put: [putJob('j1', 1)] })).toBe('committed')
      const drop = ['j1', 'j2'].map((id) => ({ kind: 'job', id }) as const)
      await storage.commit({ drop })
    }
  })

  check('[G-01] to drop what is not there does no harm', async ({ storage }) => {
    const drop = [
      { kind: 'job', id: 'nobody' },
      { kind: 'worker', id: 'j1' },
    ] as const
    expect(await storage.commit({ put: [putJob('j1', 1)], drop })).toBe('committed')
    expect(await seen(storage, 'j1')).toEqual([1, true, true])
  })

  check('[G-01] what a batch drops and puts under one id is there afterwards, as new', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1, { status: 'failed' })] })
    await storage.sync()
    const drop = [{ kind: 'job', id: 'j1' }] as const
    expect(await storage.commit({ drop, put: [putJob('j1', 2)] })).toBe('conflict')
    expect(await storage.read('job', 'j1')).toMatchObject({ value: { status: 'failed' }, version: 1 })
    expect(await storage.commit({ drop, put: [putJob('j1', 1)] })).toBe('committed')
    await storage.sync()
    expect(await storage.read('job', 'j1')).toMatchObject({ value: { status: 'running' }, version: 1 })
    expect(await storage.counts('job', {})).toEqual({ running: 1 })
  })

  check('[G-01] a batch that conflicts drops nothing', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1), putJob('j2', 1)] })
    const drop = [{ kind: 'job', id: 'j1' }] as const
    expect(await storage.commit({ drop, put: [putJob('j2', 1)], enqueue: [item('i1')] })).toBe('conflict')
    expect(await seen(storage, 'j1')).toEqual([1, true, true])
    expect(await claimedIds(storage)).toEqual([])
  })

  check('[G-01] a dropped record takes its expiry with it', async ({ storage, advance }) => {
    await storage.commit({ put: [putJob('j1', 1, { expiresMs: 2 * SECOND })] })
    await storage.sync()
    await storage.commit({ drop: [{ kind: 'job', id: 'j1' }] })
    await storage.commit({ put: [putJob('j1', 1)] })
    await storage.sync()
    await advance(2 * SECOND)
    expect(await seen(storage, 'j1')).toEqual([1, true, true])
    expect(await storage.counts('job', {})).toEqual({ running: 1 })
  })
}

export function checkDurableLives(check: CheckDurable): void {
  check('[G-01] an expiry goes on over a restart', async ({ storage, advance }, reopen) => {
    const put = ['j1', 'j2', 'j3'].map((id, index) => putJob(id, 1, { expiresMs: (3 + 3 * index) * SECOND }))
    await storage.commit({ put: [...put, putJob('j4', 1)] })
    await advance(2 * SECOND)
    await storage.sync()
    const again = await reopen()
    expect(idsOf(await again.list('job', { limit: 9 }))).toEqual(['j4', 'j3', 'j2', 'j1'])
    await advance(SECOND)
    expect(await again.counts('job', {})).toEqual({ running: 3 })
    expect(await seen(again, 'j1')).toEqual(GONE)
    await again.sync()
    const third = await reopen()
    expect(await third.counts('job', {})).toEqual({ running: 3 })
    await advance(3 * SECOND)
    expect(await third.counts('job', {})).toEqual({ running: 2 })
    expect(await third.commit({ put: [putJob('j1', 1), putJob('j2', 1)] })).toBe('committed')
    expect(await third.commit({ put: [putJob('j3', 1)] })).toBe('conflict')
  })

  check('[G-01] what expires while nobody is there is gone at the start', async ({ storage, advance }, reopen) => {
    await storage.commit({ put: [putJob('j1', 1, { expiresMs: 2 * SECOND }), putJob('j2', 1)] })
    await storage.close()
    await advance(60 * SECOND)
    const again = await reopen()
    expect(await again.commit({ put: [putJob('j1', 1, { expiresMs: 5 * SECOND })] })).toBe('committed')
    expect(await again.counts('job', {})).toEqual({ running: 2 })
    await again.sync()
    await advance(5 * SECOND)
    expect(await seen(again, 'j1')).toEqual(GONE)
    expect(await seen(again, 'j2')).toEqual([1, true, true])
  })

  check('[G-01] what was dropped stays so over a restart', async ({ storage }, reopen) => {
    await storage.commit({ put: [putJob('j1', 1), putJob('j2', 1), putJob('j3', 1)] })
    await storage.sync()
    await storage.commit({ drop: ['j1', 'j2'].map((id) => ({ kind: 'job', id }) as const) })
    await storage.commit({ put: [putJob('j2', 1, { status: 'failed' })] })
    await storage.sync()
    const again = await reopen()
    expect(await seen(again, 'j1')).toEqual(GONE)
    expect(await again.read('job', 'j2')).toMatchObject({ value: { status: 'failed' }, version: 1 })
    expect(await again.counts('job', {})).toEqual({ running: 1, failed: 1 })
  })
}
