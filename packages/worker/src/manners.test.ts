import { afterEach, beforeEach, expect, test } from 'vitest'
import { createWorker } from './index.ts'
import { silentLog, taskOf, TestOrchestrator, type SeenRequest } from './orchestrator.fixture.ts'

let orchestrator: TestOrchestrator
const cleanUp: (() => Promise<void>)[] = []

beforeEach(async () => {
  orchestrator = await new TestOrchestrator().listen()
  cleanUp.push(() => orchestrator.close())
})
afterEach(async () => {
  for (const clean of cleanUp.splice(0).toReversed()) await clean()
})

function makeWorker(options: Parameters<typeof createWorker>[0] = {}) {
  const worker = createWorker({ url: orchestrator.url, id: 'w1', log: silentLog, shutdownMs: 0, ...options })
  cleanUp.push(() => worker.stop())
  return worker
}

const isPoll = ({ path }: SeenRequest): boolean => path.endsWith('/tasks/batch')
const isBeat = ({ method }: SeenRequest): boolean => method === 'PATCH'

/** The least time between two requests of a kind. Timers never fire early, so a lower bound depends on no speed. */
function gapMs(kind: (request: SeenRequest) => boolean, from: number): number {
  const times = orchestrator.requests.filter(kind).map((request) => request.at)
  return (times[from + 1] ?? Number.NaN) - (times[from] ?? Number.NaN)
}

async function until(kind: (request: SeenRequest) => boolean, count: number): Promise<void> {
  await orchestrator.until(() => orchestrator.requests.filter(kind).length >= count)
}

test('[E-05] registration is tried until it succeeds, and the worker is not registered before', async () => {
  let left = 4
  orchestrator.intercept = ({ path }) => {
    left -= 1
    if (left > 0) return left % 2 === 0 ? 'drop' : { status: 503 }
    expect(path).toBe('/_worker/workers/register')
    orchestrator.intercept = undefined
    return undefined
  }
  const worker = makeWorker({ registrationRetryMs: 1, registrationRetryMsMax: 2 }).task('t', () => undefined)
  await worker.start()
  expect(orchestrator.registrations).toHaveLength(1)
  const paths = orchestrator.requests.slice(0, 4).map((request) => request.path)
  expect(new Set(paths)).toEqual(new Set(['/_worker/workers/register']))
})

test('[E-05] a worker whose heartbeat is answered 404 registers again and names its tasks at once', async () => {
  const worker = makeWorker({ heartbeatMs: 20, heartbeatCooldownMs: 0 }).task('t', () => new Promise(() => undefined))
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  await orchestrator.until(() => orchestrator.polls.length === 2)
  orchestrator.intercept = (request) => {
    if (!isBeat(request)) return undefined
    orchestrator.intercept = undefined
    return { status: 404, body: { error: 'Worker not found' } }
  }
  await orchestrator.until(() => orchestrator.registrations.length === 2)
  const before = orchestrator.heartbeats.length
  await orchestrator.until(() => orchestrator.heartbeats.length > before)
  expect(orchestrator.heartbeats.at(-1)?.current_tasks).toEqual([task.task_id])
})

test('[E-05] an orchestrator that takes registrations and forgets them is not stormed', async () => {
  orchestrator.intercept = (request) =>
    isPoll(request) ? { status: 404, body: { error: 'Worker not found' } } : undefined
  const worker = makeWorker({ pollRetryMs: 100 }).task('t', () => undefined)
  await worker.start()
  await until(isPoll, 3)
  expect(gapMs(isPoll, 1)).toBeGreaterThanOrEqual(99)
})

test('[E-05] asked for everything, the worker tells its skills again, and does not begin anew', async () => {
  const worker = makeWorker({ heartbeatMs: 20, heartbeatCooldownMs: 0 }).task('t', () => undefined)
  await worker.start()
  await orchestrator.until(() => orchestrator.heartbeats.length > 0)
  expect(orchestrator.heartbeats[0]?.supported_skills).toBeUndefined()
  expect(orchestrator.heartbeats[0]?.skills_hash).toBe(orchestrator.registrations[0]?.skills_hash)
  orchestrator.heartbeatReply = { require_full_sync: true }
  await orchestrator.until(() => orchestrator.heartbeats.some((beat) => beat.supported_skills !== undefined))
  const full = orchestrator.heartbeats.find((beat) => beat.supported_skills !== undefined)
  expect(full?.supported_skills).toEqual([{ name: 't' }])
  expect(orchestrator.registrations).toHaveLength(1)
})

test('[E-05] the orchestrator may put the next heartbeat off, but not by more than an interval', async () => {
  const worker = makeWorker({ heartbeatMs: 40 }).task('t', () => undefined)
  orchestrator.heartbeatReply = { next_heartbeat_jitter_ms: 1_000_000 }
  await worker.start()
  await until(isBeat, 2)
  expect(gapMs(isBeat, 0)).toBeGreaterThanOrEqual(79)
})

