import type { Json } from '@impresario/protocol'
import { expect, test } from 'vitest'
import type { HistoryEvent, StoredEvent } from '../history.ts'
import { AT, Pen, fresh, namesOf } from './history-under-test.fixture.ts'
import type { Ground } from './history-under-test.fixture.ts'

/** The events of a job. */
export function checkJobs({ store }: Ground): void {
  test('[G-04] an event of a job comes back as it was, with every field', async () => {
    const { jobId, workerId, owner } = fresh()
    const full: HistoryEvent = {
      at: AT + 123,
      event: 'task_finished',
      jobId,
      workerId,
      owner,
      blueprint: 'film',
      state: 'cut',
      previousState: 'shoot',
      nextState: 'done',
      taskId: `${jobId}.1.0`,
      attempt: 2,
      durationMs: 12.5,
      note: 'cut success',
      snapshot: { status: 'running', list: [1, null, 'x'], deep: { is: true } },
    }
    await new Pen(store()).write(full)
    const [found, ...more] = await store().ofJob(jobId, { limit: 10 })
    expect(found).toEqual({ ...full, id: found?.id })
    expect([typeof found?.id, more]).toEqual(['number', []])
  })

  test('[G-04] an event may have nothing but its time, its name and its job', async () => {
    const { jobId } = fresh()
    await new Pen(store()).write({ at: AT, event: 'job_created', jobId })
    const [found] = await store().ofJob(jobId, { limit: 10 })
    expect(found).toMatchObject({ at: AT, event: 'job_created', jobId })
    const { id: _, ...rest } = found ?? { id: 0 }
    expect(Object.values(rest).filter((value) => value !== undefined)).toHaveLength(3)
  })

  test('[G-04] a job’s events come oldest first, and those of one moment as they were written', async () => {
    const { jobId } = fresh()
    const at = (event: string, ms: number): HistoryEvent => ({ event, at: AT + ms, jobId })
    await new Pen(store()).write(at('c', 7), at('a', 5), at('d', 7), at('b', 6))
    expect(namesOf(await store().ofJob(jobId, { limit: 10 }))).toEqual(['a', 'b', 'c', 'd'])
  })

  test('[G-04] what is written later and happened earlier comes first', async () => {
    const { jobId } = fresh()
    const pen = new Pen(store())
    await pen.write({ at: AT + 9, event: 'b', jobId })
    await pen.write({ at: AT + 8, event: 'a', jobId }, { at: AT + 9, event: 'c', jobId })
    expect(namesOf(await store().ofJob(jobId, { limit: 10 }))).toEqual(['a', 'b', 'c'])
  })

  test('[G-04] a limit takes the oldest', async () => {
    const { jobId } = fresh()
    await new Pen(store()).write(...['a', 'b', 'c'].map((event, ms) => ({ at: AT + ms, event, jobId })))
    expect(namesOf(await store().ofJob(jobId, { limit: 2 }))).toEqual(['a', 'b'])
  })

  test('[G-04] a beginning belongs to what is asked for', async () => {
    const { jobId } = fresh()
    await new Pen(store()).write(...['a', 'b', 'c'].map((event, ms) => ({ at: AT + ms, event, jobId })))
    expect(namesOf(await store().ofJob(jobId, { since: AT + 1, limit: 9 }))).toEqual(['b', 'c'])
    expect(namesOf(await store().ofJob(jobId, { since: AT + 3, limit: 9 }))).toEqual([])
  })

  test('[G-04] going on from the last moment reads everything, in pieces', async () => {
    const { jobId } = fresh()
    const events = Array.from({ length: 25 }, (_, index) => ({ at: AT + (index >> 2), event: `e${index}`, jobId }))
    await new Pen(store()).write(...events)
    const read = new Map<number, StoredEvent>()
    let since = 0
    for (;;) {
      const page = await store().ofJob(jobId, { since, limit: 7 })
      for (const event of page) read.set(event.id, event)
      if (page.length < 7) break
      since = page.at(-1)?.at ?? 0
    }
    expect(namesOf([...read.values()])).toEqual(namesOf(events))
  })

  test('[G-04] [H-05] only the events of that very job', async () => {
    const { jobId } = fresh()
    await new Pen(store()).write({ at: AT, event: 'mine', jobId }, { at: AT, event: 'other', jobId: `${jobId}x` })
    expect(namesOf(await store().ofJob(jobId, { limit: 9 }))).toEqual(['mine'])
    for (const name of [`${jobId}%`, jobId.toUpperCase(), `${jobId}' OR 1=1 --`, '', '%', '_']) {
      expect(await store().ofJob(name, { limit: 9 })).toEqual([])
    }
  })

  test('[G-04] ids grow from event to event of a writer and are never the same', async () => {
    const { jobId } = fresh()
    const pen = new Pen(store())
    await pen.write({ at: AT, event: 'a', jobId }, { at: AT, event: 'b', jobId })
    await pen.write({ at: AT, event: 'c', jobId })
    const ids = (await store().ofJob(jobId, { limit: 9 })).map(({ id }) => id)
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b))
  })
}

