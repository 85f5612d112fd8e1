/* oxlint-disable vitest/no-standalone-expect -- this is the inside of a case that `describeStorage` registers */
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Batch, Item, JobStatus, Lease, LeaseRef, Queue } from '@impresario/core'
import { idsOf, putJob, SECOND } from './fixtures.ts'
import { ReferenceModel } from './reference-model.ts'
import type { StorageUnderTest } from './storage-under-test.ts'

const QUEUES = ['turns', 'tasks'] as const
const LANES = ['a', 'b', 'c'] as const
const IDS = ['i1', 'i2', 'i3', 'i4', 'i5', 'i6'] as const
const JOBS = ['j1', 'j2', 'j3', 'j4'] as const
const OWNERS = ['ann', 'bob'] as const
/** Levels of 1/32 are worth 1.875 seconds of waiting: between whole seconds, and exact in every backend. */
const PRIORITIES = [-1, -1 / 32, 0, 0, 1 / 32, 1 / 16, 1] as const

interface PutCommand {
  readonly id: string
  readonly ahead: number
  readonly owner: string
  readonly status: JobStatus
  readonly expiresMs?: number
}

/** A command for the storage and the model. Leases are identified by how long ago they were obtained. */
type Command =
  | {
      readonly do: 'commit'
      readonly items: readonly Item[]
      readonly puts?: readonly PutCommand[]
      readonly drops?: readonly string[]
      readonly settle?: number
      readonly guard?: number
      /** Items that are due are claimed from their first moment, for so long. */
      readonly bornLeaseMs?: number
    }
  | { readonly do: 'remove'; readonly queue: Queue; readonly id: string }
  | {
      readonly do: 'claim'
      readonly queue: Queue
      readonly lanes?: readonly string[]
      readonly limit: number
      readonly leaseMs: number
    }
  | { readonly do: 'expire'; readonly queue: Queue; readonly limit: number; readonly leaseMs: number }
  | { readonly do: 'renew'; readonly lease: number; readonly leaseMs: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'sync' }

const span = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max }).map((seconds) => seconds * SECOND)
const queue = fc.constantFrom<Queue>(...QUEUES)
const lane = fc.constantFrom<string>(...LANES)
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined, freq: 2 })

const anItem: fc.Arbitrary<Item> = fc
  .record({
    queue,
    id: fc.constantFrom<string>(...IDS),
    lane,
    priority: fc.constantFrom<number>(...PRIORITIES),
    delayMs: fc.oneof(fc.constant(0), span(4)),
    payload: fc.integer({ min: 0, max: 99 }),
    fallback: maybe(fc.record({ lane, afterMs: span(4) })),
    unclaimedMs: maybe(span(6)),
    settleMs: maybe(span(8)),
    runMs: maybe(span(6)),
  })
  .map((fields) => withoutUndefined(fields))

const aPut: fc.Arbitrary<PutCommand> = fc
  .record({
    id: fc.constantFrom<string>(...JOBS),
    ahead: fc.constantFrom(1, 1, 1, 1, 0, 2),
    owner: fc.constantFrom<string>(...OWNERS),
    status: fc.constantFrom<JobStatus>('running', 'failed', 'finished'),
    expiresMs: maybe(span(6)),
  })
  .map((fields) => withoutUndefined(fields))
const somePuts = (max: number): fc.Arbitrary<readonly PutCommand[]> =>
  fc.uniqueArray(aPut, { minLength: 1, maxLength: max, selector: ({ id }) => id })

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 7,
    arbitrary: fc.record({ do: fc.constant('commit' as const), items: fc.array(anItem, { maxLength: 3 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('commit' as const),
      items: fc.array(anItem, { maxLength: 1 }),
      puts: somePuts(2),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('commit' as const),
      items: fc.array(anItem, { minLength: 1, maxLength: 2 }),
      bornLeaseMs: span(5),
    }),
  },
  {
    weight: 2,
    arbitrary: fc
      .record({
        do: fc.constant('commit' as const),
        items: fc.constant([]),
        drops: fc.uniqueArray(fc.constantFrom<string>(...JOBS), { minLength: 1, maxLength: 2 }),
        puts: maybe(somePuts(1)),
      })
      .map((fields) => withoutUndefined(fields)),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('commit' as const),
      items: fc.array(anItem, { maxLength: 1 }),
      puts: somePuts(1),
      guard: fc.nat(3),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('commit' as const),
      items: fc.array(anItem, { maxLength: 1 }),
      settle: fc.nat(5),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('remove' as const), queue, id: fc.constantFrom<string>(...IDS) }),
  },
  {
    weight: 9,
    arbitrary: fc
      .record({
        do: fc.constant('claim' as const),
        queue,
        lanes: maybe(fc.uniqueArray(lane, { minLength: 1 })),
        limit: fc.integer({ min: 1, max: 3 }),
        leaseMs: span(5),
      })
      .map((fields) => withoutUndefined(fields)),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('expire' as const),
      queue,
      limit: fc.integer({ min: 1, max: 2 }),
      leaseMs: span(4),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('renew' as const), lease: fc.nat(5), leaseMs: span(4) }) },
  // Hand-backs have their own weight, because they undo a claim.
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('renew' as const), lease: fc.nat(2), leaseMs: fc.constant(0) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: span(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sync' as const) }) },
)

