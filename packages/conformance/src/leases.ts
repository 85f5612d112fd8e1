import { expect } from 'vitest'
import { claim, claimedIds, claimOne, expired, idsOf, item, only, putJob, SECOND } from './fixtures.ts'
import type { Item, LeaseRef } from '@impresario/core'
import type { Check } from './storage-under-test.ts'

export function checkLeases(check: Check): void {
  check('[C-04] a leased item is hidden until its lease ends', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1')] })
    await claimOne(storage, { leaseMs: 5 * SECOND })
    expect(await claimedIds(storage)).toEqual([])
    await advance(4 * SECOND)
    expect(await claimedIds(storage)).toEqual([])
    await advance(SECOND)
    expect(await claimOne(storage)).toMatchObject({ id: 'i1', deliveries: 2 })
  })

  check('[C-04] an item that is born claimed is hidden until its lease ends', async ({ storage, advance }) => {
    const told: string[] = []
    storage.watch('turns', (lane) => told.push(lane))
    const claimed = { token: 123_456_789_012_345, leaseMs: 5 * SECOND, holder: 'w1' }
    await storage.commit({ enqueue: [item('i1', { claimed, unclaimedMs: SECOND })] })
    expect(await claimedIds(storage)).toEqual([])
    expect(await storage.lanes('turns')).toEqual([])
    expect(told).toEqual([])
    const [view] = await storage.peek('turns', ['i1'])
    expect(view).toMatchObject({ deliveries: 1, lease: { token: claimed.token, holder: 'w1' } })
    expect(await storage.held('turns')).toEqual(['i1'])
    await advance(4 * SECOND)
    expect(await claimedIds(storage)).toEqual([])
    await advance(SECOND)
    expect(await claimOne(storage)).toMatchObject({ id: 'i1', deliveries: 2 })
    expect(await storage.commit({ settle: { queue: 'turns', id: 'i1', token: claimed.token } })).toBe('conflict')
  })

  check('[C-04] the claim that an item is born with settles, renews and hands back', async ({ storage, advance }) => {
    const born = (id: string, token: number): Item => item(id, { claimed: { token, leaseMs: 2 * SECOND } })
    await storage.commit({ enqueue: [born('i1', 11), born('i2', 12), born('i3', 13)] })
    const ref = (id: string, token: number): LeaseRef => ({ queue: 'turns', id, token })
    expect(await storage.commit({ settle: ref('i1', 12) })).toBe('conflict')
    expect(await storage.commit({ settle: ref('i1', 11) })).toBe('committed')
    expect(await storage.renew([ref('i2', 12)], 9 * SECOND)).toEqual([true])
    expect(await storage.renew([ref('i3', 13)], 0)).toEqual([true])
    expect(await claimOne(storage)).toMatchObject({ id: 'i3', deliveries: 1 })
    await advance(3 * SECOND)
    expect(await claimedIds(storage)).toEqual([])
  })

  check('[C-04] an item that replaces another may be born claimed', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const old = await claimOne(storage)
    await storage.commit({ enqueue: [item('i1', { claimed: { token: 77, leaseMs: SECOND } })] })
    expect(await storage.commit({ settle: old })).toBe('conflict')
    expect(await storage.commit({ settle: { queue: 'turns', id: 'i1', token: 77 } })).toBe('committed')
  })

  check('[C-04] the run of an item that is born claimed is out of time', async ({ storage, advance }) => {
    const claimed = { token: 5, leaseMs: 9 * SECOND, holder: 'w1' }
    await storage.commit({ enqueue: [item('i1', { claimed, runMs: 2 * SECOND })] })
    expect(idsOf(await expired(storage))).toEqual([])
    await advance(2 * SECOND)
    expect(idsOf(await expired(storage))).toEqual(['i1'])
  })

  check('[G-01] a claim says when the lease of another may end', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    await claimOne(storage, { leaseMs: 5 * SECOND })
    const { nextInMs } = await storage.claim('turns', { limit: 1, leaseMs: SECOND })
    expect(nextInMs).toBeGreaterThan(0)
    expect(nextInMs).toBeLessThanOrEqual(5 * SECOND)
  })

  check('[G-01] an item whose lease ended is claimed before younger ones', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1')] })
    await claimOne(storage, { leaseMs: SECOND })
    await advance(SECOND)
    await storage.commit({ enqueue: [item('i2')] })
    expect(await claimedIds(storage)).toEqual(['i1', 'i2'])
  })

  check('[C-04] a settled item is gone for good', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const lease = await claimOne(storage, { leaseMs: SECOND })
    expect(await storage.commit({ settle: lease })).toBe('committed')
    expect(await storage.commit({ settle: lease })).toBe('conflict')
    await advance(2 * SECOND)
    expect(await claimedIds(storage)).toEqual([])
  })

  check('[C-04] a late holder may settle as long as nobody else has claimed', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const late = await claimOne(storage, { leaseMs: SECOND })
    await advance(2 * SECOND)
    expect(await storage.commit({ settle: late })).toBe('committed')
    expect(await claimedIds(storage)).toEqual([])
  })

  check('[C-04] a late holder cannot settle what somebody else has claimed', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const late = await claimOne(storage, { leaseMs: SECOND })
    await advance(2 * SECOND)
    const current = await claimOne(storage)
    expect(await storage.commit({ settle: late })).toBe('conflict')
    expect(await storage.commit({ settle: current })).toBe('committed')
  })

  check('[C-04] a claim of a removed item does not hold for the item that replaced it', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const old = await claimOne(storage)
    await storage.commit({ remove: [{ queue: 'turns', id: 'i1' }] })
    expect(await storage.commit({ settle: old })).toBe('conflict')
    await storage.commit({ enqueue: [item('i1')] })
    expect(await storage.commit({ settle: old })).toBe('conflict')
    const current = await claimOne(storage)
    expect(current.token).not.toBe(old.token)
    expect(await storage.commit({ settle: old })).toBe('conflict')
    expect(await storage.renew([old, current], SECOND)).toEqual([false, true])
  })

  check('[C-04] a claim names one item and no other', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1'), item('i2')] })
    const [first, second] = await claim(storage)
    expect(await storage.commit({ settle: { queue: 'turns', id: 'i1', token: second?.token ?? 0 } })).toBe('conflict')
    expect(await storage.commit({ settle: { queue: 'mail', id: 'i1', token: first?.token ?? 0 } })).toBe('conflict')
    expect(await storage.commit({ settle: { queue: 'turns', id: 'nobody', token: 1 } })).toBe('conflict')
  })

  check('[C-04] an item that nobody has claimed cannot be settled', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    expect(await storage.commit({ settle: { queue: 'turns', id: 'i1', token: 0 } })).toBe('conflict')
    expect(await storage.renew([{ queue: 'turns', id: 'i1', token: 0 }], SECOND)).toEqual([false])
  })

  check('[C-04] tokens never repeat', async ({ storage }) => {
    const tokens = new Set<number>()
    for (let round = 0; round < 50; round++) {
      await storage.commit({ enqueue: [item('i1'), item(`other${round}`), item('i1', { queue: 'mail' })] })
      const mail = await storage.claim('mail', { limit: 5, leaseMs: SECOND })
      for (const { token } of [...(await claim(storage)), ...mail.leases]) tokens.add(token)
    }
    expect(tokens.size).toBe(150)
  })

  check('[E-03] a renewed lease lasts from the moment of its renewal', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const lease = await claimOne(storage, { leaseMs: 3 * SECOND })
    await advance(2 * SECOND)
    expect(await storage.renew([lease], 3 * SECOND)).toEqual([true])
    await advance(2 * SECOND)
    expect(await claimedIds(storage)).toEqual([])
    await advance(SECOND)
    expect(await claimedIds(storage)).toEqual(['i1'])
  })

  check('[E-03] a lease can be made shorter', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const lease = await claimOne(storage, { leaseMs: 30 * SECOND })
    await storage.renew([lease], SECOND)
    await advance(SECOND)
    expect(await claimedIds(storage)).toEqual(['i1'])
  })

  check('[I-07] an item that is handed back is claimable at once', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const lease = await claimOne(storage)
    expect(await storage.renew([lease], 0)).toEqual([true])
    expect(await claimOne(storage)).toMatchObject({ id: 'i1', deliveries: 1 })
    expect(await storage.renew([lease], SECOND)).toEqual([false])
  })

  check('[E-03] renewing answers for each lease in order', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1'), item('i2'), item('i3'), item('i4')] })
    const leases = await claim(storage)
    const [first, second, third] = leases
    if (first !== undefined) await storage.commit({ settle: first })
    await storage.commit({ remove: [{ queue: 'turns', id: second?.id ?? '' }], enqueue: [item(third?.id ?? '')] })
    expect(await storage.renew(leases, SECOND)).toEqual([false, false, false, true])
    expect(await storage.renew([], SECOND)).toEqual([])
  })

  check('[E-03] a lease that ended can be renewed until somebody else claims', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const lease = await claimOne(storage, { leaseMs: SECOND })
    await advance(2 * SECOND)
    expect(await storage.renew([lease], 5 * SECOND)).toEqual([true])
    expect(await claimedIds(storage)).toEqual([])
    expect(await storage.lanes('turns')).toEqual([])
    await advance(5 * SECOND)
    await claimOne(storage)
    expect(await storage.renew([lease], SECOND)).toEqual([false])
  })

  check('[E-03] many renewals change nothing but the end', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1'), item('i2', { delayMs: 8 * SECOND })] })
    const lease = await claimOne(storage, { leaseMs: 2 * SECOND })
    for (let round = 0; round < 7; round++) {
      await advance(SECOND)
      expect(await storage.renew([lease], 2 * SECOND)).toEqual([true])
      expect(await claimedIds(storage)).toEqual([])
    }
    await advance(2 * SECOND)
    expect(await claimedIds(storage)).toEqual(['i1', 'i2'])
  })
}

