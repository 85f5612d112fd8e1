import { expect } from 'vitest'
import { claim, claimedIds, claimOne, expired, item, only, putJob, SECOND } from './fixtures.ts'
import type { Check, CheckDurable } from './storage-under-test.ts'

export function checkGuards(check: Check): void {
  check('[F-05] a batch under a claim is written, and the claim goes on', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const guard = await claimOne(storage)
    expect(await storage.commit({ guard, put: [putJob('j1', 1)], enqueue: [item('i2')] })).toBe('committed')
    expect(await storage.commit({ guard, put: [putJob('j1', 2)] })).toBe('committed')
    expect(await storage.peek('turns', ['i1'])).toMatchObject([{ deliveries: 1, lease: { token: guard.token } }])
    expect(await storage.renew([guard], SECOND)).toEqual([true])
    expect(await storage.commit({ settle: guard })).toBe('committed')
  })

  check('[F-05] nothing is written under a claim that was lost', async ({ storage, advance }) => {
    const all = ['again', 'removed', 'replaced', 'back', 'settled', 'expired']
    await storage.commit({
      enqueue: all.map((id) => item(id, { lane: id, ...(id === 'expired' ? { runMs: SECOND } : {}) })),
    })
    await storage.commit({ put: [putJob('kept', 1)] })
    const guards = await claim(storage, { lanes: all, leaseMs: SECOND })
    expect(guards).toHaveLength(all.length)
    const of = (id: string): (typeof guards)[number] => only(guards.filter((lease) => lease.id === id))
    await storage.renew([of('back')], 0)
    await storage.commit({ settle: of('settled'), remove: [{ queue: 'turns', id: 'removed' }] })
    await storage.commit({ enqueue: [item('replaced', { lane: 'replaced' })] })
    await advance(SECOND)
    await claimOne(storage, { lanes: ['again'] })
    expect(await expired(storage)).toHaveLength(1)
    for (const guard of guards) {
      const outcome = await storage.commit({
        guard,
        put: [putJob('j1', 1)],
        drop: [{ kind: 'job', id: 'kept' }],
        enqueue: [item('new', { lane: 'new' })],
        remove: [{ queue: 'turns', id: 'replaced' }],
      })
      expect(outcome).toBe('conflict')
    }
    expect(await storage.read('job', 'j1')).toBeUndefined()
    expect((await storage.read('job', 'kept'))?.version).toBe(1)
    expect(await claimedIds(storage, { lanes: ['new'] })).toEqual([])
    expect(await storage.peek('turns', ['replaced'])).not.toEqual([undefined])
  })

  check('[F-05] a claim whose lease ended guards until somebody else claims', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { queue: 'leaders' })] })
    const take = async () => (await storage.claim('leaders', { limit: 1, leaseMs: SECOND })).leases
    const guard = only(await take())
    await advance(SECOND)
    expect(await storage.commit({ guard, put: [putJob('j1', 1)] })).toBe('committed')
    const next = only(await take())
    expect(await storage.commit({ guard, put: [putJob('j1', 2)] })).toBe('conflict')
    expect(await storage.commit({ guard: next, put: [putJob('j1', 2)] })).toBe('committed')
  })

  check('[F-05] of a guard and a settled claim both have to hold', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1'), item('i2')] })
    const [guard, settle] = await claim(storage)
    if (guard === undefined || settle === undefined) throw new Error('Nothing was claimed')
    const lost = { ...guard, token: guard.token + 1_000_000 }
    expect(await storage.commit({ guard: lost, settle })).toBe('conflict')
    expect(await storage.commit({ guard, settle: { ...settle, token: lost.token } })).toBe('conflict')
    expect(await storage.commit({ guard, settle: { ...settle, token: 0 } })).toBe('conflict')
    expect(await storage.commit({ guard, settle })).toBe('committed')
    expect(await storage.peek('turns', ['i1', 'i2'])).toMatchObject([{ id: 'i1' }, undefined])
  })
}

export function checkDurableGuards(check: CheckDurable): void {
  check('[F-05] a claim with a holder guards over a restart, one without does not', async ({ storage }, reopen) => {
    await storage.commit({ enqueue: [item('i1'), item('i2', { lane: 'b' })] })
    const kept = await claimOne(storage, { lanes: ['a'], leaseMs: 60 * SECOND, holder: 'worker' })
    const lost = await claimOne(storage, { lanes: ['b'], leaseMs: 60 * SECOND })
    await storage.sync()
    const again = await reopen()
    expect(await again.commit({ guard: lost, put: [putJob('j1', 1)] })).toBe('conflict')
    expect(await again.commit({ guard: kept, put: [putJob('j1', 1)] })).toBe('committed')
  })

  check(
    '[C-05] work that ends the process each time it is handed out has more deliveries each time',
    async ({ storage }, reopen) => {
      await storage.commit({ enqueue: [item('i1')] })
      await storage.sync()
      let current = storage
      let last = 0
      for (let round = 0; round < 5; round++) {
        // Only the claim: its holder is gone before it does anything else.
        const { deliveries } = await claimOne(current)
        expect(deliveries).toBeGreaterThan(round < 2 ? 0 : last)
        last = deliveries
        current = await reopen()
      }
      expect(last).toBeGreaterThanOrEqual(4)
    },
  )
}