/** A fixed seed, so that a storage that passed passes again. */
const FIXED = { numRuns: 60, seed: 20_260_101 }
/** A new seed: fast-check accepts any, and a failure reports it. */
const FRESH = { numRuns: 40 }

/**
 * Runs 100 sequences of 40 commands against the model, 40 of them new in every run; `open` returns an empty storage for
 * each.
 */
export async function checkAgainstModel(open: () => Promise<StorageUnderTest>): Promise<void> {
  let claims = 0
  let ends = 0
  const sequences = fc.array(command, { minLength: 40, maxLength: 40, size: 'max' })
  const agrees = fc.asyncProperty(sequences, async (commands) => {
    const it = await open()
    try {
      const run = new Run(it)
      for (const one of commands) await run.apply(one)
      claims += run.claims
      ends += run.ends
    } finally {
      await it.close()
    }
  })
  await fc.assert(agrees, FIXED)
  await fc.assert(agrees, FRESH)
  // A run in which nothing is ever claimed and no record ever expires would also pass, and prove nothing.
  expect(claims).toBeGreaterThan(500)
  expect(ends).toBeGreaterThan(100)
}

class Run {
  claims = 0
  /** Records that existed before a command that wrote none of them, and not after it. */
  ends = 0
  readonly #it: StorageUnderTest
  readonly #model = new ReferenceModel()
  readonly #leases: LeaseRef[] = []
  #births = 0

  constructor(it: StorageUnderTest) {
    this.#it = it
  }

  async apply(one: Command): Promise<void> {
    const before = this.#model.records.length
    if (one.do === 'commit') await this.#commit(one)
    else if (one.do === 'remove') await this.#both({ remove: [{ queue: one.queue, id: one.id }] })
    else if (one.do === 'claim') await this.#claim(one)
    else if (one.do === 'expire') await this.#expire(one)
    else if (one.do === 'renew') await this.#renew(one)
    else if (one.do === 'advance') {
      await this.#it.advance(one.ms)
      this.#model.now += one.ms
    } else await this.#it.storage.sync()
    this.ends += Math.max(0, before - this.#model.records.length)
    await this.#compare()
  }

  async #both(batch: Batch): Promise<void> {
    expect(await this.#it.storage.commit(batch)).toBe(this.#model.commit(batch))
  }

  async #commit(one: Command & { readonly do: 'commit' }): Promise<void> {
    const { items, puts = [], drops = [], settle, guard, bornLeaseMs } = one
    // One item per name: the contract does not define two of the same name in one batch.
    const named = items.filter((a, index) => !items.slice(0, index).some((b) => a.id === b.id && a.queue === b.queue))
    const enqueue = bornLeaseMs === undefined ? named : named.map((item) => this.#born(item, bornLeaseMs))
    const settled = settle === undefined ? undefined : this.#leaseOf(settle)
    const guarding = guard === undefined ? undefined : this.#leaseOf(guard)
    const put = puts.map(({ id, ahead, ...facets }) => {
      const stored = drops.includes(id) ? 0 : (this.#model.read(id)?.version ?? 0)
      return putJob(id, Math.max(1, stored + ahead), facets)
    })
    await this.#both({
      enqueue,
      put,
      drop: drops.map((id) => ({ kind: 'job', id })),
      ...(settled === undefined ? {} : { settle: settled }),
      ...(guarding === undefined ? {} : { guard: guarding }),
    })
    for (const { queue: from, id, claimed } of enqueue) {
      if (claimed !== undefined) this.#leases.push({ queue: from, id, token: claimed.token })
    }
  }

  #born(one: Item, leaseMs: number): Item {
    this.#births += 1
    return { ...one, delayMs: 0, claimed: { token: Number.MAX_SAFE_INTEGER - this.#births, leaseMs } }
  }

  async #claim({ queue: from, lanes, limit, leaseMs }: Command & { readonly do: 'claim' }): Promise<void> {
    const options = { limit, leaseMs, ...(lanes === undefined ? {} : { lanes }) }
    const { leases, nextInMs } = await this.#it.storage.claim(from, options)
    if (lanes === undefined) this.#checkTurns(from, leases, limit)
    else {
      const best = this.#model.claimable(from, lanes).slice(0, limit)
      expect(idsOf(leases)).toEqual(idsOf(best.map((held) => held.item)))
    }
    for (const lease of leases) this.#got(lease, leaseMs, false)
    // With a lease of zero duration the item is claimable again at once.
    const more = this.#model.claimable(from, lanes ?? LANES).length > 0
    if (leaseMs > 0) expect(nextInMs === 0).toBe(more)
  }

