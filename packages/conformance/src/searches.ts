import { expect } from 'vitest'
import type { JobStatus, ListQuery, Storage } from '@impresario/core'
import { idsOf, putJob, SECOND } from './fixtures.ts'
import type { Check, CheckDurable } from './storage-under-test.ts'

const listed = async (storage: Storage, query: Partial<ListQuery>): Promise<readonly string[]> =>
  idsOf(await storage.list('job', { limit: 10, ...query }))

/** Checks the expectations on data that is only in memory and on data that is durable. */
async function beforeAndAfterSync(storage: Storage, run: () => Promise<void>): Promise<void> {
  await run()
  await storage.sync()
  await run()
}

export function checkSearches(check: Check): void {
  check('[H-01] a list begins at an id', async ({ storage }) => {
    await storage.commit({ put: ['j1', 'j2', 'j3', 'j4'].map((id) => putJob(id, 1)) })
    await beforeAndAfterSync(storage, async () => {
      expect(await listed(storage, { from: 'j3' })).toEqual(['j4', 'j3'])
      expect(await listed(storage, { from: 'j2', before: 'j4' })).toEqual(['j3', 'j2'])
      expect(await listed(storage, { from: 'j2', limit: 1 })).toEqual(['j4'])
      expect(await listed(storage, { from: 'j25', before: 'j26' })).toEqual([])
    })
  })

  check('[H-01] a search finds a part of the text, whatever the case of its letters', async ({ storage }) => {
    const texts = { j1: 'Order 66: ÉTUDE', j2: 'straße', j3: 'ΟΔΟΣ 7', j4: 'order 67%', j5: 'a_b' }
    await storage.commit({ put: Object.entries(texts).map(([id, text]) => putJob(id, 1, { text })) })
    await storage.commit({ put: [putJob('j6', 1)] })
    await beforeAndAfterSync(storage, async () => {
      expect(await listed(storage, { search: 'ORDER' })).toEqual(['j4', 'j1'])
      expect(await listed(storage, { search: 'étude' })).toEqual(['j1'])
      expect(await listed(storage, { search: 'e\u0301tude' })).toEqual(['j1'])
      expect(await listed(storage, { search: 'STRASSE' })).toEqual(['j2'])
      expect(await listed(storage, { search: 'οδος' })).toEqual(['j3'])
      expect(await listed(storage, { search: 'οδοσ 7' })).toEqual(['j3'])
      expect(await listed(storage, { search: 'nothing' })).toEqual([])
    })
  })

  check('[H-01] signs that are special elsewhere stand for themselves in a search', async ({ storage }) => {
    const texts = ['50% off', '50 off', 'a_b', 'axb', String.raw`a\b`, "it's", '[x]*']
    await storage.commit({ put: texts.map((text, index) => putJob(`j${index}`, 1, { text })) })
    await beforeAndAfterSync(storage, async () => {
      for (const [index, search] of ['0%', '50 o', '_', 'xb', '\\', "'", ']*'].entries()) {
        expect(await listed(storage, { search })).toEqual([`j${index}`])
      }
    })
  })

  check('[H-01] an empty search asks for nothing', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1, { text: 'x' }), putJob('j2', 1)] })
    await beforeAndAfterSync(storage, async () => expect(await listed(storage, { search: '' })).toEqual(['j2', 'j1']))
  })

  check('[H-01] a search keeps to everything else that the list asks for', async ({ storage }) => {
    await storage.commit({
      put: [
        putJob('j1', 1, { owner: 'ann', text: 'red shoes' }),
        putJob('j2', 1, { owner: 'bob', text: 'red hat' }),
        putJob('j3', 1, { owner: 'ann', text: 'Red hat', status: 'failed' }),
        putJob('j4', 1, { owner: 'ann', text: 'red coat' }),
      ],
    })
    await beforeAndAfterSync(storage, async () => {
      expect(await listed(storage, { search: 'red', owner: 'ann' })).toEqual(['j4', 'j3', 'j1'])
      expect(await listed(storage, { search: 'red', owner: 'ann', limit: 1, before: 'j4' })).toEqual(['j3'])
      expect(await listed(storage, { search: 'red', owner: 'ann', statuses: ['running'] })).toEqual(['j4', 'j1'])
    })
  })

  check('[H-01] a record that changes its text is found by the new one', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1, { text: 'old' }), putJob('j2', 1, { text: 'old' })] })
    await storage.sync()
    await storage.commit({ put: [putJob('j1', 2, { text: 'new' }), putJob('j2', 2)] })
    await beforeAndAfterSync(storage, async () => {
      expect(await listed(storage, { search: 'old' })).toEqual([])
      expect(await listed(storage, { search: 'new' })).toEqual(['j1'])
    })
  })
}

