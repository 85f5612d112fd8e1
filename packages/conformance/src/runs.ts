import { expect } from 'vitest'
import { claim, claimedIds, claimOne, expired, idsOf, item, only, SECOND } from './fixtures.ts'
import type { Check, CheckDurable } from './storage-under-test.ts'

/** The time limit of a claim, and what happens to it when the claim ends in another way. */
export function checkRuns(check: Check): void {
  check('[D-04] an item that waits does not use up the time of its run', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { runMs: 5 * SECOND })] })
    await advance(1_000 * SECOND)
    expect(await expired(storage)).toEqual([])
    await claimOne(storage, { leaseMs: 60 * SECOND })
    await advance(4 * SECOND)
    expect(await expired(storage)).toEqual([])
    await advance(SECOND)
    expect(only(await expired(storage))).toMatchObject({ id: 'i1', deliveries: 1, expiresInMs: 0 })
  })

  check('[C-04] renewals do not make a run longer', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { runMs: 3 * SECOND })] })
    const lease = await claimOne(storage, { leaseMs: 2 * SECOND })
    await advance(SECOND)
    expect(await storage.renew([lease], 5 * SECOND)).toEqual([true])
    await advance(2 * SECOND)
    expect(idsOf(await expired(storage))).toEqual(['i1'])
    expect(await storage.renew([lease], 5 * SECOND)).toEqual([false])
  })

  check(
    '[D-04] the end of a lease ends the run: the item waits without a limit again',
    async ({ storage, advance }) => {
      await storage.commit({ enqueue: [item('i1', { runMs: 5 * SECOND })] })
      await claimOne(storage, { leaseMs: 2 * SECOND })
      await advance(20 * SECOND)
      expect(await expired(storage)).toEqual([])
      await claimOne(storage, { leaseMs: 60 * SECOND })
      await advance(4 * SECOND)
      expect(await expired(storage)).toEqual([])
      await advance(SECOND)
      expect(only(await expired(storage))).toMatchObject({ id: 'i1', deliveries: 2 })
    },
  )

  check('[C-04] what ran out of time in somebody’s hands stays expired', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { runMs: 2 * SECOND })] })
    await claimOne(storage, { leaseMs: 3 * SECOND })
    await advance(20 * SECOND)
    expect(await claimedIds(storage)).toEqual([])
    expect(idsOf(await expired(storage))).toEqual(['i1'])
    await advance(20 * SECOND)
    expect(await claimedIds(storage)).toEqual([])
    expect(idsOf(await expired(storage))).toEqual(['i1'])
  })

  check('[C-04] who comes back to a lease that ended has no more time than before', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { runMs: 5 * SECOND }), item('i2', { runMs: 5 * SECOND })] })
    const leases = await claim(storage, { leaseMs: 2 * SECOND })
    await advance(3 * SECOND)
    expect(await storage.renew(leases.slice(0, 1), 60 * SECOND)).toEqual([true])
    await advance(2 * SECOND)
    expect(idsOf(await expired(storage))).toEqual(['i1'])
    await advance(SECOND)
    expect(await storage.renew(leases.slice(1), 60 * SECOND)).toEqual([true])
    expect(await claimedIds(storage)).toEqual([])
    expect(idsOf(await expired(storage))).toEqual(['i2'])
  })

  check('[J-2] a claim says how long it has, whichever limit comes first', async ({ storage, advance }) => {
    await storage.commit({
      enqueue: [
        item('never'),
        item('run', { runMs: 5 * SECOND, unclaimedMs: 30 * SECOND }),
        item('settle', { settleMs: 30 * SECOND }),
        item('settle first', { runMs: 20 * SECOND, settleMs: 30 * SECOND }),
      ],
    })
    await advance(20 * SECOND)
    // The lease is shorter than the run: the time limit belongs to the claim, which renewals keep.
    const leases = await claim(storage, { leaseMs: SECOND })
    const told = new Map(leases.map(({ id, expiresInMs }) => [id, expiresInMs && Math.ceil(expiresInMs / SECOND)]))
    expect(told).toEqual(
      new Map<string, number | undefined>([
        ['never', undefined],
        ['run', 5],
        ['settle', 10],
        ['settle first', 10],
      ]),
    )
  })

  check('[F-01] a claim of expiries says when a run will be out of time', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1', { runMs: 5 * SECOND })] })
    await claimOne(storage, { leaseMs: 60 * SECOND })
    const { leases, nextInMs } = await storage.claimExpired('turns', { limit: 1, leaseMs: SECOND })
    expect(leases).toEqual([])
    expect(nextInMs).toBeLessThanOrEqual(5 * SECOND)
  })
}

