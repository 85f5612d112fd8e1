import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blueprint } from '@impresario/core'
import type { Clock, Log } from '@impresario/core'
import { openHistory } from '@impresario/history'
import { LIMITS } from '@impresario/protocol'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { createClock } from '../runtime/clock.ts'
import { SILENT } from '../runtime/log.ts'
import { echo, startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import type { ServerOptions } from '../server.ts'
import { SOME_NUMBER, containing, listIn, startTenantServer } from '../tenants.fixture.ts'

const directory = mkdtempSync(join(tmpdir(), 'impresario-server-history-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

let places = 0
function freshPath(): string {
  places += 1
  return join(directory, `place-${places}`)
}

/** Writes more than fits into a snapshot on its way. */
const wordy = blueprint('wordy', { start: 'small' }, (state) => ({
  small: state.handler((_context, actions) => actions.transitionTo('large', { few: 'words' })),
  large: state.handler((_context, actions) =>
    actions.transitionTo('done', { many: 'x'.repeat(LIMITS.historySnapshotBytes) }),
  ),
  done: state.end({ result: () => 1 }),
}))

async function started(settings: ServerOptions['settings'], more: ServerOptions = {}): Promise<TestServer> {
  const app = await startTestServer({ blueprints: [echo, wordy], ...more, ...(settings && { settings }) })
  onTestFinished(() => app.server.stop())
  return app
}

type Entry = Readonly<Record<string, unknown>>

async function historyOf(app: TestServer, jobId: string, query = ''): Promise<readonly Entry[]> {
  const answer = await app.client('GET', `/api/v1/jobs/${jobId}/history${query}`)
  expect(answer.status).toBe(200)
  return listIn(answer)
}

const namesOf = (entries: readonly Entry[]): readonly unknown[] => entries.map((entry) => entry['event_type'])

async function runEcho(app: TestServer): Promise<string> {
  const jobId = await app.createJob('echo')
  const { body } = await app.poll('w1')
  await app.worker('POST', '/_worker/tasks/result', { job_id: jobId, task_id: body.task_id, worker_id: 'w1' })
  await app.ended(jobId)
  return jobId
}

/** A task whose job is cancelled before its result comes. */
async function runLate(app: TestServer): Promise<string> {
  const jobId = await app.createJob('echo')
  const { body } = await app.poll('w1')
  await app.client('POST', `/api/v1/jobs/${jobId}/cancel`, {})
  const late = { job_id: jobId, task_id: body.task_id, worker_id: 'w1' }
  expect((await app.worker('POST', '/_worker/tasks/result', late)).body).toMatchObject({ status: 'ignored' })
  return jobId
}

test('[C-04] [G-04] without a database for it, the note of a late result stands behind the moments of the job', async () => {
  const app = await started({ timeZone: 'Asia/Kolkata' })
  await app.register('w1')
  const jobId = await runLate(app)
  const entries = await historyOf(app, jobId)
  expect(namesOf(entries)).toEqual(['job_created', 'task_dispatched', 'job_cancelled', 'result_ignored'])
  const last = entries.at(-1)
  expect(last).toMatchObject({
    worker_id: 'w1',
    note: containing('job_ended'),
    timestamp: SOME_NUMBER,
    context_snapshot: { status: 'cancelled' },
  })
  // The same moment twice: for programs, and for people in the zone of the server.
  expect(String(last?.['time'])).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+05:30$/)
  expect(Date.parse(String(last?.['time']))).toBe(Math.round(Number(last?.['timestamp']) * 1_000))
})

test('[G-04] beside an embedded storage the notes and the events of workers outlast a restart', async () => {
  const place = freshPath()
  const settings = { storageUrl: `file:${place}` }
  const first = await started(settings)
  await first.register('w1')
  const jobId = await runLate(first)
  const before = await historyOf(first, jobId)
  await first.server.stop()
  const second = await started(settings)
  expect(await historyOf(second, jobId)).toEqual(before)
  expect(namesOf(listIn(await second.client('GET', '/api/v1/workers/w1/history')))).toContain('registered')
  await second.server.stop()
  const file = openHistory(`sqlite:${join(place, 'history.db')}`, {
    clock: createClock(),
    log: SILENT,
    retention: { ageMs: Number.POSITIVE_INFINITY, bytesMax: 1e9 },
  })
  // What the job's record holds is not written a second time.
  expect((await file.ofJob(jobId, { limit: 99 })).map(({ event }) => event)).toEqual(['result_ignored'])
  await file.close()
})

test('[G-04] without a database for it, a job still says who did its tasks and how long they took', async () => {
  const app = await started({ storageUrl: `file:${freshPath()}` })
  await app.register('w1')
  const entries = await historyOf(app, await runEcho(app))
  expect(namesOf(entries)).toEqual(['job_created', 'task_dispatched', 'task_finished', 'job_finished'])
  expect(entries[2]).toMatchObject({ worker_id: 'w1', duration_ms: SOME_NUMBER })
  expect(entries[3]).toMatchObject({ worker_id: null, duration_ms: SOME_NUMBER })
})

test('[G-04] where the history is off, only what a job keeps itself is there', async () => {
  const place = freshPath()
  const app = await started({ storageUrl: `file:${place}`, historyDatabaseUri: 'off' })
  await app.register('w1')
  const jobId = await runLate(app)
  expect(namesOf(await historyOf(app, jobId))).toEqual(['job_created', 'task_dispatched', 'job_cancelled'])
  expect(listIn(await app.client('GET', '/api/v1/workers/w1/history'))).toEqual([])
  expect(existsSync(join(place, 'history.db'))).toBe(false)
})

test.each(['memory:', 'sqlite'])('[G-04] a database for the history (%s) gets every step, each once', async (kind) => {
  const uri = kind === 'sqlite' ? `sqlite:${freshPath()}.db` : kind
  const app = await started({ historyDatabaseUri: uri })
  await app.register('w1')
  const jobId = await runEcho(app)
  const entries = await historyOf(app, jobId)
  expect(namesOf(entries)).toEqual([
    'job_created',
    'state_started',
    'task_dispatched',
    'task_finished',
    'state_finished',
    'job_finished',
  ])
  expect(entries[3]).toMatchObject({ worker_id: 'w1', attempt_number: 1, duration_ms: SOME_NUMBER })
  const late = await historyOf(app, await runLate(app))
  expect(namesOf(late).filter((name) => name === 'result_ignored')).toHaveLength(1)
  const pages: Entry[] = []
  let after = 0
  for (;;) {
    const page = await historyOf(app, jobId, `?limit=2&after=${after}`)
    if (page.length === 0) break
    pages.push(...page)
    after = Number(page.at(-1)?.['event_id'])
  }
  expect(pages).toEqual(entries)
})

test('[G-04] every event shows what the job was started with and what it had then, as far as that fits', async () => {
  const app = await started({ historyDatabaseUri: 'memory:' })
  const jobId = await app.createJob('wordy', { initial_data: { title: 'x' } })
  await app.ended(jobId)
  const entries = await historyOf(app, jobId)
  const shown = entries.map((entry) => [entry['event_type'], entry['state'], entry['context_snapshot']])
  const data = { initial_data: { title: 'x' }, state_history: { few: 'words' } }
  expect(shown.slice(0, 2)).toEqual([
    ['job_created', 'small', { status: 'pending', state: 'small', ...data, state_history: {} }],
    ['state_started', 'small', { status: 'pending', state: 'small', ...data, state_history: {} }],
  ])
  expect(shown).toContainEqual(['state_finished', 'small', { status: 'running', state: 'large', ...data }])
  expect(shown).toContainEqual(['state_started', 'large', { status: 'running', state: 'large', ...data }])
  expect(shown.at(-1)).toEqual([
    'job_finished',
    'done',
    { status: 'finished', state: 'done', ...data, truncated: ['state_history.many'] },
  ])
})

test('[G-04] how much an event keeps is a setting', async () => {
  const large = LIMITS.historySnapshotBytes + 100
  const app = await started({ historyDatabaseUri: 'memory:', historySnapshotBytes: large })
  const jobId = await app.createJob('wordy')
  await app.ended(jobId)
  const last = (await historyOf(app, jobId)).at(-1)
  expect(last?.['context_snapshot']).toMatchObject({
    state_history: { few: 'words', many: 'x'.repeat(LIMITS.historySnapshotBytes) },
  })
  const none = await started({ historyDatabaseUri: 'memory:', historySnapshotBytes: 0 })
  const bare = await none.createJob('wordy', { initial_data: { title: 'x' } })
  await none.ended(bare)
  expect((await historyOf(none, bare))[0]?.['context_snapshot']).toEqual({
    status: 'pending',
    state: 'small',
    initial_data: {},
    state_history: {},
    truncated: ['initial_data.title'],
  })
})

test('[G-04] [C-10] the thousand events of a fan-out keep only so much of the job together', async () => {
  const wide = blueprint('wide', { start: 'split' }, (state) => ({
    split: state.handler((_context, actions) =>
      actions.dispatchParallel(
        Array.from({ length: 1_000 }, () => ({ type: 'work' })),
        { into: 'join' },
      ),
    ),
    join: state.aggregator((_context, actions) => actions.transitionTo('done')),
    done: state.end(),
  }))
  const app = await started({ historyDatabaseUri: 'memory:' }, { blueprints: [wide] })
  const text = 'x'.repeat(LIMITS.historySnapshotBytes - 100)
  const jobId = await app.createJob('wide', { initial_data: { text } })
  let entries: readonly Entry[] = []
  while (entries.length < 1_000) entries = await historyOf(app, jobId, '?limit=1000')
  const sent = entries.filter((entry) => entry['event_type'] === 'task_dispatched')
  const shown = sent.map((entry) => JSON.stringify(entry['context_snapshot']))
  expect(shown.join('').length).toBeLessThan(2 * LIMITS.historyStepBytesMax)
  expect(shown.filter((snapshot) => snapshot.includes(text)).length).toBeGreaterThan(100)
  expect(sent[0]?.['context_snapshot']).toMatchObject({ truncated: ['initial_data', 'state_history'] })
})

test('[J-22] a stop writes everything that has happened before it ends', async () => {
  const uri = `sqlite:${freshPath()}.db`
  const app = await started({ historyDatabaseUri: uri })
  const ids = await Promise.all(Array.from({ length: 20 }, () => app.createJob('wordy')))
  await Promise.all(ids.map((id) => app.ended(id)))
  await app.server.stop()
  const retention = { ageMs: Number.POSITIVE_INFINITY, bytesMax: 1e9 }
  const history = openHistory(uri, { clock: createClock(), log: SILENT, retention })
  for (const id of ids) expect((await history.ofJob(id, { limit: 99 })).at(-1)?.event).toBe('job_finished')
  await history.close()
})

test('[G-04] a database that breaks costs its own part of the history, and no job', async () => {
  const path = `${freshPath()}.db`
  const errors: string[] = []
  const log: Log = { ...SILENT, error: (message) => errors.push(message) }
  const app = await started({ historyDatabaseUri: `sqlite:${path}` }, { log })
  await app.register('w1')
  await runEcho(app)
  for (const end of ['', '-wal']) writeFileSync(`${path}${end}`, 'not a database any more '.repeat(4_000))
  const jobId = await runEcho(app)
  expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished' })
  expect(namesOf(await historyOf(app, jobId))).toContain('job_finished')
  expect([200, 503]).toContain((await app.client('GET', '/api/v1/workers/w1/history')).status)
  await app.server.stop()
  expect(errors.length).toBeGreaterThan(0)
})

test('[G-04] a history that is named has to open; one that only lies beside the storage has not', async () => {
  const path = `${freshPath()}.db`
  writeFileSync(path, 'no database at all '.repeat(100))
  await expect(started({ historyDatabaseUri: `sqlite:${path}` })).rejects.toThrow(
    'HISTORY_DATABASE_URI names a history that cannot be opened: file is not a database',
  )
  await expect(started({ historyDatabaseUri: 'mongodb://me:secret@x' })).rejects.toThrow(
    expect.objectContaining({
      code: 'INVALID_CONFIGURATION',
      message: expect.not.stringContaining('secret') as string,
    }),
  )
  const place = freshPath()
  const settings = { storageUrl: `file:${place}` }
  await (await started(settings)).server.stop()
  writeFileSync(join(place, 'history.db'), readFileSync(path))
  const errors: string[] = []
  const app = await started(settings, { log: { ...SILENT, error: (message) => errors.push(message) } })
  expect(errors).toEqual(['the history beside the storage cannot be used and is kept in memory'])
  await app.register('w1')
  expect(namesOf(await historyOf(app, await runLate(app)))).toContain('result_ignored')
})

test('[G-04] what happened to a worker, newest first, for clients; an unknown one is not found', async () => {
  const app = await startTenantServer()
  onTestFinished(() => app.close())
  await app.register('w1')
  const beat = (body: object): Promise<unknown> => app.worker('PATCH', '/_worker/workers/w1', body)
  await beat({ status: 'idle' })
  await beat({ status: 'busy', load: 1 })
  await beat({ status: 'busy' })
  const path = '/api/v1/workers/w1/history'
  const events = listIn(await app.as('alpha', 'GET', path))
  expect(events).toMatchObject([
    { event_type: 'status_update', note: 'status', worker_info_snapshot: { status: 'busy' } },
    { event_type: 'registered', worker_id: 'w1', timestamp: SOME_NUMBER, worker_info_snapshot: { status: 'idle' } },
  ])
  const first = await app.as('alpha', 'GET', `${path}?limit=1`)
  const rest = await app.as('alpha', 'GET', `${path}?limit=1&before=${first.headers.get('x-next-cursor')}`)
  expect([...listIn(first), ...listIn(rest)]).toEqual(events)
  expect(rest.headers.get('x-next-cursor')).toBeNull()
  expect((await app.as('viewer', 'GET', path)).status).toBe(403)
  expect((await app.as('alpha', 'GET', '/api/v1/workers/nobody/history')).body).toMatchObject({
    code: 'WORKER_NOT_FOUND',
  })
})

/** The clock of this machine, which can be moved on. */
function movableClock(): Clock & { skip(ms: number): void } {
  const clock = createClock()
  let ahead = 0
  return {
    now: () => clock.now() + ahead,
    sleep: (ms, signal) => clock.sleep(ms, signal),
    skip: (ms) => {
      ahead += ms
    },
  }
}

test('[G-05] ended jobs go after their time, quarantined ones stay; their history is still their owner’s', async () => {
  const clock = movableClock()
  const settings = { jobRetentionDays: 3, idempotencyKeyHours: 100, historyDatabaseUri: 'memory:' }
  const app = await startTenantServer({ clock, settings })
  onTestFinished(() => app.close())
  const key = { 'idempotency-key': 'once' }
  const broken = await app.jobIn('alpha', 'broken', 'quarantined')
  const mended = await app.jobIn('alpha', 'broken', 'finished', { initial_data: { mended: true } })
  const keyed = await app.as('alpha', 'POST', '/api/v1/jobs', { blueprint: 'ask' }, key)
  clock.skip(3 * 86_400_000 - 60_000)
  expect((await app.as('alpha', 'GET', `/api/v1/jobs/${mended}`)).status).toBe(200)
  expect((await app.as('alpha', 'POST', '/api/v1/jobs', { blueprint: 'ask' }, key)).body).toEqual(keyed.body)
  clock.skip(60_000)
  expect((await app.as('alpha', 'GET', `/api/v1/jobs/${mended}`)).body).toMatchObject({ code: 'JOB_NOT_FOUND' })
  expect((await app.as('alpha', 'GET', `/api/v1/jobs/${broken}`)).body).toMatchObject({ status: 'quarantined' })
  for (const tenant of ['alpha', 'admin'] as const) {
    const kept = await app.as(tenant, 'GET', `/api/v1/jobs/${mended}/history`)
    expect(namesOf(listIn(kept)).at(-1)).toBe('job_finished')
  }
  expect((await app.as('beta', 'GET', `/api/v1/jobs/${mended}/history`)).status).toBe(404)
  clock.skip(2 * 86_400_000)
  const again = await app.as('alpha', 'POST', '/api/v1/jobs', { blueprint: 'ask' }, key)
  expect(again.body.job_id).not.toBe(keyed.body.job_id)
})

test('[G-05] with zero days nothing goes', async () => {
  const clock = movableClock()
  const app = await started({ jobRetentionDays: 0 }, { clock })
  const jobId = await app.createJob('wordy')
  await app.ended(jobId)
  clock.skip(3_650 * 86_400_000)
  expect((await app.client('GET', `/api/v1/jobs/${jobId}`)).status).toBe(200)
})