export function checkFallback(check: Check): void {
  const stealable = item('i1', { lane: 'worker', fallback: { lane: 'any', afterMs: 5 * SECOND } })

  check('[D-04] an unclaimed item is claimable through its second lane after a while', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [stealable] })
    await advance(4 * SECOND)
    expect(await claimedIds(storage, { lanes: ['any'] })).toEqual([])
    await advance(SECOND)
    expect(only(await claim(storage, { lanes: ['any'] }))).toMatchObject({ id: 'i1', lane: 'worker', deliveries: 1 })
    expect(await claimedIds(storage, { lanes: ['worker'] })).toEqual([])
  })

  check('[D-04] the first lane keeps its right to an item with a fallback', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [stealable] })
    await advance(6 * SECOND)
    expect(await claimedIds(storage, { lanes: ['worker'] })).toEqual(['i1'])
    expect(await claimedIds(storage, { lanes: ['any'] })).toEqual([])
  })

  check('[D-04] a claim of both lanes gets the item once', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [stealable, item('i2', { lane: 'any' })] })
    await advance(6 * SECOND)
    expect(await claimedIds(storage, { lanes: ['worker', 'any'] })).toEqual(['i1', 'i2'])
    expect(await claimedIds(storage)).toEqual([])
  })

  check('[D-04] the wait for the fallback begins when the item is due', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [{ ...stealable, delayMs: 3 * SECOND }] })
    await advance(7 * SECOND)
    expect(await claimedIds(storage, { lanes: ['any'] })).toEqual([])
    await advance(SECOND)
    expect(await claimedIds(storage, { lanes: ['any'] })).toEqual(['i1'])
  })

  check('[D-04] an item with a fallback counts in both lanes', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [stealable] })
    expect(await storage.lanes('turns')).toEqual([{ lane: 'worker', ready: 1 }])
    await advance(5 * SECOND)
    const lanes = await storage.lanes('turns')
    expect(lanes.toSorted((x, y) => (x.lane < y.lane ? -1 : 1))).toEqual([
      { lane: 'any', ready: 1 },
      { lane: 'worker', ready: 1 },
    ])
    await claimOne(storage)
    expect(await storage.lanes('turns')).toEqual([])
  })

  check('[D-04] the wait for a fallback is announced', async ({ storage }) => {
    await storage.commit({ enqueue: [stealable] })
    const { leases, nextInMs } = await storage.claim('turns', { lanes: ['any'], limit: 1, leaseMs: SECOND })
    expect(leases).toEqual([])
    expect(nextInMs).toBeLessThanOrEqual(5 * SECOND)
  })

  check('[E-03] what a silent worker held comes free for all when its lease ends', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [stealable] })
    await claimOne(storage, { lanes: ['worker'], leaseMs: 8 * SECOND })
    await advance(6 * SECOND)
    expect(await claimedIds(storage, { lanes: ['any'] })).toEqual([])
    await advance(2 * SECOND)
    expect(await claimedIds(storage, { lanes: ['any'] })).toEqual(['i1'])
  })
}

