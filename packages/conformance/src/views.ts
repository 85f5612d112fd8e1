import type { Claimed } from '@impresario/core'
import { expect } from 'vitest'
import { claim, claimedIds, claimOne, item, only, SECOND } from './fixtures.ts'
import type { Check } from './storage-under-test.ts'

export function checkClock(check: Check): void {
  check(
    '[F-05] [H-04] the clock shows the time that items and leases are measured by',
    async ({ storage, advance }) => {
      const before = await storage.now()
      await storage.commit({ enqueue: [item('i1', { delayMs: 60 * SECOND })] })
      const after = await storage.now()
      await advance(2 * SECOND)
      const earliest = await storage.now()
      const left = only(await storage.peek('turns', ['i1']))?.dueInMs ?? 0
      const latest = await storage.now()
      expect(earliest - after).toBeGreaterThanOrEqual(2 * SECOND)
      // The item is due 60 s after its commit, which was between `before` and `after`.
      expect(left).toBeGreaterThanOrEqual(before + 60 * SECOND - latest)
      expect(left).toBeLessThanOrEqual(after + 60 * SECOND - earliest)
    },
  )

  check('[F-05] the clock is that of the calendar', async ({ storage }) => {
    expect(await storage.now()).toBeGreaterThan(Date.UTC(2020, 0))
  })
}

export function checkPeek(check: Check): void {
  check('[G-01] a look at items answers in the order asked for', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1'), item('i2', { lane: 'b', priority: 2, payload: [1] })] })
    const [second, none, first] = await storage.peek('turns', ['i2', 'nobody', 'i1'])
    expect(second).toEqual({
      queue: 'turns',
      id: 'i2',
      lane: 'b',
      priority: 2,
      payload: [1],
      deliveries: 0,
      dueInMs: 0,
      lease: undefined,
    })
    expect(none).toBeUndefined()
    expect(first?.id).toBe('i1')
    expect(await storage.peek('mail', ['i1'])).toEqual([undefined])
  })

  check('[G-01] a look shows how long an item has to wait', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1', { delayMs: 5 * SECOND })] })
    await advance(2 * SECOND)
    const [view] = await storage.peek('turns', ['i1'])
    expect(view?.dueInMs).toBeGreaterThan(0)
    expect(view?.dueInMs).toBeLessThanOrEqual(3 * SECOND)
    await advance(3 * SECOND)
    expect(only(await storage.peek('turns', ['i1']))?.dueInMs).toBe(0)
  })

  check('[D-05] a look shows who holds an item and for how long', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const { token } = await claimOne(storage, { leaseMs: 5 * SECOND, holder: 'worker' })
    await advance(2 * SECOND)
    const view = only(await storage.peek('turns', ['i1']))
    expect(view).toMatchObject({ deliveries: 1, lease: { token, holder: 'worker' } })
    expect(view?.lease?.endsInMs).toBeGreaterThan(0)
    expect(view?.lease?.endsInMs).toBeLessThanOrEqual(3 * SECOND)
  })

  check('[D-05] a lease that ended or was handed back is no longer shown', async ({ storage, advance }) => {
    await storage.commit({ enqueue: [item('i1'), item('i2')] })
    const [first] = await claim(storage, { leaseMs: 5 * SECOND })
    if (first !== undefined) await storage.renew([first], 0)
    const leases = async (): Promise<unknown> =>
      (await storage.peek('turns', ['i1', 'i2'])).map((view) => view?.lease !== undefined)
    expect(await leases()).toEqual([false, true])
    await advance(5 * SECOND)
    expect(await leases()).toEqual([false, false])
  })

  check('[D-05] those in named hands are told, and only they', async ({ storage, advance }) => {
    const ids = Array.from({ length: 300 }, (_, index) => `i${String(index).padStart(3, '0')}`)
    await storage.commit({ enqueue: ids.map((id) => item(id, { queue: 'tasks' })) })
    await storage.commit({ enqueue: [item('other')] })
    expect(await storage.held('tasks')).toEqual([])
    const take = (limit: number, leaseMs: number, holder?: string): ReturnType<typeof storage.claim> =>
      storage.claim('tasks', { limit, leaseMs, ...(holder === undefined ? {} : { holder }) })
    const long = await take(250, 60 * SECOND, 'worker')
    const short = await take(10, 2 * SECOND, 'worker')
    await take(10, 60 * SECOND)
    await claimOne(storage, { holder: 'worker' })
    const namesOf = (...claims: readonly Claimed[]): readonly string[] =>
      claims.flatMap(({ leases }) => leases.map(({ id }) => id)).toSorted()
    expect((await storage.held('tasks')).toSorted()).toEqual(namesOf(long, short))
    expect(await storage.held('turns')).toEqual(['other'])
    await advance(2 * SECOND)
    expect((await storage.held('tasks')).toSorted()).toEqual(namesOf(long))
    await storage.renew(long.leases, 0)
    expect(await storage.held('tasks')).toEqual([])
  })

  check('[G-01] looking claims nothing', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    await storage.peek('turns', ['i1'])
    expect(await claimOne(storage)).toMatchObject({ deliveries: 1 })
  })
}

