import { expect } from 'vitest'
import type { Storage } from '@impresario/core'
import { claim, claimedIds, claimOne, expired, idsOf, item, only, putJob, SECOND } from './fixtures.ts'
import type { CheckDurable } from './storage-under-test.ts'

export function checkDurability(check: CheckDurable): void {
  check('[G-01] records and lists are the same after a restart', async ({ storage }, reopen) => {
    for (let index = 0; index < 30; index++) {
      const id = `j${String(index).padStart(2, '0')}`
      const owner = index % 3 === 0 ? 'ann' : 'bob'
      await storage.commit({ put: [putJob(id, 1, { owner })] })
      if (index % 2 === 0) await storage.commit({ put: [putJob(id, 2, { owner, status: 'finished' })] })
      if (index === 10) await storage.sync()
    }
    const everything = async (from: Storage): Promise<unknown> => [
      await from.list('job', { limit: 100 }),
      await from.list('job', { limit: 5, owner: 'ann', before: 'j20' }),
      await from.list('job', { limit: 100, status: 'finished' }),
      await from.list('job', { limit: 100, statuses: ['running'] }),
      await from.read('job', 'j07'),
    ]
    const before = await everything(storage)
    await storage.sync()
    expect(await everything(storage)).toEqual(before)
    expect(await everything(await reopen())).toEqual(before)
  })

  check('[G-01] versions go on after a restart', async ({ storage }, reopen) => {
    await storage.commit({ put: [putJob('j1', 1)] })
    await storage.commit({ put: [putJob('j1', 2)] })
    await storage.sync()
    const again = await reopen()
    expect(await again.commit({ put: [putJob('j1', 1)] })).toBe('conflict')
    expect(await again.commit({ put: [putJob('j1', 2)] })).toBe('conflict')
    expect(await again.commit({ put: [putJob('j1', 3)] })).toBe('committed')
  })

  check('[G-01] items keep their order over a restart', async ({ storage, advance }, reopen) => {
    await storage.commit({ enqueue: [item('b'), item('a'), item('high', { priority: 5 })] })
    await advance(SECOND)
    await storage.commit({ enqueue: [item('0')] })
    await storage.sync()
    const again = await reopen()
    await again.commit({ enqueue: [item('00')] })
    expect(await claimedIds(again)).toEqual(['high', 'b', 'a', '0', '00'])
  })

  check('[G-01] what was settled, removed or replaced stays so over a restart', async ({ storage }, reopen) => {
    await storage.commit({ enqueue: [item('i1'), item('i2'), item('i3', { payload: 'old' })] })
    await storage.sync()
    await storage.commit({ settle: await claimOne(storage) })
    await storage.commit({ remove: [{ queue: 'turns', id: 'i2' }], enqueue: [item('i3', { payload: 'new' })] })
    await storage.sync()
    const again = await reopen()
    expect((await claim(again)).map(({ id, payload }) => [id, payload])).toEqual([['i3', 'new']])
  })

  check('[G-01] who holds what was born claimed holds it over a restart', async ({ storage }, reopen) => {
    const held = { token: 41, leaseMs: 60 * SECOND, holder: 'w1' }
    const own = { token: 42, leaseMs: 60 * SECOND }
    await storage.commit({ enqueue: [item('outside', { claimed: held }), item('inside', { claimed: own })] })
    await storage.sync()
    const again = await reopen()
    expect(await again.held('turns')).toEqual(['outside'])
    expect(await claimedIds(again)).toEqual(['inside'])
    expect(await again.commit({ settle: { queue: 'turns', id: 'outside', token: 41 } })).toBe('committed')
  })

  check('[G-01] a delay goes on over a restart', async ({ storage, advance }, reopen) => {
    await storage.commit({ enqueue: [item('i1', { delayMs: 5 * SECOND })] })
    await advance(2 * SECOND)
    await storage.sync()
    const again = await reopen()
    expect(await claimedIds(again)).toEqual([])
    await advance(3 * SECOND)
    expect(await claimedIds(again)).toEqual(['i1'])
  })

  check('[E-03] a lease with a holder survives a restart', async ({ storage, advance }, reopen) => {
    await storage.commit({ enqueue: [item('i1'), item('i2')] })
    await storage.sync()
    const leases = await claim(storage, { leaseMs: 5 * SECOND, holder: 'worker' })
    await storage.sync()
    const again = await reopen()
    expect(await claimedIds(again)).toEqual([])
    const [view] = await again.peek('turns', ['i1'])
    expect(view).toMatchObject({ deliveries: 1, lease: { token: leases[0]?.token, holder: 'worker' } })
    expect(await again.commit({ settle: only(leases.slice(0, 1)) })).toBe('committed')
    await advance(5 * SECOND)
    expect(await claimOne(again)).toMatchObject({ id: 'i2', deliveries: 2 })
  })

  check('[E-03] a renewal survives a restart', async ({ storage, advance }, reopen) => {
    await storage.commit({ enqueue: [item('i1')] })
    const lease = await claimOne(storage, { leaseMs: 2 * SECOND, holder: 'worker' })
    await storage.sync()
    await storage.renew([lease], 9 * SECOND)
    await storage.sync()
    const again = await reopen()
    await advance(8 * SECOND)
    expect(await claimedIds(again)).toEqual([])
    expect(await again.renew([lease], SECOND)).toEqual([true])
  })

  check('[G-01] a lease without a holder ends with the process', async ({ storage }, reopen) => {
    await storage.commit({ enqueue: [item('i1')] })
    const lost = await claimOne(storage, { leaseMs: 3_600 * SECOND })
    await storage.sync()
    const again = await reopen()
    expect(await again.commit({ settle: lost })).toBe('conflict')
    expect(await claimedIds(again)).toEqual(['i1'])
    expect(await again.commit({ settle: lost })).toBe('conflict')
  })

  check('[C-04] a lease that was lost before a restart is lost after it', async ({ storage, advance }, reopen) => {
    await storage.commit({ enqueue: [item('i1', { lane: 'x' })] })
    const old = await claimOne(storage, { leaseMs: SECOND, holder: 'worker' })
    await storage.sync()
    await advance(SECOND)
    await claimOne(storage)
    await storage.sync()
    const again = await reopen()
    expect(await again.renew([old], SECOND)).toEqual([false])
    expect(await again.commit({ settle: old })).toBe('conflict')
  })

  check('[C-04] tokens never repeat, also not over restarts', async ({ storage }, reopen) => {
    const tokens: number[] = []
    let current = storage
    for (let round = 0; round < 4; round++) {
      await current.commit({ enqueue: [item(`i${round}`), item(`k${round}`, { queue: 'mail' })] })
      tokens.push(...(await claim(current, { holder: 'worker' })).map(({ token }) => token))
      tokens.push(...(await current.claim('mail', { limit: 9, leaseMs: SECOND })).leases.map(({ token }) => token))
      await current.sync()
      current = await reopen()
    }
    expect(new Set(tokens).size).toBe(tokens.length)
    expect(tokens.length).toBeGreaterThanOrEqual(8)
  })

  check('[F-01] spans go on over a restart', async ({ storage, advance }, reopen) => {
    await storage.commit({
      enqueue: [
        item('settle', { settleMs: 5 * SECOND }),
        item('unclaimed', { unclaimedMs: 5 * SECOND }),
        item('claimed', { unclaimedMs: 5 * SECOND, lane: 'b' }),
        item('steal', { lane: 'worker', fallback: { lane: 'any', afterMs: 5 * SECOND } }),
      ],
    })
    await storage.sync()
    await claim(storage, { lanes: ['b'], leaseMs: SECOND })
    await advance(3 * SECOND)
    await storage.sync()
    const again = await reopen()
    expect(await expired(again)).toEqual([])
    expect(await claimedIds(again, { lanes: ['any'] })).toEqual([])
    await advance(2 * SECOND)
    expect(idsOf(await expired(again)).toSorted()).toEqual(['settle', 'unclaimed'])
    expect(await claimedIds(again, { lanes: ['any', 'b'] })).toEqual(['claimed', 'steal'])
  })

  check('[G-01] closing makes everything durable', async ({ storage }, reopen) => {
    await storage.commit({ put: [putJob('j1', 1)], enqueue: [item('i1')] })
    await storage.close()
    const again = await reopen()
    expect((await again.read('job', 'j1'))?.version).toBe(1)
    expect(await claimedIds(again)).toEqual(['i1'])
  })
}
