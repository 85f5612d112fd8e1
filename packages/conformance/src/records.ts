import { expect } from 'vitest'
import type { WorkerRecord } from '@impresario/core'
import { claimedIds, claimOne, idsOf, item, job, putJob } from './fixtures.ts'
import type { Check } from './storage-under-test.ts'

const WORKER: WorkerRecord = {
  id: 'one',
  type: 'gpu',
  status: 'idle',
  skills: ['print'],
  hotSkills: [],
  hotModels: [],
  concurrencyMax: 2,
  cpuCores: 4,
  ramGb: 8,
  gpus: [{ model: 'x', vramGb: 24 }],
  models: [],
  software: {},
  properties: {},
  costPerSecond: 0.5,
  costPerSkill: {},
  reputation: 1,
  registeredAt: 1,
  seenAt: 1,
}

export function checkRecords(check: Check): void {
  check('[G-01] what was never written is not there', async ({ storage }) => {
    expect(await storage.read('job', 'nobody')).toBeUndefined()
    expect(await storage.list('job', { limit: 10 })).toEqual([])
  })

  check('[G-01] a record reads back as it was written, with its version', async ({ storage }) => {
    expect(await storage.commit({ put: [putJob('j1', 1)] })).toBe('committed')
    expect(await storage.read('job', 'j1')).toEqual({ value: { ...job('j1'), visit: 1 }, version: 1 })
  })

  check('[G-01] a record is replaced by its next version', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1)] })
    expect(await storage.commit({ put: [putJob('j1', 2, { status: 'finished' })] })).toBe('committed')
    expect(await storage.read('job', 'j1')).toMatchObject({ value: { status: 'finished', visit: 2 }, version: 2 })
  })

  check('[G-01] version one is refused for a record that exists', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1)] })
    expect(await storage.commit({ put: [putJob('j1', 1, { status: 'failed' })] })).toBe('conflict')
    expect(await storage.read('job', 'j1')).toMatchObject({ value: { status: 'running' }, version: 1 })
  })

  check('[G-01] a version that skips one is refused', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1)] })
    expect(await storage.commit({ put: [putJob('j1', 3)] })).toBe('conflict')
    expect(await storage.commit({ put: [putJob('j2', 2)] })).toBe('conflict')
    expect(await storage.read('job', 'j2')).toBeUndefined()
  })

  check('[G-01] a smaller id than those that exist can be created later', async ({ storage }) => {
    await storage.commit({ put: [putJob('j5', 1)] })
    await storage.sync()
    expect(await storage.commit({ put: [putJob('j2', 1)] })).toBe('committed')
    expect(await storage.commit({ put: [putJob('j2', 1)] })).toBe('conflict')
    expect(await storage.commit({ put: [putJob('ü', 1)] })).toBe('committed')
    expect(await storage.commit({ put: [putJob('ü', 1)] })).toBe('conflict')
  })

  check('[G-01] records of different kinds with one id are different records', async ({ storage }) => {
    await storage.commit({
      put: [
        putJob('one', 1),
        { kind: 'worker', id: 'one', version: 1, value: WORKER },
        { kind: 'key', id: 'one', version: 1, value: { jobId: 'one', fingerprint: 'f', createdAt: 1 } },
      ],
    })
    expect((await storage.read('worker', 'one'))?.value).toEqual(WORKER)
    expect((await storage.read('key', 'one'))?.value).toEqual({ jobId: 'one', fingerprint: 'f', createdAt: 1 })
    expect((await storage.read('job', 'one'))?.value.id).toBe('one')
  })

  check('[G-01] of twenty writers of one version one wins', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1)] })
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, async () => storage.commit({ put: [putJob('j1', 2)] })),
    )
    expect(outcomes.filter((outcome) => outcome === 'committed')).toHaveLength(1)
  })
}

