import { expect } from 'vitest'
import { AGEING_MS } from '@impresario/core'
import type { Queue } from '@impresario/core'
import { claim, claimedIds, claimOne, idsOf, item, only, putJob, SECOND } from './fixtures.ts'
import type { Check } from './storage-under-test.ts'

export function checkItems(check: Check): void {
  check('[C-01] a claim brings no job unasked, and no other than the stored one', async ({ storage, advance }) => {
    const names = ['j1.1.a', 'j1.1.b', 'j2.1.a', 'j3.1.a', 'none.1.a', 'j4']
    const put = [putJob('j1', 1), putJob('j2', 1), putJob('j3', 1, { expiresMs: SECOND }), putJob('j4', 1)]
    await storage.commit({ put, enqueue: names.map((name) => item(name)) })
    await storage.commit({ put: [putJob('j2', 2)] })
    await advance(SECOND)
    const unasked = await claim(storage)
    expect(unasked.filter(({ job }) => job !== undefined)).toEqual([])
    await storage.renew(unasked, 0)
    const leases = await claim(storage, { brings: 'job' })
    expect(idsOf(leases).toSorted()).toEqual(names.toSorted())
    const brought = leases.flatMap(({ id, job }) => (job === undefined ? [] : [{ id, job }]))
    for (const { id, job } of brought) expect(job).toEqual(await storage.read('job', id.split('.')[0] ?? ''))
    const jobs = brought.map(({ job }) => job.value.id)
    expect(new Set(jobs).size).toBe(jobs.length)
  })

  check('[G-01] a claim says what the item is', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1', { lane: 'x', priority: 3, payload: { deep: [1, 'ü', null] } })] })
    const lease = await claimOne(storage)
    expect(lease).toMatchObject({ queue: 'turns', id: 'i1', lane: 'x', priority: 3, deliveries: 1 })
    expect(lease.payload).toEqual({ deep: [1, 'ü', null] })
    expect(lease.token).toBeGreaterThan(0)
  })

  check('[G-01] an empty queue gives nothing and promises nothing', async ({ storage }) => {
    expect(await storage.claim('turns', { limit: 5, leaseMs: SECOND })).toEqual({ leases: [], nextInMs: undefined })
  })

  check('[D-04] a higher priority goes first', async ({ storage }) => {
    await storage.commit({ enqueue: [item('low'), item('high', { priority: 9 }), item('mid', { priority: 5 })] })
    expect(await claimedIds(storage)).toEqual(['high', 'mid', 'low'])
  })

  check('[G-01] equal priorities go in the order of their enqueueing', async ({ storage }) => {
    const ids = Array.from({ length: 50 }, (_, index) => `i${(index * 37) % 50}`)
    for (const id of ids) await storage.commit({ enqueue: [item(id)] })
    expect(await claimedIds(storage)).toEqual(ids)
  })

  check('[G-01] equal priorities go in the order in which they became due', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('later', { delayMs: 3 * SECOND }), item('sooner', { delayMs: SECOND })] })
    await advance(2 * SECOND)
    await storage.commit({ enqueue: [item('now')] })
    await advance(2 * SECOND)
    expect(await claimedIds(storage)).toEqual(['sooner', 'now', 'later'])
  })

  check('[G-01] a delayed item is claimable when its delay is over, and not before', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { delayMs: 5 * SECOND })] })
    expect(await claimedIds(storage)).toEqual([])
    await advance(4 * SECOND)
    expect(await claimedIds(storage)).toEqual([])
    await advance(SECOND)
    expect(await claimedIds(storage)).toEqual(['i1'])
  })

  check('[G-01] a claim says when the next item is due', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { delayMs: 5 * SECOND }), item('i2', { delayMs: 9 * SECOND })] })
    const { nextInMs } = await storage.claim('turns', { limit: 1, leaseMs: SECOND })
    expect(nextInMs).toBeGreaterThan(0)
    expect(nextInMs).toBeLessThanOrEqual(5 * SECOND)
    await advance(5 * SECOND)
    expect(await claimedIds(storage)).toEqual(['i1'])
  })

  check('[G-01] a claim stops at its limit and says that there is more', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1'), item('i2'), item('i3', { lane: 'b' })] })
    const first = await storage.claim('turns', { lanes: ['a'], limit: 1, leaseMs: SECOND })
    expect(idsOf(first.leases)).toEqual(['i1'])
    expect(first.nextInMs).toBe(0)
    const second = await storage.claim('turns', { lanes: ['a'], limit: 1, leaseMs: SECOND })
    expect(idsOf(second.leases)).toEqual(['i2'])
    expect(second.nextInMs).not.toBe(0)
  })

  check('[G-01] every queue takes, gives and settles items', async ({ storage }) => {
    const queues: readonly Queue[] = ['turns', 'tasks', 'timers', 'mail', 'outbox', 'leaders', 'firings', 'events']
    await storage.commit({ enqueue: queues.map((queue) => item('i1', { queue, payload: queue })) })
    for (const queue of queues) {
      const lease = only((await storage.claim(queue, { limit: 5, leaseMs: SECOND })).leases)
      expect(lease).toMatchObject({ queue, payload: queue })
      expect(await storage.commit({ settle: lease })).toBe('committed')
      expect(await storage.peek(queue, ['i1'])).toEqual([undefined])
    }
  })

  check('[G-01] queues are separate, also for items of one id', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1'), item('i1', { queue: 'mail', payload: 'letter' })] })
    expect(await claimedIds(storage)).toEqual(['i1'])
    const { leases } = await storage.claim('mail', { limit: 5, leaseMs: SECOND })
    expect(only(leases)).toMatchObject({ queue: 'mail', payload: 'letter' })
    expect(await storage.commit({ settle: only(leases) })).toBe('committed')
    expect(await storage.peek('turns', ['i1'])).not.toEqual([undefined])
  })

  check('[G-01] a removed item is gone, and removing nothing does no harm', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1'), item('i2')] })
    const remove = [
      { queue: 'turns', id: 'i1' },
      { queue: 'turns', id: 'nobody' },
    ] as const
    expect(await storage.commit({ remove })).toBe('committed')
    expect(await claimedIds(storage)).toEqual(['i2'])
  })

  check('[G-01] an item that is enqueued again replaces the old one', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { lane: 'a', payload: 'old' })] })
    await storage.commit({ enqueue: [item('i1', { lane: 'b', payload: 'new', delayMs: SECOND })] })
    expect(await claimedIds(storage)).toEqual([])
    await advance(SECOND)
    expect(await claim(storage, { lanes: ['a'] })).toEqual([])
    expect(only(await claim(storage, { lanes: ['b'] })).payload).toBe('new')
  })

  check('[G-01] an item that is enqueued again waits in its new place', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1'), item('i2')] })
    await advance(SECOND)
    await storage.commit({ enqueue: [item('i1')] })
    expect(await claimedIds(storage)).toEqual(['i2', 'i1'])
  })
}

