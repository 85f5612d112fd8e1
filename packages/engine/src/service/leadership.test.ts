import type { Storage } from '@impresario/core'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Leadership } from './leadership.ts'
import type { LedService, Term } from './leadership.ts'
import { ListLog, VirtualClock, guarded, settled } from '../stage.fixture.ts'

const LEASE_MS = 15_000

/** A service that only notes when it ran, and for which term. */
class Diary implements LedService {
  readonly name = 'diary'
  readonly idleMs = 1_000
  readonly terms: Term[] = []
  isNeeded = true
  rounds = 0
  readonly isWanted = (): boolean => this.isNeeded
  readonly begin = async (term: Term): Promise<void> => {
    this.terms.push(term)
  }
  readonly round = async (): Promise<{ worked: number; nextInMs: undefined }> => {
    this.rounds += 1
    return { worked: 0, nextInMs: undefined }
  }
}

interface Instance {
  readonly diary: Diary
  readonly leadership: Leadership
  readonly log: ListLog
}

function instanceOn(storage: Storage, clock: VirtualClock): Instance {
  const [diary, log] = [new Diary(), new ListLog()]
  return { diary, log, leadership: new Leadership({ storage, clock, log, services: [diary], leaseMs: LEASE_MS }) }
}

function cluster(count: number): { clock: VirtualClock; storage: Storage; instances: Instance[] } {
  const clock = new VirtualClock()
  const storage = testStorage({ now: clock.now })
  return { clock, storage, instances: Array.from({ length: count }, () => instanceOn(storage, clock)) }
}

const leaders = (instances: readonly Instance[]): number[] =>
  instances.flatMap(({ leadership }, index) => (leadership.isLeading('diary') ? [index] : []))

test('[F-05] of three instances one leads, for as long as it lives', async () => {
  const { clock, instances } = cluster(3)
  for (const { leadership } of instances) await leadership.start()
  await settled()
  const first = leaders(instances)
  expect(first).toHaveLength(1)
  for (let seconds = 0; seconds < 120; seconds += 1) {
    await clock.advance(1_000)
    expect(leaders(instances)).toEqual(first)
  }
  expect(instances.filter(({ diary }) => diary.rounds > 0)).toHaveLength(1)
  await Promise.all(instances.map(({ leadership }) => leadership.stop()))
  expect(clock.sleeping).toBe(0)
})

test('[F-05] an instance that stops hands the lead over at once', async () => {
  const { clock, instances } = cluster(2)
  const [one, two] = instances as [Instance, Instance]
  await one.leadership.start()
  await settled()
  await two.leadership.start()
  await settled()
  expect(leaders(instances)).toEqual([0])
  await one.leadership.stop()
  await settled()
  expect(leaders(instances)).toEqual([1])
  const { rounds } = one.diary
  await clock.advance(60_000)
  expect(one.diary.rounds).toBe(rounds)
  await two.leadership.stop()
})

test('[F-05] when the leader dies, another one takes over within the time of one lease', async () => {
  const { clock, storage, instances } = cluster(1)
  let isDead = false
  const dead = guarded(storage, () => (isDead ? new Promise<void>(() => undefined) : undefined))
  const leader = instanceOn(dead, clock)
  const [heir] = instances as [Instance]
  await leader.leadership.start()
  await clock.advance(7_000)
  await heir.leadership.start()
  await clock.advance(1_000)
  expect([leader.leadership.isLeading('diary'), heir.leadership.isLeading('diary')]).toEqual([true, false])
  isDead = true
  await clock.advance(LEASE_MS)
  expect([leader.leadership.isLeading('diary'), heir.leadership.isLeading('diary')]).toEqual([false, true])
  await heir.leadership.stop()
})

test('[F-05] what a leader commits that was paused beyond its time changes nothing', async () => {
  const { clock, storage, instances } = cluster(1)
  let isPaused = false
  const leader = instanceOn(
    guarded(storage, () => (isPaused ? new Promise<void>(() => undefined) : undefined)),
    clock,
  )
  await leader.leadership.start()
  await settled()
  const [term] = leader.diary.terms
  const write = async (value: number): Promise<string> =>
    storage.commit({
      put: [{ kind: 'quota', id: 'c', version: value, value: { period: 'p', used: value } }],
      guard: term!.guard,
    })
  expect(await write(1)).toBe('committed')
  isPaused = true
  const [heir] = instances as [Instance]
  await heir.leadership.start()
  await clock.advance(LEASE_MS)
  expect(heir.leadership.isLeading('diary')).toBe(true)
  // It does not know yet, or does not look: the storage does.
  expect(await write(2)).toBe('conflict')
  expect((await storage.read('quota', 'c'))?.value.used).toBe(1)
  expect(term!.isOver()).toBe(true)
  await heir.leadership.stop()
})

