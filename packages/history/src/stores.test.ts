import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { HandClock, KEEP, anEvent, recordingLog } from './history.fixture.ts'
import { openHistory } from './open.ts'
import { SqliteHistory } from './sqlite-history.ts'

const directory = mkdtempSync(join(tmpdir(), 'impresario-history-'))
afterAll(() => rmSync(directory, { recursive: true }))

function open(uri: string, retention = KEEP) {
  const clock = new HandClock()
  const log = recordingLog()
  return { clock, log, history: openHistory(uri, { clock, log, retention }) }
}

describe.each([
  { name: 'memory', uri: () => 'memory:' },
  { name: 'sqlite', uri: () => `sqlite:${join(directory, `${Math.random()}.db`)}` },
])('$name', ({ uri }) => {
  test('[G-04] the events of a job come back as they were, oldest first', async () => {
    const { history } = open(uri())
    const full = anEvent({
      at: 1_700_000_000_123,
      event: 'task_finished',
      workerId: 'w',
      owner: 'acme',
      state: 'cut',
      previousState: 'shoot',
      nextState: 'done',
      taskId: 't',
      attempt: 2,
      durationMs: 12.5,
      note: 'with "quotes" and Ω',
      snapshot: { status: 'running', list: [1, null] },
    })
    history.append([anEvent({ event: 'first' }), full, anEvent({ jobId: 'job-2' })])
    const found = await history.ofJob('job-1', { limit: 10 })
    expect(found.map(({ event }) => event)).toEqual(['first', 'task_finished'])
    expect(found[1]).toMatchObject(full)
    expect(await history.ofJob('job-1', { limit: 1 })).toHaveLength(1)
    expect(await history.ofJob('job-1', { limit: 9, since: 1_700_000_000_123 })).toHaveLength(1)
    expect(await history.ofJob('job-1', { limit: 9, since: 1_700_000_000_124 })).toHaveLength(0)
    expect(await history.ofJob("job-1' OR 1=1", { limit: 10 })).toEqual([])
    await history.close()
  })

  test('[G-04] the events of a job are ordered by their time, and those of one moment as they came', async () => {
    const { history } = open(uri())
    const at = (event: string, ms: number) => anEvent({ event, at: 1_700_000_000_000 + ms })
    history.append([at('c', 7), at('a', 5), at('d', 7), at('b', 6)])
    const found = await history.ofJob('job-1', { limit: 10 })
    expect(found.map(({ event }) => event)).toEqual(['a', 'b', 'c', 'd'])
    await history.close()
  })

  test('[G-04] a worker’s own events, newest first and in pages; its tasks are not among them', async () => {
    const { history, clock } = open(uri())
    const own = ['registered', 'status_update', 'removed'].map((event) => ({ at: clock.time, event, workerId: 'w' }))
    history.append([...own, anEvent({ workerId: 'w' }), { at: clock.time, event: 'registered', workerId: 'other' }])
    const [newest, ...older] = await history.ofWorker('w', { limit: 2 })
    expect([newest?.event, ...older.map(({ event }) => event)]).toEqual(['removed', 'status_update'])
    const rest = await history.ofWorker('w', { limit: 2, before: older.at(-1)?.id ?? 0 })
    expect(rest.map(({ event }) => event)).toEqual(['registered'])
    await history.close()
  })

  test('[G-05] events that are too old go, and what came later stays', async () => {
    const { history, clock } = open(uri(), { ageMs: 1_000, bytesMax: 1_000_000_000 })
    history.append([anEvent({ at: clock.time - 5_000, event: 'old' }), anEvent({ at: clock.time, event: 'new' })])
    const found = await history.ofJob('job-1', { limit: 10 })
    expect(found.map(({ event }) => event)).toEqual(['new'])
    await history.close()
  })

  test('[G-05] beyond its size the oldest go first', async () => {
    const { history, clock } = open(uri(), { ageMs: 86_400_000, bytesMax: 400_000 })
    history.append(Array.from({ length: 9_000 }, (_, at) => anEvent({ event: `e${at}`, note: 'x'.repeat(100) })))
    await history.flush()
    clock.time += 60_000
    history.append([anEvent({ event: 'last' })])
    const found = await history.ofJob('job-1', { limit: 10_000 })
    expect(found.length).toBeLessThan(9_000)
    expect(found.at(-1)?.event).toBe('last')
    await history.close()
  })
})

test('[G-04] [H-08] a file of history is its owner’s alone, and found again after a restart', async () => {
  const uri = `sqlite:${join(directory, 'deep', 'again.db')}`
  const first = open(uri).history
  // Nobody else may read it.
  expect(statSync(join(directory, 'deep')).mode & 0o777).toBe(0o700)
  expect(statSync(join(directory, 'deep', 'again.db')).mode & 0o777).toBe(0o600)
  first.append([anEvent({ event: 'before' })])
  await first.close()
  const second = open(uri).history
  second.append([anEvent({ event: 'after' })])
  expect((await second.ofJob('job-1', { limit: 10 })).map(({ event }) => event)).toEqual(['before', 'after'])
  await second.close()
})

test('[G-04] a write that the database refuses rejects, and the next one passes', async () => {
  const store = new SqliteHistory(join(directory, 'strict.db'))
  const bad = anEvent({ at: Number.NaN })
  await expect(store.write([anEvent(), bad])).rejects.toThrow('NOT NULL')
  expect(await store.ofJob('job-1', { limit: 10 })).toEqual([])
  await store.write([anEvent()])
  expect(await store.ofJob('job-1', { limit: 10 })).toHaveLength(1)
  await store.close()
  await expect(store.write([anEvent()])).rejects.toThrow('has ended')
})

test('[G-04] an address that is no history is refused with the way to write it', () => {
  expect(() => open('mongodb://x')).toThrow('sqlite:./impresario-data/history.db')
  expect(() => open('sqlite:')).toThrow('HISTORY_DATABASE_URI')
})