export function checkAgeing(check: Check): void {
  check('[D-04] who has waited long enough goes before a higher priority', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('patient'), item('urgent', { priority: 2 })] })
    await advance(AGEING_MS + SECOND)
    await storage.commit({ enqueue: [item('next', { priority: 1 }), item('express', { priority: 3 })] })
    expect(await claimedIds(storage)).toEqual(['urgent', 'express', 'patient', 'next'])
  })

  check('[D-04] a negative priority goes later, and its turn comes too', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('low', { priority: -1 }), item('lower', { priority: -2 }), item('none')] })
    expect(await claimedIds(storage, { limit: 1 })).toEqual(['none'])
    await advance(AGEING_MS + SECOND)
    await storage.commit({ enqueue: [item('new')] })
    expect(await claimedIds(storage)).toEqual(['none', 'low', 'new', 'lower'])
  })

  check('[D-04] the wait of a delayed item begins when it is due', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('delayed', { delayMs: 5 * SECOND }), item('high', { priority: 1 / 32 })] })
    await advance(4 * SECOND)
    await storage.commit({ enqueue: [item('late', { priority: 1 / 16 })] })
    await advance(SECOND)
    expect(await claimedIds(storage)).toEqual(['high', 'late', 'delayed'])
  })

  check('[D-04] lanes and fallback lanes together have one order', async ({ storage, advance }) => {
    // A level of 1/32 is worth 1.875 seconds of waiting.
    const fallback = { lane: 'any', afterMs: SECOND }
    await storage.commit({
      enqueue: [item('b1', { lane: 'b' }), item('x1', { lane: 'x', fallback, priority: -1 / 32 })],
    })
    await advance(SECOND)
    await storage.commit({
      enqueue: [item('b2', { lane: 'b', priority: 1 / 32 }), item('any1', { lane: 'any' }), item('b3', { lane: 'b' })],
    })
    await advance(SECOND)
    await storage.commit({ enqueue: [item('any2', { lane: 'any', priority: 1 / 64 })] })
    expect(await claimedIds(storage, { lanes: ['any', 'b'] })).toEqual(['b2', 'b1', 'any1', 'b3', 'any2', 'x1'])
  })
}

