import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { EventListQuery, HistoryEvent } from '../history.ts'
import { AT, Pen, allPages, fresh, namesOf } from './history-under-test.fixture.ts'
import type { Ground } from './history-under-test.fixture.ts'

/** Some events of every kind, of one client. */
function someOf(owner: string, jobId: string, workerId: string): readonly HistoryEvent[] {
  return [
    { at: AT, event: 'job_created', jobId, owner, blueprint: 'film' },
    { at: AT + 1, event: 'task_dispatched', jobId, owner, blueprint: 'film' },
    { at: AT + 2, event: 'task_finished', jobId, owner, blueprint: 'film', workerId },
    { at: AT + 3, event: 'job_created', jobId: `${jobId} b`, owner, blueprint: 'book' },
    { at: AT + 4, event: 'job_finished', jobId: `${jobId} b`, owner, blueprint: 'book' },
  ]
}

/** Lists with filters. */
export function checkLists({ store }: Ground): void {
  test.for<[string, (of: ReturnType<typeof fresh>) => Partial<EventListQuery>, readonly number[]]>([
    ['everything', () => ({}), [4, 3, 2, 1, 0]],
    ['one event', () => ({ events: ['job_created'] }), [3, 0]],
    ['several events', () => ({ events: ['job_created', 'job_finished', 'no_such'] }), [4, 3, 0]],
    ['no event at all', () => ({ events: [] }), []],
    ['a blueprint', () => ({ blueprint: 'film' }), [2, 1, 0]],
    ['a job', ({ jobId }) => ({ jobId: `${jobId} b` }), [4, 3]],
    ['a worker', ({ workerId }) => ({ workerId }), [2]],
    ['from a moment on', () => ({ since: AT + 3 }), [4, 3]],
    ['before a moment', () => ({ until: AT + 2 }), [1, 0]],
    ['a span', () => ({ since: AT + 1, until: AT + 3 }), [2, 1]],
    ['two filters', () => ({ events: ['job_created'], blueprint: 'book' }), [3]],
    ['filters that nothing fits', () => ({ blueprint: 'book', until: AT }), []],
    ['the newest', () => ({ limit: 2 }), [4, 3]],
  ])('[G-04] a list, newest first: %s', async ([, given, expected]) => {
    const of = fresh()
    const events = someOf(of.owner, of.jobId, of.workerId)
    await new Pen(store()).write(...events)
    const found = await store().list({ owner: of.owner, limit: 99, ...given(of) })
    expect(namesOf(found)).toEqual(expected.map((index) => events[index]?.event))
    expect(found.map(({ at }) => at)).toEqual(expected.map((index) => events[index]?.at))
  })

  test('[G-04] [H-05] a client’s list has its own jobs only, and nothing of workers', async () => {
    const [one, two] = [fresh(), fresh()]
    const pen = new Pen(store())
    await pen.write({ at: AT, event: 'registered', workerId: one.workerId })
    await pen.write(...someOf(one.owner, one.jobId, one.workerId))
    await pen.write({ at: AT, event: 'task_finished', jobId: two.jobId, owner: two.owner, workerId: one.workerId })
    const list = await store().list({ owner: two.owner, limit: 99 })
    expect(list).toMatchObject([{ jobId: two.jobId }])
    expect(await store().list({ owner: two.owner, jobId: one.jobId, limit: 99 })).toEqual([])
    const ofWorker = await store().list({ workerId: one.workerId, limit: 99 })
    expect(namesOf(ofWorker).toSorted()).toEqual(['registered', 'task_finished', 'task_finished'])
  })

  test('[G-04] pages of a list have every event once, also those of one moment', async () => {
    const { owner, jobId } = fresh()
    const events = Array.from({ length: 50 }, (_, index) => ({
      at: AT + Math.floor(index / 20),
      event: `e${index}`,
      jobId,
      owner,
    }))
    await new Pen(store()).write(...events)
    for (const limit of [1, 7, 50]) {
      expect(namesOf(await allPages(store(), { owner, limit }))).toEqual(namesOf(events).toReversed())
    }
  })

  test('[C-10] [G-04] a page also ends by its bytes, and says so; nothing is missed', async () => {
    const { owner, jobId, workerId } = fresh()
    const events = Array.from({ length: 12 }, (_, index) => ({
      at: AT + Math.floor(index / 3),
      event: `e${index}`,
      owner,
      note: 'n'.repeat(100),
      snapshot: { text: 'x'.repeat(index % 2 === 0 ? 4_000 : 10) },
    }))
    const pen = new Pen(store())
    await pen.write(...events.map((event) => ({ ...event, jobId })))
    await pen.write(...events.map((event) => ({ ...event, owner: undefined, workerId })))
    for (const bytesMax of [1, 3_000, 9_000, 20_000]) {
      const bounds = { limit: 50, bytesMax }
      expect(namesOf(await allPages(store(), { owner, ...bounds }))).toEqual(namesOf(events).toReversed())
      const page = await store().list({ owner, ...bounds })
      expect(page.length).toBeLessThanOrEqual(2 * Math.ceil(bytesMax / 4_000) + 1)
      expect([page.isCut, page.length < events.length]).toEqual([true, true])
      const ofJob = await store().ofJob(jobId, bounds)
      expect(ofJob.isCut).toBe(true)
      expect(namesOf(ofJob)).toEqual(namesOf(events).slice(0, ofJob.length))
      expect((await store().ofWorker(workerId, bounds)).isCut).toBe(true)
    }
    const all = { limit: 50, bytesMax: 1_000_000 }
    for (const page of [
      await store().list({ owner, ...all }),
      await store().ofJob(jobId, all),
      await store().ofWorker(workerId, all),
      await store().list({ owner, limit: 50 }),
    ]) {
      expect([page.length, page.isCut]).toEqual([12, undefined])
    }
    const few = await store().list({ owner, limit: 3, bytesMax: 1_000_000 })
    expect([few.length, few.isCut]).toEqual([3, undefined])
  })

  test('[G-04] what comes in between two pages neither repeats nor hides anything', async () => {
    const { owner, jobId } = fresh()
    const pen = new Pen(store())
    await pen.write(...['a', 'b', 'c', 'd'].map((event, ms) => ({ at: AT + ms, event, jobId, owner })))
    const first = await store().list({ owner, limit: 2 })
    await pen.write({ at: AT + 9, event: 'new', jobId, owner })
    const last = first.at(-1)
    const second = await store().list({ owner, limit: 9, ...(last && { before: last }) })
    expect([...namesOf(first), ...namesOf(second)]).toEqual(['d', 'c', 'b', 'a'])
  })

  test('[G-04] what any filter finds is what a look at every event finds', async () => {
    const { owner } = fresh()
    const name = fc.constantFrom('a', 'b', 'c')
    const event = fc.record({
      at: fc.integer({ min: AT, max: AT + 20 }),
      event: name,
      jobId: name.map((text) => `${owner} ${text}`),
      blueprint: name,
      workerId: fc.option(name, { nil: undefined }),
    })
    const query = fc.record(
      {
        events: fc.array(name, { maxLength: 3 }),
        blueprint: name,
        workerId: name,
        since: fc.integer({ min: AT, max: AT + 20 }),
        until: fc.integer({ min: AT, max: AT + 20 }),
      },
      { requiredKeys: [] },
    )
    const pen = new Pen(store())
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 30 }), query, fc.uuid(), async (events, given, run) => {
        const mine = events.map((one) => ({ ...one, owner: `${owner} ${run}` }))
        await pen.write(...mine)
        const found = await allPages(store(), { ...given, owner: `${owner} ${run}`, limit: 7 })
        const expected = mine.filter((one) => fits(one, given)).toSorted((a, b) => b.at - a.at)
        expect(found.map(({ at }) => at)).toEqual(expected.map(({ at }) => at))
        expect(namesOf(found).toSorted()).toEqual(namesOf(expected).toSorted())
        const edges = [AT, AT + 7, AT + 8, AT + 15, AT + 21]
        const { since: _, until: __, ...filter } = given
        const counts = await store().counts({ ...filter, owner: `${owner} ${run}`, edges })
        const counted = mine.filter((one) => fits(one, filter))
        for (const [index, from] of edges.slice(0, -1).entries()) {
          const inside = counted.filter(({ at }) => at >= from && at < (edges[index + 1] ?? 0))
          const sum = counts.filter((one) => one.from === from).reduce((all, { count }) => all + count, 0)
          expect(sum).toBe(inside.length)
        }
      }),
      { numRuns: 25 },
    )
  })
}