export function checkHints(check: Check): void {
  check('[G-01] a watcher hears the lane of what became claimable, in its own queue', async ({ storage }) => {
    const heard: string[] = []
    const stop = storage.watch('turns', (lane) => heard.push(lane))
    await storage.commit({ enqueue: [item('i1', { lane: 'x' }), item('i2', { lane: 'y' })] })
    await storage.commit({ enqueue: [item('i3', { queue: 'mail', lane: 'z' })] })
    await storage.sync()
    expect(new Set(heard)).toEqual(new Set(['x', 'y']))
    stop()
  })

  check('[G-01] a watcher hears of an item that is handed back', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1', { lane: 'x' })] })
    const lease = await claimOne(storage)
    const heard: string[] = []
    const stop = storage.watch('turns', (lane) => heard.push(lane))
    await storage.renew([lease], 0)
    await storage.sync()
    expect(heard).toContain('x')
    stop()
  })

  check('[G-01] a watcher that stopped hears nothing more, the others do', async ({ storage }) => {
    const heard: string[] = []
    const listener = (lane: string): void => {
      heard.push(lane)
    }
    const stop = storage.watch('turns', listener)
    const stopOther = storage.watch('turns', listener)
    stop()
    stop()
    await storage.commit({ enqueue: [item('i1', { lane: 'x' })] })
    await storage.sync()
    expect(heard).toEqual(['x'])
    stopOther()
  })

  check('[G-01] a batch that conflicts wakes nobody', async ({ storage }) => {
    const heard: string[] = []
    const stop = storage.watch('turns', (lane) => heard.push(lane))
    await storage.commit({ settle: { queue: 'turns', id: 'nobody', token: 7 }, enqueue: [item('i1')] })
    await storage.sync()
    expect(heard).toEqual([])
    stop()
  })

  check('[G-01] a watcher that claims at once finds the whole batch', async ({ storage }) => {
    const claims: Promise<readonly string[]>[] = []
    const stop = storage.watch('turns', () => claims.push(claimedIds(storage)))
    await storage.commit({ enqueue: [item('i1'), item('i2')] })
    await storage.sync()
    expect((await Promise.all(claims)).flat().toSorted()).toEqual(['i1', 'i2'])
    stop()
  })
}

export function checkConcurrency(check: Check): void {
  check('[G-01] 32 claimers get each of 500 items once', async ({ storage }) => {
    const ids = Array.from({ length: 500 }, (_, index) => `i${index}`)
    await storage.commit({ enqueue: ids.map((id, index) => item(id, { lane: `lane${index % 7}` })) })
    const got: string[] = []
    const work = async (number: number): Promise<void> => {
      const lanes = number % 2 === 0 ? undefined : Array.from({ length: 7 }, (_, lane) => `lane${lane}`)
      for (;;) {
        const leases = await claim(storage, { limit: 1 + (number % 3), ...(lanes === undefined ? {} : { lanes }) })
        if (leases.length === 0) return
        for (const lease of leases) {
          got.push(lease.id)
          if (lease.deliveries !== 1) throw new Error(`${lease.id} was claimed twice`)
          if ((await storage.commit({ settle: lease })) !== 'committed') throw new Error(`${lease.id} was lost`)
        }
      }
    }
    await Promise.all(Array.from({ length: 32 }, (_, number) => work(number)))
    expect(got.toSorted()).toEqual(ids.toSorted())
  })

  check('[C-04] of twenty endings of one claim one counts', async ({ storage }) => {
    await storage.commit({ enqueue: [item('i1')] })
    const lease = await claimOne(storage)
    const endings = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => storage.commit({ settle: lease, enqueue: [item(`end${index}`)] })),
    )
    expect(endings.filter((outcome) => outcome === 'committed')).toHaveLength(1)
    expect(await claimedIds(storage)).toHaveLength(1)
  })
}