export function checkHandBack(check: Check): void {
  check('[E-02] a claim that is handed back leaves no trace', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    await storage.renew([await claimOne(storage, { holder: 'worker' })], 0)
    expect(await storage.peek('turns', ['i1'])).toMatchObject([{ deliveries: 0, lease: undefined }])
    expect(await claimOne(storage)).toMatchObject({ deliveries: 1 })
  })

  check('[E-02] a claim can be handed back once, and is nobody’s afterwards', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const lease = await claimOne(storage)
    expect(await storage.renew([lease, lease], 0)).toEqual([true, false])
    expect(await storage.renew([lease], SECOND)).toEqual([false])
    expect(await storage.commit({ settle: lease })).toBe('conflict')
    expect(await claimOne(storage)).toMatchObject({ deliveries: 1 })
  })

  check('[C-04] after a hand-back the wait for a first claim counts again', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { unclaimedMs: 5 * SECOND })] })
    const lease = await claimOne(storage, { leaseMs: 60 * SECOND })
    await advance(3 * SECOND)
    await storage.renew([lease], 0)
    await advance(SECOND)
    expect(await expired(storage)).toEqual([])
    await advance(SECOND)
    expect(only(await expired(storage))).toMatchObject({ id: 'i1', deliveries: 0 })
  })

  check('[C-04] a hand-back after the wait is over leaves the item expired', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { unclaimedMs: 2 * SECOND, runMs: SECOND })] })
    const lease = await claimOne(storage, { leaseMs: SECOND / 2 })
    await advance(3 * SECOND)
    expect(await expired(storage)).toEqual([])
    expect(await storage.renew([lease], 0)).toEqual([true])
    expect(await claimedIds(storage)).toEqual([])
    expect(only(await expired(storage))).toMatchObject({ id: 'i1', deliveries: 0 })
  })

  check('[C-04] who had it before still counts after a hand-back', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { unclaimedMs: 3 * SECOND })] })
    await claimOne(storage, { leaseMs: SECOND })
    await advance(SECOND)
    await storage.renew([await claimOne(storage)], 0)
    await advance(20 * SECOND)
    expect(await expired(storage)).toEqual([])
    expect(await claimOne(storage)).toMatchObject({ deliveries: 2 })
  })

  check('[D-04] a hand-back ends the run, also one that is out of time', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { runMs: 2 * SECOND }), item('i2', { runMs: 4 * SECOND })] })
    const leases = await claim(storage, { leaseMs: 60 * SECOND })
    await advance(3 * SECOND)
    expect(await storage.renew(leases, 0)).toEqual([true, true])
    await advance(3 * SECOND)
    expect(await expired(storage)).toEqual([])
    expect(await claimedIds(storage)).toEqual(['i1', 'i2'])
  })

  check('[F-01] an expiry that is handed back was no delivery', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { runMs: SECOND })] })
    await claimOne(storage)
    await advance(SECOND)
    const expiry = await expired(storage)
    await advance(20 * SECOND)
    expect(await storage.renew(expiry, 0)).toEqual([true])
    expect(only(await expired(storage))).toMatchObject({ id: 'i1', deliveries: 1 })
  })

  check(
    '[F-05] an expiry whose lease ended can be renewed until somebody else claims',
    async ({ storage, advance }) => {
      await storage.commit({ enqueue: [item('i1', { unclaimedMs: SECOND })] })
      await advance(SECOND)
      const expiry = await expired(storage)
      await advance(20 * SECOND)
      expect(await storage.renew(expiry, 5 * SECOND)).toEqual([true])
      expect(await expired(storage)).toEqual([])
      await advance(5 * SECOND)
      expect(idsOf(await expired(storage))).toEqual(['i1'])
      expect(await storage.renew(expiry, 5 * SECOND)).toEqual([false])
    },
  )
}