function fits(event: HistoryEvent, { events, blueprint, workerId, since, until }: Partial<EventListQuery>): boolean {
  return (
    (events === undefined || events.includes(event.event)) &&
    (blueprint === undefined || event.blueprint === blueprint) &&
    (workerId === undefined || event.workerId === workerId) &&
    (since === undefined || event.at >= since) &&
    (until === undefined || event.at < until)
  )
}

/** Counts by name and time. */
export function checkCounts({ store }: Ground): void {
  test('[G-04] counts by event, in the order of their names', async () => {
    const { owner, jobId, workerId } = fresh()
    await new Pen(store()).write(...someOf(owner, jobId, workerId))
    expect(await store().counts({ owner, edges: [AT, AT + 9] })).toEqual([
      { from: AT, event: 'job_created', count: 2 },
      { from: AT, event: 'job_finished', count: 1 },
      { from: AT, event: 'task_dispatched', count: 1 },
      { from: AT, event: 'task_finished', count: 1 },
    ])
  })

  test('[G-04] counts by spans, whose ends belong to the next; empty ones are left out', async () => {
    const { owner, jobId } = fresh()
    const at = (ms: number): HistoryEvent => ({ at: AT + ms, event: 'e', jobId, owner })
    await new Pen(store()).write(...[0, 9, 10, 10, 35, 40, 41].map(at))
    expect(await store().counts({ owner, edges: [AT, AT + 10, AT + 20, AT + 30, AT + 40] })).toEqual([
      { from: AT, event: 'e', count: 2 },
      { from: AT + 10, event: 'e', count: 2 },
      { from: AT + 30, event: 'e', count: 1 },
    ])
  })

  test('[G-04] counts with filters', async () => {
    const { owner, jobId, workerId } = fresh()
    await new Pen(store()).write(...someOf(owner, jobId, workerId))
    const edges = [AT, AT + 9]
    expect(await store().counts({ owner, edges, blueprint: 'book', events: ['job_created'] })).toEqual([
      { from: AT, event: 'job_created', count: 1 },
    ])
    expect(await store().counts({ workerId, edges })).toMatchObject([{ event: 'task_finished', count: 1 }])
    expect(await store().counts({ jobId, edges, events: [] })).toEqual([])
  })

  test('[G-04] a beginning cuts spans off, and leaves their names', async () => {
    const { owner, jobId } = fresh()
    const at = (ms: number): HistoryEvent => ({ at: AT + ms, event: 'e', jobId, owner })
    await new Pen(store()).write(...[1, 5, 11, 15].map(at))
    expect(await store().counts({ owner, edges: [AT, AT + 10, AT + 20], since: AT + 11 })).toEqual([
      { from: AT + 10, event: 'e', count: 2 },
    ])
    expect(await store().counts({ owner, edges: [AT, AT + 10], since: AT + 11 })).toEqual([])
  })

  test('[G-04] a month of hours is counted at once', async () => {
    const { owner, jobId } = fresh()
    const edges = Array.from({ length: 745 }, (_, hour) => AT + hour * 3_600_000)
    await new Pen(store()).write(...[0, 100, 743].map((hour) => ({ at: edges[hour] ?? 0, event: 'e', jobId, owner })))
    const counts = await store().counts({ owner, edges })
    expect(counts.map(({ from }) => from)).toEqual([edges[0], edges[100], edges[743]])
  })
}