  /** The storage chooses which lane comes first; within a lane the order is fixed. */
  #checkTurns(from: Queue, leases: readonly Lease[], limit: number): void {
    const all = this.#model.claimable(from, LANES)
    expect(leases).toHaveLength(Math.min(limit, all.length))
    const taken = new Set<string>()
    for (const { id } of leases) {
      const best = LANES.map((name) =>
        this.#model.claimable(from, [name]).find(({ item: { id: other } }) => !taken.has(other)),
      )
      expect(best.map((held) => held?.item.id)).toContain(id)
      taken.add(id)
    }
  }

  async #expire({ queue: from, limit, leaseMs }: Command & { readonly do: 'expire' }): Promise<void> {
    const { leases } = await this.#it.storage.claimExpired(from, { limit, leaseMs })
    const all = this.#model.expired(from).map(({ item: { id } }) => id)
    if (leaseMs > 0) expect(leases).toHaveLength(Math.min(limit, all.length))
    for (const lease of leases) {
      expect(all).toContain(lease.id)
      this.#got(lease, leaseMs, true)
    }
  }

  async #renew({ lease, leaseMs }: Command & { readonly do: 'renew' }): Promise<void> {
    const ref = this.#leaseOf(lease)
    if (ref === undefined) return
    expect(await this.#it.storage.renew([ref], leaseMs)).toEqual([this.#model.renew(ref, leaseMs)])
  }

  #got(lease: Lease, leaseMs: number, expiry: boolean): void {
    expect(this.#leases.some(({ token }) => token === lease.token)).toBe(false)
    this.#model.claim(lease.queue, { id: lease.id, token: lease.token, leaseMs, expiry })
    const held = this.#model.itemOf(lease.queue, lease.id)
    expect(lease.deliveries).toBe(held?.deliveries)
    // A real clock advances while the storage replies.
    expect(wholeSeconds(lease.expiresInMs)).toBe(held && wholeSeconds(this.#model.expiresInMs(held)))
    this.#leases.push(lease)
    this.claims++
  }

  #leaseOf(ago: number): LeaseRef | undefined {
    return this.#leases.at(-1 - ago)
  }

  /**
   * One comparison of everything at once, because an expectation costs more than the storage call; and one round trip.
   */
  async #compare(): Promise<void> {
    const { storage } = this.#it
    const some = { limit: 2, owner: 'ann', statuses: ['failed', 'finished'] }
    const seen = await Promise.all([
      Promise.all(QUEUES.map((from) => this.#seenOf(from))),
      storage.list('job', { limit: 9 }).then((all) => all.map(({ id, version }) => [id, version])),
      storage.list('job', some).then((all) => all.map(({ id }) => id)),
      Promise.all(JOBS.map(async (id) => (await storage.read('job', id))?.version)),
      storage.counts('job', {}),
      storage.counts('job', { owner: 'ann' }),
    ])
    const records = this.#model.records.toSorted((a, b) => (a.id < b.id ? 1 : -1))
    const ended = records.filter(({ facets }) => facets?.owner === 'ann' && facets.status !== 'running')
    expect(seen).toEqual([
      QUEUES.map((from) => this.#expectedOf(from)),
      records.map(({ id, version }) => [id, version]),
      ended.slice(0, 2).map(({ id }) => id),
      JOBS.map((id) => this.#model.read(id)?.version),
      this.#model.counts('job', undefined),
      this.#model.counts('job', 'ann'),
    ])
  }

  async #seenOf(from: Queue): Promise<unknown> {
    const { storage } = this.#it
    const [views, lanes] = await Promise.all([storage.peek(from, IDS), storage.lanes(from)])
    return [
      views.map((view) => [view?.payload, view?.deliveries, view?.lease?.token]),
      lanes.toSorted((a, b) => (a.lane < b.lane ? -1 : 1)),
    ]
  }

  #expectedOf(from: Queue): unknown {
    const counts = LANES.map((name) => ({ lane: name, ready: this.#model.claimable(from, [name]).length }))
    return [IDS.map((id) => this.#viewOf(from, id)), counts.filter(({ ready }) => ready > 0)]
  }

  #viewOf(from: Queue, id: string): readonly unknown[] {
    const held = this.#model.itemOf(from, id)
    const isHeld = held !== undefined && held.token !== 0 && held.until > this.#model.now
    return [held?.item.payload, held?.deliveries, isHeld ? held.token : undefined]
  }
}

function wholeSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms / SECOND)
}

type Chosen<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  readonly [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** Type boundary that removes optional fields that were not chosen: the types do not allow `undefined` in them. */
function withoutUndefined<T extends object>(value: T): Chosen<T> {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Chosen<T>
}