/** The events of a worker. */
export function checkWorkers({ store }: Ground): void {
  test('[G-04] a worker’s own events come newest first; its tasks are not among them', async () => {
    const { jobId, workerId } = fresh()
    const own = ['registered', 'status_update', 'removed'].map((event, ms) => ({ at: AT + ms, event, workerId }))
    await new Pen(store()).write(...own, { at: AT, event: 'task_finished', jobId, workerId })
    expect(namesOf(await store().ofWorker(workerId, { limit: 9 }))).toEqual(['removed', 'status_update', 'registered'])
  })

  test('[G-04] a worker’s events come in pages, each once, also those of one moment', async () => {
    const { workerId } = fresh()
    const events = Array.from({ length: 11 }, (_, index) => ({ at: AT + (index >> 2), event: `e${index}`, workerId }))
    await new Pen(store()).write(...events)
    const read: StoredEvent[] = []
    for (;;) {
      const last = read.at(-1)
      const page = await store().ofWorker(workerId, { limit: 3, ...(last && { before: last }) })
      if (page.length === 0) break
      read.push(...page)
    }
    expect(namesOf(read)).toEqual(namesOf(events).toReversed())
  })

  test('[G-04] a worker’s events from a moment on', async () => {
    const { workerId } = fresh()
    await new Pen(store()).write(...['a', 'b', 'c'].map((event, ms) => ({ at: AT + ms, event, workerId })))
    expect(namesOf(await store().ofWorker(workerId, { since: AT + 1, limit: 9 }))).toEqual(['c', 'b'])
  })

  test('[G-04] what a worker looked like then comes back with the event', async () => {
    const { workerId } = fresh()
    const snapshot = { status: 'idle', skills: ['echo'], resources: { gpu: null } }
    await new Pen(store()).write({ at: AT, event: 'registered', workerId, note: 'status, skills', snapshot })
    const [found] = await store().ofWorker(workerId, { limit: 1 })
    expect(found).toMatchObject({ snapshot, note: 'status, skills' })
    expect(found?.jobId).toBeUndefined()
  })

  test('[G-04] an unknown worker has no events', async () => {
    expect(await store().ofWorker(fresh().workerId, { limit: 9 })).toEqual([])
  })
}

const ODD = [
  'with "double", \'single\' and `back` quotes',
  "'); DROP TABLE history; --",
  'two\nlines\tand a tab\r\n',
  'Ω ≈ ç √ ∫ 日本語 עברית العربية',
  '👩‍👩‍👧‍👦 🏳️‍🌈 𝔘𝔫𝔦',
  String.raw`100 % _ \ \u0000 \ud800 {"a":1} [x]`,
  '\u001B[31mred\u001B[0m \u200E\u202E\u2028\uFEFF',
  ' a text with blanks around it ',
]

/** The content of an event. */
export function checkValues({ store }: Ground): void {
  test.for(ODD)('[G-04] odd characters come back as they were: %j', async (text) => {
    const { jobId } = fresh()
    const id = `${jobId} ${text}`
    const event = { at: AT, event: text, jobId: id, state: text, note: text, owner: text, blueprint: text }
    await new Pen(store()).write({ ...event, snapshot: { [text]: [text] } })
    const found = await store().ofJob(id, { limit: 9 })
    expect(found).toMatchObject([{ ...event, snapshot: { [text]: [text] } }])
    expect(await store().list({ owner: text, blueprint: text, events: [text], jobId: id, limit: 9 })).toEqual(found)
  })

  test('[G-04] characters that a database cannot hold cost themselves, and no event', async () => {
    const { jobId } = fresh()
    const odd = 'a\0b\uD800c\uDC00'
    const event = { at: AT, event: 'odd', jobId, note: odd, snapshot: { [odd]: odd } }
    await new Pen(store()).write(event, { at: AT, event: 'plain', jobId })
    const [found, next] = await store().ofJob(jobId, { limit: 9 })
    expect(found?.note).toMatch(/^a.b.c.$/su)
    expect(JSON.stringify(found?.snapshot).replaceAll(/\\u\w{4}/g, '?')).toMatch(/^\{"a.b.c.":"a.b.c."\}$/u)
    expect(next?.event).toBe('plain')
  })

  test('[G-04] durations keep their fractions, and zero is one', async () => {
    const { jobId } = fresh()
    const durations = [0, 0.125, 12.5, 86_400_000, 1e12]
    await new Pen(store()).write(...durations.map((durationMs) => ({ at: AT, event: 'e', jobId, durationMs })))
    const found = await store().ofJob(jobId, { limit: 9 })
    expect(found.map(({ durationMs }) => durationMs)).toEqual(durations)
  })

  test('[G-04] moments are kept to the millisecond', async () => {
    const { jobId } = fresh()
    const moments = [0, 1, 999, AT, AT + 1, AT + 333, AT + 999, Date.UTC(2199, 11, 31, 23, 59, 59, 999)]
    await new Pen(store()).write(...moments.map((at) => ({ at, event: 'e', jobId })))
    expect((await store().ofJob(jobId, { limit: 9 })).map(({ at }) => at)).toEqual(moments)
  })

  test.for<{ readonly name: string; readonly value: Json }>([
    { name: 'empty', value: {} },
    { name: 'a list', value: [] },
    { name: 'numbers', value: { n: [0, -1.5, 1e300, 5e-324, 9_007_199_254_740_991] } },
    { name: 'deep', value: { a: { b: { c: { d: [[[{ e: null }]]] } } } } },
    { name: 'names of the language', value: { constructor: 1, toString: 'x', length: 0 } },
    { name: 'a plain text', value: 'text' },
    { name: 'false', value: false },
  ])('[G-04] a snapshot comes back as it was: $name', async ({ value }) => {
    const { jobId } = fresh()
    await new Pen(store()).write({ at: AT, event: 'e', jobId, snapshot: value })
    expect((await store().ofJob(jobId, { limit: 1 }))[0]?.snapshot).toEqual(value)
  })

  test('[G-04] long texts are kept whole', async () => {
    const { jobId } = fresh()
    const long = 'a long text ü '.repeat(20_000)
    await new Pen(store()).write({ at: AT, event: 'e', jobId, note: long, snapshot: { long } })
    expect(await store().ofJob(jobId, { limit: 1 })).toMatchObject([{ note: long, snapshot: { long } }])
  })
}
