import { expect, test } from 'vitest'
import { BufferedHistory } from '../buffered-history.ts'
import type { HistoryEvent, HistoryStore, Retention } from '../history.ts'
import { HandClock, recordingLog, until } from '../history.fixture.ts'
import { AT, Pen, fresh, namesOf } from './history-under-test.fixture.ts'
import type { Ground } from './history-under-test.fixture.ts'

const DAY_MS = 86_400_000
const PLENTY = 1e12

/** Calls until nothing is left to do. Returns the results of the calls. */
async function trimAll(store: HistoryStore, retention: Retention, now: number): Promise<readonly number[]> {
  const removed: number[] = []
  for (;;) {
    const count = await store.trim(retention, now)
    if (count === 0) return removed
    removed.push(count)
  }
}

/** About half a kilobyte each. */
function bulk(jobId: string, from: number, count: number): readonly HistoryEvent[] {
  const note = 'x'.repeat(300)
  return Array.from({ length: count }, (_, index) => ({
    at: AT + from + index,
    event: `e${from + index}`,
    jobId,
    note,
  }))
}

/** What is kept, and what is removed. */
export function checkRetention({ place }: Ground): void {
  test('[G-05] events that are too old are not shown at once, and go; what came later stays', async () => {
    const clock = new HandClock()
    const store = await (await place()).open()
    const retention = { ageMs: 10 * DAY_MS, bytesMax: PLENTY }
    const history = new BufferedHistory({ store, clock, log: recordingLog(), retention })
    const { jobId, workerId } = fresh()
    const at = (days: number, event: string): HistoryEvent => ({ at: clock.time - days * DAY_MS, event, jobId })
    const events = [at(30, 'a'), at(12, 'b'), at(10.1, 'c'), at(9.9, 'd'), at(0, 'e')]
    history.append([...events, { at: clock.time - 30 * DAY_MS, event: 'registered', workerId }])
    const edges = [clock.time - 31 * DAY_MS, clock.time + DAY_MS]
    expect(namesOf(await history.ofJob(jobId, { limit: 9 }))).toEqual(['d', 'e'])
    expect(namesOf(await history.ofJob(jobId, { since: 0, limit: 9 }))).toEqual(['d', 'e'])
    expect(namesOf(await history.list({ jobId, limit: 9 }))).toEqual(['e', 'd'])
    expect(await history.ofWorker(workerId, { limit: 9 })).toEqual([])
    expect((await history.counts({ jobId, edges })).map(({ event }) => event)).toEqual(['d', 'e'])
    expect((await trimAll(store, retention, clock.time)).length).toBeGreaterThan(0)
    // Whole days may stay a little longer; they are not shown.
    expect(namesOf(await store.list({ until: clock.time - 11 * DAY_MS, limit: 9 }))).toEqual([])
    expect(namesOf(await history.ofJob(jobId, { limit: 9 }))).toEqual(['d', 'e'])
    await history.close()
  })

  test('[G-05] what is within both bounds stays', async () => {
    const store = await (await place()).open()
    const { jobId } = fresh()
    await new Pen(store).write(...bulk(jobId, 0, 50))
    expect(await trimAll(store, { ageMs: DAY_MS, bytesMax: PLENTY }, AT + 60)).toEqual([])
    expect(await store.ofJob(jobId, { limit: 99 })).toHaveLength(50)
    await store.close()
  })

  test('[G-05] without an age nothing is too old', async () => {
    const store = await (await place()).open()
    const { jobId } = fresh()
    await new Pen(store).write({ at: 0, event: 'e', jobId })
    expect(await trimAll(store, { ageMs: Number.POSITIVE_INFINITY, bytesMax: PLENTY }, AT)).toEqual([])
    expect(await store.ofJob(jobId, { limit: 9 })).toHaveLength(1)
    await store.close()
  })

  test('[G-05] beyond its size the oldest go, as far as needed, and again when more has come', async () => {
    const store = await (await place()).open()
    const { jobId } = fresh()
    const pen = new Pen(store)
    const retention = { ageMs: PLENTY, bytesMax: 1_000_000 }
    const keptOf = async (): Promise<readonly string[]> => namesOf(await store.ofJob(jobId, { limit: 99_999 }))
    await pen.write(...bulk(jobId, 0, 3_000))
    await pen.write(...bulk(jobId, 3_000, 3_000))
    expect((await trimAll(store, retention, AT + 6_000)).length).toBeGreaterThan(0)
    const kept = await keptOf()
    expect(kept.length).toBeGreaterThan(200)
    expect(kept.length).toBeLessThan(3_000)
    expect(kept).toEqual(bulk(jobId, 6_000 - kept.length, kept.length).map(({ event }) => event))
    expect(await trimAll(store, retention, AT + 6_000)).toEqual([])
    await pen.write(...bulk(jobId, 6_000, 3_000))
    await trimAll(store, retention, AT + 9_000)
    const later = await keptOf()
    expect([later.length < 3_000, later.at(-1)]).toEqual([true, 'e8999'])
    await store.close()
  })

  test('[G-05] whole days go when they are too much, and the newest stays', async () => {
    const store = await (await place()).open()
    const { jobId } = fresh()
    const clock = new HandClock()
    const pen = new Pen(store)
    for (let day = 0; day < 5; day += 1) {
      // So that each day has its partition, in backends that have partitions.
      await trimAll(store, { ageMs: PLENTY, bytesMax: PLENTY }, clock.time)
      await pen.write(...bulk(jobId, clock.time - AT, 800))
      clock.time += DAY_MS
    }
    await trimAll(store, { ageMs: PLENTY, bytesMax: 600_000 }, clock.time)
    const kept = await store.ofJob(jobId, { limit: 99_999 })
    expect(kept.length).toBeLessThan(2_000)
    expect(kept.at(-1)?.event).toBe(`e${4 * DAY_MS + 799}`)
    await trimAll(store, { ageMs: 2.5 * DAY_MS, bytesMax: PLENTY }, clock.time + 2 * DAY_MS)
    expect(await store.ofJob(jobId, { since: clock.time - 2 * DAY_MS, limit: 1 })).toEqual([])
    await store.close()
  })

  test('[G-05] instances that remove at the same time remove nothing twice, and nothing that is to stay', async () => {
    const shared = await place()
    const stores = await Promise.all([shared.open(), shared.open(), shared.open()])
    const { jobId } = fresh()
    const [first] = stores
    if (first === undefined) throw new Error('there is none')
    await new Pen(first).write(...bulk(jobId, 0, 3_000))
    const old = { ageMs: 0, bytesMax: PLENTY }
    const now = AT + 2_500
    await Promise.all(stores.map((store) => trimAll(store, old, now)))
    await trimAll(first, old, now)
    expect(namesOf(await first.ofJob(jobId, { since: now, limit: 9_999 }))).toHaveLength(500)
    await Promise.all(stores.map((store) => store.close()))
  })

  test('[G-05] events that come while others are removed are all there', async () => {
    const store = await (await place()).open()
    const { jobId } = fresh()
    const pen = new Pen(store)
    await pen.write(...bulk(jobId, 0, 3_000))
    const retention = { ageMs: 0, bytesMax: PLENTY }
    const trimming = trimAll(store, retention, AT + 3_000)
    for (let batch = 0; batch < 10; batch += 1) await pen.write(...bulk(jobId, 3_000 + batch * 10, 10))
    await trimming
    expect(await store.ofJob(jobId, { since: AT + 3_000, limit: 9_999 })).toHaveLength(100)
    await store.close()
  })

  test('[G-05] old events go also while nothing is written', async () => {
    const clock = new HandClock()
    const store = await (await place()).open()
    const retention = { ageMs: DAY_MS, bytesMax: PLENTY }
    const history = new BufferedHistory({ store, clock, log: recordingLog(), retention })
    await history.start()
    const { jobId } = fresh()
    history.append([{ at: clock.time, event: 'e', jobId }])
    await history.flush()
    expect(await store.ofJob(jobId, { limit: 9 })).toHaveLength(1)
    // Repeatedly: the trimmer may be in the middle of a check, and starts to wait for the next one only after it.
    await until(async () => {
      clock.advance(3 * DAY_MS)
      return (await store.ofJob(jobId, { limit: 9 })).length === 0
    })
    await history.close()
  })
}