export function checkAtomicity(check: Check): void {
  check('[G-01] one stale version keeps the whole batch from happening', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1)], enqueue: [item('kept')] })
    const outcome = await storage.commit({
      put: [putJob('j2', 1), putJob('j1', 1, { status: 'failed' })],
      enqueue: [item('new')],
      remove: [{ queue: 'turns', id: 'kept' }],
    })
    expect(outcome).toBe('conflict')
    expect(await storage.read('job', 'j2')).toBeUndefined()
    expect(await claimedIds(storage)).toEqual(['kept'])
  })

  check('[G-01] a lost claim keeps the whole batch from happening', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const lease = await claimOne(storage)
    await storage.commit({ enqueue: [item('i1')] })
    expect(await storage.commit({ settle: lease, put: [putJob('j1', 1)], enqueue: [item('i2')] })).toBe('conflict')
    expect(await storage.read('job', 'j1')).toBeUndefined()
    expect(await claimedIds(storage)).toEqual(['i1'])
  })

  check('[G-01] a stale version keeps the claim unsettled', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1)], enqueue: [item('i1')] })
    const lease = await claimOne(storage)
    expect(await storage.commit({ settle: lease, put: [putJob('j1', 1)] })).toBe('conflict')
    expect(await storage.commit({ settle: lease, put: [putJob('j1', 2)] })).toBe('committed')
    expect(await storage.peek('turns', ['i1'])).toEqual([undefined])
  })

  check('[G-01] an empty batch is committed', async ({ storage }) => {
    expect(await storage.commit({})).toBe('committed')
    await storage.sync()
  })

  check('[G-01] what a batch removes and enqueues under one name is there afterwards', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1', { payload: 'old' })] })
    await storage.commit({ remove: [{ queue: 'turns', id: 'i1' }], enqueue: [item('i1', { payload: 'new' })] })
    expect((await claimOne(storage)).payload).toBe('new')
  })

  check('[G-01] what a batch settles and enqueues under one name is there afterwards', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1', { payload: 'old' })] })
    const lease = await claimOne(storage)
    await storage.commit({ settle: lease, enqueue: [item('i1', { payload: 'new' })] })
    expect(await claimOne(storage)).toMatchObject({ payload: 'new', deliveries: 1 })
  })
}

