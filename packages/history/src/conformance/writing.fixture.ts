import { expect, test } from 'vitest'
import { BufferedHistory } from '../buffered-history.ts'
import { WriteRefusedError } from '../history.ts'
import { HandClock, KEEP, recordingLog } from '../history.fixture.ts'
import { AT, Pen, fresh, namesOf } from './history-under-test.fixture.ts'
import type { Ground } from './history-under-test.fixture.ts'

/** Batches: many, repeated, refused. */
export function checkBatches({ store }: Ground): void {
  test('[G-04] many events at once', async () => {
    const { jobId, owner } = fresh()
    const events = Array.from({ length: 3_000 }, (_, index) => ({
      at: AT + index,
      event: `e${index % 3}`,
      jobId,
      owner,
    }))
    await new Pen(store()).write(...events)
    const found = await store().ofJob(jobId, { limit: 10_000 })
    expect(namesOf(found)).toEqual(namesOf(events))
    const counts = await store().counts({ owner, edges: [AT, AT + 3_000] })
    expect(counts.map(({ count }) => count)).toEqual([1_000, 1_000, 1_000])
  })

  test('[G-04] many writers at once', async () => {
    const { jobId, owner } = fresh()
    const write = async (writer: number): Promise<void> => {
      const pen = new Pen(store())
      for (let batch = 0; batch < 10; batch += 1) {
        await pen.write(
          ...[0, 1, 2].map((part) => ({ at: AT + batch, event: `${writer} ${batch} ${part}`, jobId, owner })),
        )
      }
    }
    await Promise.all(Array.from({ length: 12 }, (_, writer) => write(writer)))
    const found = await store().ofJob(jobId, { limit: 1_000 })
    expect([found.length, new Set(namesOf(found)).size, new Set(found.map(({ id }) => id)).size]).toEqual([
      360, 360, 360,
    ])
  })

  test('[G-04] a batch that is sent twice is there once', async () => {
    const { jobId } = fresh()
    const pen = new Pen(store())
    const events = ['a', 'b'].map((event) => ({ at: AT, event, jobId }))
    await pen.write(...events)
    await pen.again(...events)
    expect(namesOf(await store().ofJob(jobId, { limit: 9 }))).toEqual(['a', 'b'])
    await pen.write({ at: AT, event: 'c', jobId })
    expect(namesOf(await store().ofJob(jobId, { limit: 9 }))).toEqual(['a', 'b', 'c'])
  })

  test('[G-04] a batch that is sent twice at the same time is there once', async () => {
    const { jobId } = fresh()
    const pen = new Pen(store())
    pen.number = 1
    await Promise.all([1, 2, 3, 4, 5].map(() => pen.again({ at: AT, event: 'a', jobId })))
    expect(namesOf(await store().ofJob(jobId, { limit: 9 }))).toEqual(['a'])
  })

  test('[G-04] a repeated batch with events of several days is there once', async () => {
    const { jobId } = fresh()
    const pen = new Pen(store())
    const events = [-1, 0, 1].map((days) => ({ at: AT + days * 86_400_000, event: `day ${days}`, jobId }))
    await pen.write(...events)
    await pen.again(...events)
    expect(namesOf(await store().ofJob(jobId, { limit: 9 }))).toEqual(['day -1', 'day 0', 'day 1'])
  })

  test('[G-04] the numbers of two writers have nothing to do with each other', async () => {
    const { jobId } = fresh()
    const [one, two] = [new Pen(store()), new Pen(store())]
    await one.write({ at: AT, event: 'a', jobId })
    await one.write({ at: AT, event: 'b', jobId })
    await two.write({ at: AT, event: 'c', jobId })
    expect(namesOf(await store().ofJob(jobId, { limit: 9 }))).toEqual(['a', 'b', 'c'])
  })

  test('[G-04] a batch with an event that cannot be is refused as a whole, and the next one passes', async () => {
    const { jobId } = fresh()
    const pen = new Pen(store())
    const bad = { at: Number.NaN, event: 'never', jobId }
    await expect(pen.write({ at: AT, event: 'a', jobId }, bad)).rejects.toThrow(WriteRefusedError)
    expect(await store().ofJob(jobId, { limit: 9 })).toEqual([])
    await pen.write({ at: AT, event: 'b', jobId })
    expect(namesOf(await store().ofJob(jobId, { limit: 9 }))).toEqual(['b'])
  })

  test('[G-04] behind the buffer only the event that cannot be is lost, and whoever reads finds the others', async () => {
    const { jobId } = fresh()
    const log = recordingLog()
    const history = new BufferedHistory({ store: store(), clock: new HandClock(), log, retention: KEEP })
    const at = (index: number): number => (index === 33 ? Number.NaN : AT + index)
    history.append(Array.from({ length: 100 }, (_, index) => ({ at: at(index), event: `e${index}`, jobId })))
    const found = await history.ofJob(jobId, { limit: 200 })
    expect([found.length, found.some(({ event }) => event === 'e33')]).toEqual([99, false])
    expect(history.status).toEqual({ isAway: false, waiting: 0, dropped: 1 })
    expect(log.errors).toMatchObject([{ message: 'history was lost', fields: { events: 1 } }])
  })
}