export function checkExpiry(check: Check): void {
  check('[F-01] an item that nobody claims in time expires', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { unclaimedMs: 5 * SECOND })] })
    await advance(4 * SECOND)
    expect(await expired(storage)).toEqual([])
    await advance(SECOND)
    expect(only(await expired(storage))).toMatchObject({ id: 'i1', deliveries: 0, payload: { id: 'i1' } })
  })

  check('[F-01] an item that was claimed in time does not expire as unclaimed', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { unclaimedMs: 5 * SECOND })] })
    await claimOne(storage, { leaseMs: SECOND })
    await advance(6 * SECOND)
    expect(await expired(storage)).toEqual([])
    expect(await claimedIds(storage)).toEqual(['i1'])
  })

  check('[F-01] an expired item tells how often it was handed out', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { settleMs: 3 * SECOND }), item('i2', { settleMs: 3 * SECOND })] })
    await claimOne(storage, { leaseMs: SECOND })
    await advance(SECOND)
    await claimOne(storage, { leaseMs: SECOND })
    await advance(3 * SECOND)
    const told = async (): Promise<unknown> =>
      new Map((await expired(storage)).map(({ id, deliveries }) => [id, deliveries]))
    expect(await told()).toEqual(
      new Map([
        ['i1', 2],
        ['i2', 0],
      ]),
    )
    await advance(10 * SECOND)
    expect(await told()).toEqual(
      new Map([
        ['i1', 2],
        ['i2', 0],
      ]),
    )
  })

  check('[F-01] an item that is not settled in time expires, claimed or not', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { settleMs: 5 * SECOND }), item('i2', { settleMs: 5 * SECOND })] })
    await claimOne(storage, { leaseMs: 60 * SECOND })
    await advance(4 * SECOND)
    expect(await expired(storage)).toEqual([])
    await advance(SECOND)
    expect(idsOf(await expired(storage)).toSorted()).toEqual(['i1', 'i2'])
  })

  check('[F-01] both spans begin when the item is due', async ({ storage, advance }) => {
    await storage.commit({
      enqueue: [
        item('i1', { delayMs: 3 * SECOND, unclaimedMs: 5 * SECOND }),
        item('i2', { delayMs: 3 * SECOND, settleMs: 5 * SECOND }),
      ],
    })
    await advance(7 * SECOND)
    expect(await expired(storage)).toEqual([])
    await advance(SECOND)
    expect(await expired(storage)).toHaveLength(2)
  })

  check('[F-01] an expired item is no longer claimable as usual', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { unclaimedMs: SECOND }), item('i2', { settleMs: SECOND })] })
    await advance(SECOND)
    expect(await claimedIds(storage)).toEqual([])
    expect(await storage.lanes('turns')).toEqual([])
  })

  check(
    '[C-04] the holder of an expired item writes nothing any more, noticed or not',
    async ({ storage, advance }) => {
      await storage.commit({ enqueue: [item('i1', { settleMs: SECOND })] })
      const lease = await claimOne(storage, { leaseMs: 60 * SECOND })
      await advance(SECOND - 1)
      expect(await storage.commit({ guard: lease })).toBe('committed')
      await advance(1)
      expect(await storage.commit({ settle: lease, put: [putJob('a', 1)] })).toBe('conflict')
      expect(await storage.commit({ guard: lease, put: [putJob('a', 1)] })).toBe('conflict')
      expect(await storage.renew([lease], 5 * SECOND)).toEqual([true])
      expect(await storage.commit({ settle: lease })).toBe('conflict')
      expect(await storage.read('job', 'a')).toBeUndefined()
      expect(await storage.commit({ settle: only(await expired(storage)) })).toBe('committed')
    },
  )

  check('[C-04] the same for a run that has lasted too long', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { runMs: SECOND })] })
    const lease = await claimOne(storage, { leaseMs: 60 * SECOND })
    await advance(SECOND)
    expect(await storage.commit({ settle: lease })).toBe('conflict')
    const expiry = only(await expired(storage))
    await advance(60 * SECOND)
    // The holder of the expiry claim has a lease too, and loses it.
    expect(await storage.commit({ settle: expiry })).toBe('conflict')
    expect(await storage.commit({ settle: only(await expired(storage)) })).toBe('committed')
  })

  check('[C-04] who claims the expiry takes the item from its holder', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { settleMs: SECOND })] })
    const lease = await claimOne(storage, { leaseMs: 60 * SECOND, holder: 'worker' })
    await advance(2 * SECOND)
    const expiry = only(await expired(storage))
    expect(expiry.token).not.toBe(lease.token)
    expect(await storage.renew([lease], 5 * SECOND)).toEqual([false])
    expect(await storage.commit({ settle: lease })).toBe('conflict')
    expect(await storage.commit({ settle: expiry })).toBe('committed')
    expect(await storage.peek('turns', ['i1'])).toEqual([undefined])
  })

  check('[F-05] a claimed expiry is hidden from others until its lease ends', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { unclaimedMs: SECOND })] })
    await advance(SECOND)
    await expired(storage)
    expect(await expired(storage)).toEqual([])
    expect(await claimedIds(storage)).toEqual([])
    await advance(10 * SECOND)
    expect(await claimedIds(storage)).toEqual([])
    expect(idsOf(await expired(storage))).toEqual(['i1'])
  })

  check('[F-01] an expiry that is handed back can be claimed at once', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { settleMs: SECOND })] })
    await advance(SECOND)
    expect(await storage.renew(await expired(storage), 0)).toEqual([true])
    expect(await claimedIds(storage)).toEqual([])
    expect(idsOf(await expired(storage))).toEqual(['i1'])
  })

  check('[F-01] a claim of expiries stops at its limit and says what comes', async ({ storage, advance }) => {
    await storage.commit({
      enqueue: [
        item('i1', { settleMs: SECOND }),
        item('i2', { settleMs: 2 * SECOND }),
        item('i3', { settleMs: 9 * SECOND }),
      ],
    })
    await advance(3 * SECOND)
    const options = { limit: 1, leaseMs: 60 * SECOND }
    const first = await storage.claimExpired('turns', options)
    expect([idsOf(first.leases), first.nextInMs]).toEqual([['i1'], 0])
    const second = await storage.claimExpired('turns', options)
    expect(idsOf(second.leases)).toEqual(['i2'])
    expect(second.nextInMs).toBeGreaterThan(0)
    expect(second.nextInMs).toBeLessThanOrEqual(6 * SECOND)
  })

  check('[F-01] an item without spans never expires', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1'), item('i2', { fallback: { lane: 'b', afterMs: SECOND } })] })
    await advance(100_000 * SECOND)
    expect(await storage.claimExpired('turns', { limit: 5, leaseMs: SECOND })).toMatchObject({ leases: [] })
    expect(await claimedIds(storage)).toEqual(['i1', 'i2'])
  })

  check('[F-01] an item that is enqueued again expires by its new spans only', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { settleMs: SECOND })] })
    await storage.commit({ enqueue: [item('i1', { settleMs: 5 * SECOND })] })
    await advance(2 * SECOND)
    expect(await expired(storage)).toEqual([])
    expect(await claimedIds(storage)).toEqual(['i1'])
  })
}