export function checkLists(check: Check): void {
  check('[G-01] a list begins with the greatest id and stops at its limit', async ({ storage }) => {
    await storage.commit({ put: [putJob('j2', 1), putJob('j1', 1), putJob('j3', 1)] })
    expect(idsOf(await storage.list('job', { limit: 10 }))).toEqual(['j3', 'j2', 'j1'])
    expect(idsOf(await storage.list('job', { limit: 2 }))).toEqual(['j3', 'j2'])
  })

  check('[G-01] pages show every record once', async ({ storage }) => {
    const ids = Array.from({ length: 25 }, (_, index) => `j${String(index).padStart(3, '0')}`)
    for (const [index, id] of ids.entries()) {
      await storage.commit({ put: [putJob(id, 1)] })
      if (index === 12) await storage.sync()
    }
    const seen: string[] = []
    for (;;) {
      const before = seen.at(-1)
      const page = await storage.list('job', { limit: 4, ...(before === undefined ? {} : { before }) })
      if (page.length === 0) break
      seen.push(...idsOf(page))
    }
    expect(seen).toEqual(ids.toReversed())
  })

  check('[H-05] a list shows the records of one owner', async ({ storage }) => {
    await storage.commit({
      put: [putJob('j1', 1, { owner: 'ann' }), putJob('j2', 1, { owner: 'bob' }), putJob('j3', 1, { owner: 'ann' })],
    })
    expect(idsOf(await storage.list('job', { limit: 10, owner: 'ann' }))).toEqual(['j3', 'j1'])
    expect(await storage.list('job', { limit: 10, owner: 'eve' })).toEqual([])
  })

  check('[G-01] a list shows the records with one of the statuses', async ({ storage }) => {
    await storage.commit({
      put: [
        putJob('j1', 1, { status: 'failed' }),
        putJob('j2', 1, { status: 'finished' }),
        putJob('j3', 1, { status: 'running' }),
        putJob('j4', 1, { status: 'failed' }),
      ],
    })
    const listed = async (query: object): Promise<readonly string[]> =>
      idsOf(await storage.list('job', { limit: 10, ...query }))
    expect(await listed({ status: 'failed' })).toEqual(['j4', 'j1'])
    expect(await listed({ status: 'finished' })).toEqual(['j2'])
    expect(await listed({ statuses: ['running', 'failed'] })).toEqual(['j4', 'j3', 'j1'])
    expect(await listed({ statuses: ['finished', 'failed'], before: 'j4' })).toEqual(['j2', 'j1'])
  })

  check('[G-01] a list shows the records of one name', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1, { name: 'press' }), putJob('j2', 1, { name: 'bind' })] })
    expect(idsOf(await storage.list('job', { limit: 10, name: 'bind' }))).toEqual(['j2'])
  })

  check('[G-01] a record has to meet everything that a list asks for', async ({ storage }) => {
    await storage.commit({
      put: [
        putJob('j1', 1, { owner: 'ann', status: 'failed', name: 'press' }),
        putJob('j2', 1, { owner: 'bob', status: 'failed', name: 'press' }),
        putJob('j3', 1, { owner: 'ann', status: 'running', name: 'press' }),
        putJob('j4', 1, { owner: 'ann', status: 'failed', name: 'bind' }),
        putJob('j5', 1, { owner: 'ann', status: 'failed', name: 'press' }),
      ],
    })
    await storage.sync()
    const query = { owner: 'ann', statuses: ['failed', 'error'], name: 'press', before: 'j5', limit: 10 }
    expect(idsOf(await storage.list('job', query))).toEqual(['j1'])
  })

  check('[G-01] a list shows the latest version, before and after it is durable', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1), putJob('j2', 1)] })
    await storage.sync()
    await storage.commit({ put: [putJob('j1', 2, { status: 'finished' })] })
    const listed = async (): Promise<unknown> => [
      idsOf(await storage.list('job', { limit: 10, status: 'running' })),
      (await storage.list('job', { limit: 10, status: 'finished' })).map(({ id, version }) => [id, version]),
    ]
    const expected = [['j2'], [['j1', 2]]]
    expect(await listed()).toEqual(expected)
    await storage.sync()
    expect(await listed()).toEqual(expected)
  })

  check('[G-01] a page is full although records of it have changed', async ({ storage }) => {
    const ids = Array.from({ length: 9 }, (_, index) => `j${index}`)
    await storage.commit({ put: ids.map((id) => putJob(id, 1)) })
    await storage.sync()
    await storage.commit({ put: ['j8', 'j7', 'j5'].map((id) => putJob(id, 2, { status: 'failed' })) })
    expect(idsOf(await storage.list('job', { limit: 3, status: 'running' }))).toEqual(['j6', 'j4', 'j3'])
    expect(idsOf(await storage.list('job', { limit: 3 }))).toEqual(['j8', 'j7', 'j6'])
  })

  check('[G-01] a record that changes its owner and name is listed under the new ones', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1, { owner: 'ann', name: 'press' })] })
    await storage.sync()
    await storage.commit({ put: [putJob('j1', 2, { owner: 'bob', name: 'bind' })] })
    await storage.sync()
    expect(await storage.list('job', { limit: 10, owner: 'ann' })).toEqual([])
    expect(idsOf(await storage.list('job', { limit: 10, owner: 'bob', name: 'bind' }))).toEqual(['j1'])
  })

  check('[G-01] a list shows one kind', async ({ storage }) => {
    await storage.commit({ put: [putJob('j1', 1), { kind: 'worker', id: 'one', version: 1, value: WORKER }] })
    expect(idsOf(await storage.list('worker', { limit: 10 }))).toEqual(['one'])
  })
}