/** Several processes. */
export function checkInstances({ place }: Ground): void {
  test('[G-04] instances see what others write, in the order in which it happened', async () => {
    const shared = await place()
    const [one, two] = await Promise.all([shared.open(), shared.open()])
    const { jobId } = fresh()
    await new Pen(one).write({ at: AT, event: 'a', jobId }, { at: AT + 2, event: 'c', jobId })
    await new Pen(two).write({ at: AT + 1, event: 'b', jobId })
    for (const store of [one, two]) expect(namesOf(await store.ofJob(jobId, { limit: 9 }))).toEqual(['a', 'b', 'c'])
    await Promise.all([one.close(), two.close()])
  })

  test('[G-04] instances that open an empty place together all write', async () => {
    const shared = await place()
    const stores = await Promise.all(Array.from({ length: 6 }, () => shared.open()))
    const { jobId, owner } = fresh()
    await Promise.all(
      stores.map(async (store, index) => {
        await store.open()
        const pen = new Pen(store)
        for (let batch = 0; batch < 5; batch += 1) await pen.write({ at: AT, event: `${index} ${batch}`, jobId, owner })
      }),
    )
    expect(new Set(namesOf((await stores[0]?.list({ owner, limit: 99 })) ?? [])).size).toBe(30)
    await Promise.all(stores.map((store) => store.close()))
  })
}

/** For histories that outlive their process. */
export function checkRestarts({ place }: Ground): void {
  test('[G-04] what was written is there after a restart, and goes on from there', async () => {
    const kept = await place()
    const { jobId } = fresh()
    const first = await kept.open()
    const pen = new Pen(first)
    const event = { at: AT, event: 'before', jobId, snapshot: { a: 1 }, durationMs: 1.5 }
    await pen.write(event)
    const [before] = await first.ofJob(jobId, { limit: 9 })
    await first.close()
    await first.close()
    const second = await kept.open()
    expect(await second.ofJob(jobId, { limit: 9 })).toEqual([before])
    // A writer that did not receive the reply retries, even after that.
    await second.write({ writer: pen.writer, number: pen.number, events: [event] })
    await new Pen(second).write({ at: AT, event: 'after', jobId })
    const found = await second.ofJob(jobId, { limit: 9 })
    expect(namesOf(found)).toEqual(['before', 'after'])
    expect(found[1]?.id).toBeGreaterThan(found[0]?.id ?? 0)
    await second.close()
  })

  test('[J-22] a close writes everything that was appended before', async () => {
    const kept = await place()
    const { jobId } = fresh()
    const first = await kept.open()
    const history = new BufferedHistory({ store: first, clock: new HandClock(), log: recordingLog(), retention: KEEP })
    for (let index = 0; index < 3_000; index += 1) history.append([{ at: AT + index, event: 'e', jobId }])
    await history.close()
    expect(history.status).toEqual({ isAway: false, waiting: 0, dropped: 0 })
    const second = await kept.open()
    expect(await second.ofJob(jobId, { limit: 9_999 })).toHaveLength(3_000)
    await second.close()
  })

  test('[G-04] after a close nothing is written and nothing is read', async () => {
    const store = await (await place()).open()
    await store.close()
    await expect(new Pen(store).write({ at: AT, event: 'e', jobId: 'j' })).rejects.toThrow('closed')
    await expect(store.ofJob('j', { limit: 1 })).rejects.toThrow('closed')
  })
}