export function checkDurableRuns(check: CheckDurable): void {
  check('[J-2] the time of a run goes on over a restart', async ({ storage, advance }, reopen) => {
    await storage.commit({ enqueue: [item('i1', { runMs: 5 * SECOND }), item('i2', { runMs: 5 * SECOND })] })
    await storage.sync()
    await claimOne(storage, { leaseMs: 60 * SECOND, holder: 'worker' })
    await advance(2 * SECOND)
    await storage.sync()
    const again = await reopen()
    expect(await claimOne(again, { leaseMs: 60 * SECOND })).toMatchObject({ id: 'i2' })
    await advance(3 * SECOND)
    expect(idsOf(await expired(again))).toEqual(['i1'])
    await advance(2 * SECOND)
    expect(idsOf(await expired(again))).toEqual(['i2'])
  })

  check('[D-04] a run without a holder ends with the process', async ({ storage, advance }, reopen) => {
    await storage.commit({ enqueue: [item('i1', { runMs: 2 * SECOND, unclaimedMs: 60 * SECOND })] })
    await storage.sync()
    await claimOne(storage, { leaseMs: 60 * SECOND })
    await storage.sync()
    const again = await reopen()
    await advance(20 * SECOND)
    expect(await expired(again)).toEqual([])
    expect(await claimedIds(again)).toEqual(['i1'])
  })

  check(
    '[D-04] a run that was out of time in the hands of a process ends with it',
    async ({ storage, advance }, reopen) => {
      await storage.commit({ enqueue: [item('i1', { runMs: SECOND })] })
      await claimOne(storage, { leaseMs: 60 * SECOND })
      await advance(2 * SECOND)
      // A query makes the storage process the expiry.
      expect(await claim(storage)).toEqual([])
      await storage.sync()
      const again = await reopen()
      expect(await claimOne(again)).toMatchObject({ id: 'i1' })
    },
  )

  check('[C-04] what ran out of time stays expired over a restart', async ({ storage, advance }, reopen) => {
    await storage.commit({ enqueue: [item('i1', { runMs: 2 * SECOND }), item('i2', { runMs: 2 * SECOND })] })
    await storage.sync()
    await claim(storage, { leaseMs: 10 * SECOND, holder: 'worker' })
    await storage.sync()
    await advance(3 * SECOND)
    // One of the two is being handled when the process ends.
    await storage.claimExpired('turns', { limit: 1, leaseMs: 60 * SECOND })
    await storage.sync()
    const again = await reopen()
    expect(await claimedIds(again)).toEqual([])
    const leases = await expired(again)
    expect(idsOf(leases).toSorted()).toEqual(['i1', 'i2'])
    expect(leases.map(({ deliveries }) => deliveries)).toEqual([1, 1])
  })

  check('[E-02] a hand-back survives a restart, with a holder or without', async ({ storage, advance }, reopen) => {
    const spans = { unclaimedMs: 5 * SECOND, runMs: 2 * SECOND }
    await storage.commit({ enqueue: [item('i1', spans), item('i2', { ...spans, lane: 'b' })] })
    await storage.sync()
    const leases = [
      await claimOne(storage, { lanes: ['a'], holder: 'worker' }),
      await claimOne(storage, { lanes: ['b'] }),
    ]
    await storage.sync()
    await storage.renew(leases, 0)
    await storage.sync()
    const again = await reopen()
    expect(await again.peek('turns', ['i1', 'i2'])).toMatchObject([
      { deliveries: 0, lease: undefined },
      { deliveries: 0, lease: undefined },
    ])
    await advance(4 * SECOND)
    expect(await expired(again)).toEqual([])
    await advance(SECOND)
    expect(idsOf(await expired(again)).toSorted()).toEqual(['i1', 'i2'])
  })

  check('[C-04] a claim of before a restart can be handed back after it', async ({ storage, advance }, reopen) => {
    await storage.commit({ enqueue: [item('i1', { unclaimedMs: 5 * SECOND })] })
    const lease = await claimOne(storage, { leaseMs: 60 * SECOND, holder: 'worker' })
    await storage.sync()
    const again = await reopen()
    expect(await again.renew([lease], 0)).toEqual([true])
    expect(await again.peek('turns', ['i1'])).toMatchObject([{ deliveries: 0 }])
    await advance(5 * SECOND)
    expect(idsOf(await expired(again))).toEqual(['i1'])
  })
}