export function checkLanes(check: Check): void {
  check('[G-01] a claim takes only from the lanes that it names', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1', { lane: 'a' }), item('i2', { lane: 'b' })] })
    expect(await claimedIds(storage, { lanes: ['b', 'unknown'] })).toEqual(['i2'])
    expect(await claimedIds(storage, { lanes: ['b'] })).toEqual([])
    expect(await claimedIds(storage, { lanes: ['a'] })).toEqual(['i1'])
  })

  check('[D-04] a claim of several lanes takes the best item over all of them', async ({ storage }) => {
    await storage.commit({
      enqueue: [
        item('a1', { lane: 'a', priority: 1 }),
        item('b1', { lane: 'b', priority: 2 }),
        item('a2', { lane: 'a', priority: 3 }),
        item('b2', { lane: 'b', priority: 1 }),
      ],
    })
    expect(await claimedIds(storage, { lanes: ['a', 'b'] })).toEqual(['a2', 'b1', 'a1', 'b2'])
  })

  check('[G-01] without lanes every lane has its turn, however full another one is', async ({ storage }) => {
    const busy = Array.from({ length: 50 }, (_, index) => item(`busy${index}`, { lane: 'busy', priority: 9 }))
    await storage.commit({ enqueue: [...busy, item('b', { lane: 'b' }), item('c', { lane: 'c' })] })
    const first = await claimedIds(storage, { limit: 4 })
    expect(first).toContain('b')
    expect(first).toContain('c')
  })

  check('[G-01] a lane that comes late gets its turn in the next round', async ({ storage }) => {
    const many = (lane: string): readonly ReturnType<typeof item>[] =>
      Array.from({ length: 20 }, (_, index) => item(`${lane}${index}`, { lane }))
    await storage.commit({ enqueue: [...many('a'), ...many('b')] })
    await claim(storage, { limit: 7 })
    await storage.commit({ enqueue: [item('late', { lane: 'c' })] })
    expect(await claimedIds(storage, { limit: 3 })).toContain('late')
  })

  check('[G-01] within a lane the priority counts, also when lanes take turns', async ({ storage }) => {
    await storage.commit({ enqueue: [item('low'), item('high', { priority: 1 }), item('b', { lane: 'b' })] })
    const ids = await claimedIds(storage)
    expect(ids.indexOf('high')).toBeLessThan(ids.indexOf('low'))
  })

  check('[G-01] the lanes are those with claimable items, each with its count', async ({ storage, advance }) => {
    await storage.commit({
      enqueue: [item('a1'), item('a2'), item('b1', { lane: 'b' }), item('c1', { lane: 'c', delayMs: 2 * SECOND })],
    })
    const lanes = async (): Promise<unknown> =>
      (await storage.lanes('turns')).toSorted((x, y) => (x.lane < y.lane ? -1 : 1))
    expect(await lanes()).toEqual([
      { lane: 'a', ready: 2 },
      { lane: 'b', ready: 1 },
    ])
    await claim(storage, { lanes: ['b'], leaseMs: 5 * SECOND })
    await storage.commit({ remove: [{ queue: 'turns', id: 'a1' }] })
    await advance(2 * SECOND)
    expect(await lanes()).toEqual([
      { lane: 'a', ready: 1 },
      { lane: 'c', ready: 1 },
    ])
    await advance(3 * SECOND)
    expect(await lanes()).toEqual([
      { lane: 'a', ready: 1 },
      { lane: 'b', ready: 1 },
      { lane: 'c', ready: 1 },
    ])
    expect(await storage.lanes('mail')).toEqual([])
  })

  check(
    '[I-03] how long the next item of a lane has been due, the longest of all lanes',
    async ({ storage, advance }) => {
      expect(await storage.oldest('turns')).toBeUndefined()
      const begin = await storage.now()
      await storage.commit({ enqueue: [item('a1'), item('b1', { lane: 'b', delayMs: 2 * SECOND })] })
      const end = await storage.now()
      /** Whatever time the calls take on a clock that goes on by itself. */
      const mustHaveWaited = async (lessMs: number): Promise<void> => {
        const least = (await storage.now()) - end - lessMs
        const waited = await storage.oldest('turns')
        expect(waited).toBeGreaterThanOrEqual(least)
        expect(waited).toBeLessThanOrEqual((await storage.now()) - begin - lessMs)
      }
      await mustHaveWaited(0)
      expect(await storage.oldest('turns', 'b')).toBeUndefined()
      await advance(5 * SECOND)
      await mustHaveWaited(0)
      // Of one lane: the other one has waited longer.
      const ofB = await storage.oldest('turns', 'b')
      expect(ofB).toBeGreaterThanOrEqual(3 * SECOND)
      expect(ofB).toBeLessThan((await storage.oldest('turns', 'a')) ?? 0)
      expect(await storage.oldest('turns', 'nowhere')).toBeUndefined()
      await claim(storage, { lanes: ['a'], leaseMs: 3_600 * SECOND })
      await mustHaveWaited(2 * SECOND)
      await storage.commit({ remove: [{ queue: 'turns', id: 'b1' }] })
      expect(await storage.oldest('turns')).toBeUndefined()
      await storage.commit({ enqueue: [item('later', { delayMs: 3_600 * SECOND })] })
      expect(await storage.oldest('turns')).toBeUndefined()
    },
  )

  check('[G-01] thousands of lanes that come and go leave nothing wrong behind', async ({ storage }) => {
    for (let round = 0; round < 5; round++) {
      const items = Array.from({ length: 500 }, (_, index) => item(`i${index}`, { lane: `lane${round}-${index}` }))
      await storage.commit({ enqueue: items })
      const leases = await claim(storage, { limit: 1_000 })
      expect(leases).toHaveLength(500)
      await storage.commit({ remove: leases })
    }
    expect(await storage.lanes('turns')).toEqual([])
    await storage.commit({ enqueue: [item('last', { lane: 'lane0-0' })] })
    expect(await claimedIds(storage)).toEqual(['last'])
  })
}