test('[E-05] what changes together is told together, and changes are not told too often', async () => {
  const worker = makeWorker({ heartbeatDebounceMs: 30, heartbeatCooldownMs: 120 }).task('t', () => undefined)
  await worker.start()
  for (const name of ['a', 'b', 'c']) worker.setHot(name)
  await until(isBeat, 1)
  expect(orchestrator.heartbeats[0]?.hot_cache).toEqual(['a', 'b', 'c'])
  worker.unsetHot('b')
  await until(isBeat, 2)
  expect(orchestrator.heartbeats[1]?.hot_cache).toEqual(['a', 'c'])
  expect(gapMs(isBeat, 0)).toBeGreaterThanOrEqual(99)
})

test.for([
  ['for as long as it says', { 'retry-after': '0.3' }, { rateLimitMs: 0 }],
  ['for the time that is set when it says none', {}, { rateLimitMs: 300 }],
] as const)('[E-05] an orchestrator that has had too many polls is left in peace %s', async ([, headers, options]) => {
  orchestrator.intercept = (request) => {
    if (!isPoll(request)) return undefined
    orchestrator.intercept = undefined
    return { status: 429, headers, body: { error: 'Too Many Requests' } }
  }
  const worker = makeWorker({ pollRetryMs: 1, ...options }).task('t', () => undefined)
  await worker.start()
  await until(isPoll, 2)
  expect(gapMs(isPoll, 0)).toBeGreaterThanOrEqual(299)
})

test('[E-05] a refused registration waits for as long as the orchestrator says', async () => {
  orchestrator.intercept = () => {
    orchestrator.intercept = undefined
    return { status: 429, headers: { 'retry-after': '0.2' } }
  }
  await makeWorker({ registrationRetryMs: 1 })
    .task('t', () => undefined)
    .start()
  expect(gapMs(({ path }) => path.endsWith('/register'), 0)).toBeGreaterThanOrEqual(199)
})

test('[E-05] polls that fail come ever later, by the factor that is set', async () => {
  orchestrator.intercept = (request) => (isPoll(request) ? { status: 500 } : undefined)
  const worker = makeWorker({ pollRetryMs: 20, pollRetryFactor: 4, pollRetryMsMax: 200 }).task('t', () => undefined)
  await worker.start()
  await until(isPoll, 4)
  // Half of each wait is chance: 20, 80, 200.
  expect([0, 1, 2].map((from) => gapMs(isPoll, from) >= [9, 39, 99][from]!)).toEqual([true, true, true])
})

test('[E-05] a type without capacity is not asked for, and asked for again when there is some', async () => {
  let hasRoom = false
  const worker = makeWorker({ capacityChecker: (type) => type !== 'heavy' || hasRoom, pollMs: 20 })
    .task('heavy', () => undefined)
    .task('light', () => undefined)
  await worker.start()
  await orchestrator.until(() => orchestrator.polls.length > 0)
  expect(orchestrator.polls[0]?.available_skills).toEqual(['light'])
  hasRoom = true
  await orchestrator.until(() => orchestrator.polls.at(-1)?.available_skills === undefined)
})

test('[E-05] a worker without any capacity does not poll until it has some', async () => {
  let hasRoom = false
  const worker = makeWorker({ capacityChecker: () => hasRoom, heartbeatMs: 20 }).task('t', () => undefined)
  await worker.start()
  await orchestrator.until(() => orchestrator.heartbeats.length > 2)
  expect(orchestrator.heartbeats.at(-1)?.available_skills).toEqual([])
  expect(orchestrator.polls).toHaveLength(0)
  hasRoom = true
  await orchestrator.until(() => orchestrator.polls.length > 0)
})

test('[E-05] a skill is hot when all its models are', async () => {
  const worker = makeWorker({ skillDependencies: { t: ['m1', 'm2'] }, heartbeatCooldownMs: 0 }).task(
    't',
    () => undefined,
  )
  await worker.start()
  worker.setHot('m1')
  await orchestrator.until(() => orchestrator.heartbeats.length === 1)
  worker.setHot('m2')
  await orchestrator.until(() => orchestrator.heartbeats.length === 2)
  expect(orchestrator.heartbeats).toMatchObject([
    { hot_skills: [], hot_cache: ['m1'], skill_dependencies: { t: ['m1', 'm2'] } },
    { hot_skills: ['t'], hot_cache: ['m1', 'm2'] },
  ])
})

test('[E-05] the health page says how the worker is, and is gone with it', async () => {
  const worker = makeWorker({ healthPort: 0 }).task('t', () => undefined)
  await worker.start()
  const url = `http://127.0.0.1:${worker.healthPort}`
  const answer = await fetch(`${url}/health`)
  expect([answer.status, await answer.json()]).toEqual([
    200,
    { worker_id: 'w1', status: 'idle', running: 0, orchestrators: [{ name: orchestrator.url, registered: true }] },
  ])
  expect((await fetch(`${url}/other`)).status).toBe(404)
  expect((await fetch(`${url}/health`, { method: 'POST' })).status).toBe(405)
  await worker.stop()
  await expect(fetch(`${url}/health`)).rejects.toThrow('fetch failed')
})

test('[E-05] a port that is taken stops the start by name', async () => {
  const healthPort = Number(new URL(orchestrator.url).port)
  const taken = await new TestOrchestrator().listen()
  cleanUp.push(() => taken.close())
  const one = makeWorker({ healthPort: 0 })
  await one.start()
  await expect(makeWorker({ healthPort: one.healthPort ?? healthPort }).start()).rejects.toThrow('WORKER_PORT')
})