export function checkCounts(check: Check): void {
  check('[H-01] counts are those of each status, by owner and by name', async ({ storage }) => {
    expect(await storage.counts('job', {})).toEqual({})
    await storage.commit({
      put: [
        putJob('j1', 1, { owner: 'ann', status: 'failed', name: 'press' }),
        putJob('j2', 1, { owner: 'ann', status: 'failed', name: 'bind' }),
        putJob('j3', 1, { owner: 'ann', status: 'running', name: 'press' }),
        putJob('j4', 1, { owner: 'bob', status: 'failed', name: 'press' }),
        { kind: 'key', id: 'k1', version: 1, value: { jobId: 'j1', fingerprint: 'f', createdAt: 1 } },
      ],
    })
    await beforeAndAfterSync(storage, async () => {
      expect(await storage.counts('job', {})).toEqual({ failed: 3, running: 1 })
      expect(await storage.counts('job', { owner: 'ann' })).toEqual({ failed: 2, running: 1 })
      expect(await storage.counts('job', { name: 'press' })).toEqual({ failed: 2, running: 1 })
      expect(await storage.counts('job', { owner: 'ann', name: 'press' })).toEqual({ failed: 1, running: 1 })
      expect(await storage.counts('job', { owner: 'eve' })).toEqual({})
      expect(await storage.counts('worker', {})).toEqual({})
    })
  })

  check('[H-01] records without a status are not counted', async ({ storage }) => {
    const value = { jobId: 'j1', fingerprint: 'f', createdAt: 1 }
    await storage.commit({ put: [{ kind: 'key', id: 'k1', version: 1, value, facets: { owner: 'ann' } }] })
    expect(await storage.counts('key', {})).toEqual({})
    await storage.commit({ put: [{ kind: 'key', id: 'k1', version: 2, value, facets: { status: 'used' } }] })
    expect(await storage.counts('key', {})).toEqual({ used: 1 })
    await storage.commit({ put: [{ kind: 'key', id: 'k1', version: 3, value }] })
    expect(await storage.counts('key', {})).toEqual({})
  })

  check('[H-01] counts follow what becomes of records', async ({ storage, advance }) => {
    await storage.commit({ put: ['j1', 'j2', 'j3', 'j4', 'j5'].map((id) => putJob(id, 1)) })
    await storage.sync()
    await storage.commit({
      put: [
        putJob('j1', 2, { status: 'finished', expiresMs: 2 * SECOND }),
        putJob('j2', 2, { status: 'failed' }),
        putJob('j3', 2, { owner: 'ann' }),
      ],
    })
    await storage.commit({ drop: [{ kind: 'job', id: 'j4' }] })
    await storage.commit({ put: [putJob('j2', 2)] })
    expect(await storage.counts('job', {})).toEqual({ running: 2, finished: 1, failed: 1 })
    expect(await storage.counts('job', { owner: 'client' })).toEqual({ running: 1, finished: 1, failed: 1 })
    await advance(2 * SECOND)
    expect(await storage.counts('job', {})).toEqual({ running: 2, failed: 1 })
  })
}

export function checkDurableSearches(check: CheckDurable): void {
  check('[H-01] texts and counts are the same after restarts', async ({ storage, advance }, reopen) => {
    let current = storage
    const statuses: readonly JobStatus[] = ['running', 'failed', 'finished']
    const versions = new Map<string, number>()
    for (let round = 0; round < 4; round++) {
      for (let index = 0; index < 20; index++) {
        const id = `j${String((index * 7 + round) % 24).padStart(2, '0')}`
        const version = (await current.read('job', id))?.version ?? 0
        const status = statuses[(index + round) % 3] ?? 'running'
        const lives = index % 5 === 0 ? { expiresMs: 2 * SECOND } : {}
        const owner = index % 2 === 0 ? 'ann' : 'bob'
        await current.commit({ put: [putJob(id, version + 1, { owner, status, text: `Text ${id}`, ...lives })] })
        versions.set(id, version + 1)
        if (index === 11) await advance(SECOND)
      }
      await current.commit({ drop: [{ kind: 'job', id: `j0${round}` }] })
      const everything = async (): Promise<unknown> => [
        await current.counts('job', {}),
        await current.counts('job', { owner: 'ann' }),
        await listed(current, { limit: 100 }),
        await listed(current, { search: 'TEXT J0', limit: 100 }),
      ]
      const before = await everything()
      await current.sync()
      current = await reopen()
      expect(await everything()).toEqual(before)
      await advance(SECOND)
    }
    const all = await current.list('job', { limit: 100 })
    const total = Object.values(await current.counts('job', {})).reduce((sum, count) => sum + count, 0)
    expect(total).toBe(all.length)
    for (const { id, version } of all) expect(version).toBe(versions.get(id))
  })
}