test('[F-05] a lead that the storage does not renew in time is over by the clock, though nobody said so', async () => {
  const { clock, storage } = cluster(0)
  let isSilent = false
  const held = guarded(storage, (verb) =>
    isSilent && verb === 'renew' ? new Promise<void>(() => undefined) : undefined,
  )
  const { leadership, diary, log } = instanceOn(held, clock)
  await leadership.start()
  await clock.advance(1_000)
  isSilent = true
  await clock.advance(LEASE_MS - 1_001)
  const [term] = diary.terms
  expect([diary.terms.length, term?.isOver()]).toEqual([1, false])
  await clock.advance(1)
  expect(term?.isOver()).toBe(true)
  expect(log.lines.filter(({ message }) => message === 'lost the lead')).toHaveLength(1)
  isSilent = false
  // The item was free again, so the same instance has taken it: a new term.
  expect(diary.terms).toHaveLength(2)
  await leadership.stop()
})

test('[F-05] a renewal that fails is tried again as long as the lease lasts', async () => {
  const { clock, storage } = cluster(0)
  let failures = 0
  const shaky = guarded(storage, (verb) => {
    if (verb !== 'renew' || failures >= 3) return
    failures += 1
    throw new Error('The network is down.')
  })
  const { leadership, diary } = instanceOn(shaky, clock)
  await leadership.start()
  await clock.advance(60_000)
  expect([failures, diary.terms.length, leadership.isLeading('diary')]).toEqual([3, 1, true])
  await leadership.stop()
})

test('[F-05] a lead that was taken away ends with the next renewal', async () => {
  const { clock, storage } = cluster(0)
  const { leadership, diary, log } = instanceOn(storage, clock)
  await leadership.start()
  await settled()
  // As another instance would that has found no item in the same moment.
  await storage.commit({
    enqueue: [{ queue: 'leaders', id: 'diary', lane: 'diary', priority: 0, delayMs: 0, payload: null }],
  })
  const lease = await storage.claim('leaders', { lanes: ['diary'], limit: 1, leaseMs: LEASE_MS })
  expect(lease.leases).toHaveLength(1)
  await clock.advance(LEASE_MS / 3)
  expect(leadership.isLeading('diary')).toBe(false)
  expect(log.lines.map(({ fields }) => fields?.['reason'])).toContain('it was not renewed')
  await clock.advance(LEASE_MS)
  expect([leadership.isLeading('diary'), diary.terms.length]).toEqual([true, 2])
  await leadership.stop()
})

test('[F-05] who has nothing to lead leaves the lead to others', async () => {
  const { clock, instances } = cluster(2)
  const [one, two] = instances as [Instance, Instance]
  one.diary.isNeeded = false
  for (const { leadership } of instances) await leadership.start()
  await settled()
  expect(leaders(instances)).toEqual([1])
  one.diary.isNeeded = true
  two.diary.isNeeded = false
  two.leadership.wake('diary')
  await clock.advance(LEASE_MS / 3)
  expect(leaders(instances)).toEqual([0])
  await Promise.all(instances.map(({ leadership }) => leadership.stop()))
})

test('[F-05] alone it leads at once, and asks the storage once in a third of a lease', async () => {
  const { clock, storage } = cluster(0)
  const verbs: string[] = []
  const { leadership } = instanceOn(
    guarded(storage, (verb) => {
      verbs.push(verb)
    }),
    clock,
  )
  await leadership.start()
  await settled()
  expect(leadership.isLeading('diary')).toBe(true)
  verbs.length = 0
  await clock.advance(60_000)
  expect(verbs).toEqual(Array.from({ length: 12 }, () => 'renew'))
  await leadership.stop()
})

test('[F-05] a round that goes on when the lead is lost is waited for when everything stops', async () => {
  const { clock, storage } = cluster(0)
  const { leadership, diary } = instanceOn(storage, clock)
  await leadership.start()
  await settled()
  await leadership.stop()
  await leadership.stop()
  expect(clock.sleeping).toBe(0)
  await leadership.start()
  await settled()
  expect(diary.terms).toHaveLength(2)
  await leadership.stop()
})

test('[F-05] a lead that cannot be handed back ends by itself', async () => {
  const { clock, storage, instances } = cluster(1)
  let isBroken = false
  const { leadership, log } = instanceOn(
    guarded(storage, (verb) => {
      if (isBroken && verb === 'renew') throw new Error('The disk is gone.')
    }),
    clock,
  )
  await leadership.start()
  await settled()
  isBroken = true
  await leadership.stop()
  expect(log.lines.map(({ message }) => message)).toContain('a lead could not be handed back and ends by itself')
  const [heir] = instances as [Instance]
  await heir.leadership.start()
  await clock.advance(LEASE_MS)
  expect(leaders(instances)).toEqual([0])
  await heir.leadership.stop()
})
