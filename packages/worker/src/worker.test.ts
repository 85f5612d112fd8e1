import { contract, isJsonObject, LIMITS, type WireTask } from '@impresario/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createWorker, InvalidInputError, outcome, PermanentError, TransientError, type Task } from './index.ts'
import { gate, silentLog, taskOf, TestOrchestrator } from './orchestrator.fixture.ts'

const media = contract('media', {
  transcode: {
    input: z.object({ path: z.string(), preset: z.enum(['720p', '1080p']).default('720p') }),
    output: z.object({ url: z.string() }),
    outcomes: { needs_review: z.object({ reason: z.string() }) },
  },
})

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

const resultOf = (task: WireTask) => orchestrator.resultOf(task)

/** A promise to be settled from outside. */
test('[E-05] a typed handler gets what the schema made of the params, and its output is reported', async () => {
  const worker = makeWorker({ token: 'secret' }).handle(media, {
    transcode: async ({ path, preset }) => ({ url: `${path}?${preset}` }),
  })
  await worker.start()
  const task = taskOf('media.transcode', { path: '/a' })
  orchestrator.give(task)
  expect(await resultOf(task)).toEqual({
    job_id: task.job_id,
    task_id: task.task_id,
    worker_id: 'w1',
    status: 'success',
    data: { url: '/a?720p' },
  })
  expect(orchestrator.registrations[0]).toMatchObject({
    worker_id: 'w1',
    supported_tasks: ['media.transcode'],
    supported_skills: [{ name: 'media.transcode', output_statuses: ['needs_review'] }],
  })
  expect(orchestrator.requests[0]?.headers['x-worker-token']).toBe('secret')
})

test('[E-05] params that break the contract fail as invalid input, with the path, and the handler never runs', async () => {
  let calls = 0
  const worker = makeWorker().handle(media, {
    transcode: () => {
      calls += 1
      return { url: '' }
    },
  })
  await worker.start()
  const task = taskOf('media.transcode', { path: '/a', preset: '8k' })
  orchestrator.give(task)
  const result = await resultOf(task)
  expect(result).toMatchObject({ status: 'failure', error: { code: 'INVALID_INPUT_ERROR' } })
  expect(JSON.stringify(result.error)).toContain('preset: ')
  expect(calls).toBe(0)
})

test('[E-05] a named outcome becomes the status of the result', async () => {
  const worker = makeWorker().handle(media, {
    transcode: async ({ path }) => outcome('needs_review', { reason: `${path} is a picture` }),
  })
  await worker.start()
  const task = taskOf('media.transcode', { path: 'x.gif' })
  orchestrator.give(task)
  expect(await resultOf(task)).toMatchObject({ status: 'needs_review', data: { reason: 'x.gif is a picture' } })
})

test('[E-05] the error classes decide the code; anything else is transient; an unknown type is permanent', async () => {
  const errors: Record<string, Error> = {
    transient: new TransientError('later'),
    permanent: new PermanentError('never'),
    invalid: new InvalidInputError('nonsense', { details: { field: 'x' } }),
    other: new RangeError('a bug'),
  }
  const worker = makeWorker()
  for (const [type, error] of Object.entries(errors)) {
    worker.task(type, () => {
      throw error
    })
  }
  await worker.start()
  const tasks = [...Object.keys(errors), 'nobody'].map((type) => taskOf(type))
  orchestrator.give(...tasks)
  const results = await Promise.all(tasks.map(resultOf))
  expect(results.map((result) => result.error)).toMatchObject([
    { code: 'TRANSIENT_ERROR', message: 'later' },
    { code: 'PERMANENT_ERROR', message: 'never' },
    { code: 'INVALID_INPUT_ERROR', message: 'nonsense', details: { field: 'x' } },
    { code: 'TRANSIENT_ERROR', message: 'a bug' },
    { code: 'PERMANENT_ERROR', message: 'This worker has no handler for "nobody".' },
  ])
})

test('[E-05] a handler learns its ids, its attempt and its idempotency key', async () => {
  const seen: Task[] = []
  const worker = makeWorker().task('t', (_params, task) => {
    seen.push(task)
  })
  await worker.start()
  const more = { attempt: 3, idempotency_key: 'key', priority: 2, tracing_context: { traceparent: '00-a-b-01' } }
  const task = taskOf('t', {}, more)
  orchestrator.give(task)
  await resultOf(task)
  const [{ jobId, taskId, attempt, idempotencyKey, tracingContext } = fail()] = seen
  expect([jobId, taskId, attempt, idempotencyKey]).toEqual([task.job_id, task.task_id, 3, 'key'])
  expect(tracingContext).toEqual({ traceparent: '00-a-b-01' })
})

function fail(): never {
  throw new Error('nothing was seen')
}

test('[E-05] never more tasks than slots, and never more of a type than its limit', async () => {
  const doors = new Map<string, () => void>()
  let heavy = 0
  const hold = async (params: { readonly id?: unknown }): Promise<void> => {
    const { open, opened } = gate()
    doors.set(String(params.id), open)
    await opened
  }
  const worker = makeWorker({ concurrency: 3, taskLimits: { heavy: 1 } })
    .task('light', hold)
    .task('heavy', async (params) => {
      heavy += 1
      await hold(params)
      heavy -= 1
    })
  await worker.start()
  const tasks = [taskOf('heavy', { id: 'h1' }), taskOf('heavy', { id: 'h2' }), taskOf('light', { id: 'l1' })]
  const [first, second, third] = tasks
  if (first === undefined || second === undefined || third === undefined) return
  orchestrator.give(...tasks, taskOf('light', { id: 'l2' }))
  await expect.poll(() => doors.size).toBe(2)
  expect(heavy).toBe(1)
  expect(worker.running).toHaveLength(3)
  doors.get('h1')?.()
  await resultOf(first)
  await expect.poll(() => doors.has('h2')).toBe(true)
  expect(heavy).toBe(1)
  await expect.poll(() => doors.has('l2')).toBe(true)
  for (const open of doors.values()) open()
  await Promise.all([resultOf(second), resultOf(third)])
})

test('[E-05] a type at its limit is told to the orchestrator, and again when there is room', async () => {
  const { open, opened } = gate()
  const worker = makeWorker({ taskLimits: { heavy: 1 } })
    .task('heavy', async () => opened)
    .task('light', () => undefined)
  await worker.start()
  orchestrator.give(taskOf('heavy'))
  await orchestrator.until(() => orchestrator.heartbeats.length === 1)
  expect(orchestrator.heartbeats[0]?.available_skills).toEqual(['light'])
  open()
  await orchestrator.until(() => orchestrator.heartbeats.length === 2)
  expect(orchestrator.heartbeats[1]?.available_skills).toEqual(['heavy', 'light'])
})

test('[E-05] a cancelled task sees its signal abort and is reported as cancelled', async () => {
  const reasons: unknown[] = []
  const worker = makeWorker().task('t', async (_params, { signal }) => {
    await new Promise<void>((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        reasons.push(signal.reason)
        reject(new Error('stopped'))
      })
    })
  })
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  await orchestrator.until(() => orchestrator.polls.length > 1)
  orchestrator.cancel(task.task_id)
  expect(await resultOf(task)).toMatchObject({ status: 'cancelled' })
  expect(reasons).toMatchObject([{ name: 'AbortError', reason: 'cancelled' }])
})

test('[E-05] the signal aborts at the deadline, and the task fails as timed out', async () => {
  const worker = makeWorker().task('t', async (_params, { signal }) => {
    await new Promise<void>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('stopped')))
    })
  })
  await worker.start()
  const task = taskOf('t', {}, { deadline: Date.now() / 1_000 })
  orchestrator.give(task)
  expect(await resultOf(task)).toMatchObject({ status: 'failure', error: { code: 'TIMEOUT_ERROR' } })
})

test('[E-05] progress reaches the orchestrator, and of many in a second only the last', async () => {
  const { open, opened } = gate()
  const worker = makeWorker().task('t', async (_params, task) => {
    task.progress(0.1, 'begun')
    task.progress(0.2)
    task.progress(3, 'nearly')
    await opened
  })
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  await orchestrator.until(() => orchestrator.events.length === 2)
  open()
  expect(orchestrator.events.map((event) => event.payload)).toEqual([
    { progress: 0.1, message: 'begun' },
    { progress: 1, message: 'nearly' },
  ])
  expect(orchestrator.events[0]).toMatchObject({
    event_type: 'progress',
    worker_id: 'w1',
    target_task_id: task.task_id,
    target_job_id: task.job_id,
  })
})

test('[E-05] what is loaded is told to the orchestrator, skills and models apart', async () => {
  const worker = makeWorker().task('t', (_params, task) => {
    task.setHot('t')
    task.setHot('llama')
  })
  await worker.start()
  orchestrator.give(taskOf('t'))
  await orchestrator.until(() => orchestrator.heartbeats.length > 0)
  expect(orchestrator.heartbeats[0]).toMatchObject({ hot_skills: ['t'], hot_cache: ['llama'] })
})

test('[E-05] an exception of a handler is in the log and goes along with its result, with its stack and its causes', async () => {
  const lines: object[] = []
  const log = { ...silentLog, error: (message: string, fields?: object) => lines.push({ message, ...fields }) }
  const worker = makeWorker({ log }).task('t', ({ how }) => {
    const cause = new RangeError('the disk is full')
    if (how === 'meant') throw new PermanentError('It will never work.')
    if (how === 'caused') throw new PermanentError('It will never work.', { cause })
    throw new Error('It broke.', { cause })
  })
  await worker.start()
  const tasks = ['odd', 'meant', 'caused'].map((how) => taskOf('t', { how }))
  orchestrator.give(...tasks)
  const [odd, meant, caused] = await Promise.all(tasks.map((task) => orchestrator.resultOf(task)))
  const stackOf = (error: unknown): string =>
    isJsonObject(error) && typeof error['stack'] === 'string' ? error['stack'] : ''
  const stack = stackOf(odd?.error)
  expect(stack).toMatch(/^Error: It broke\.\n +at .*worker\.test\.ts.*\nCaused by: RangeError: the disk is full\n/s)
  expect(stack.length).toBeLessThanOrEqual(LIMITS.taskStackCharsMax)
  expect(lines).toMatchObject([
    { message: 'A handler failed.', task_id: tasks[0]?.task_id, code: 'TRANSIENT_ERROR', stack },
  ])
  // A failure that the handler chose says enough; what caused it does not.
  expect(meant?.error).toEqual({ code: 'PERMANENT_ERROR', message: 'It will never work.' })
  expect(stackOf(caused?.error)).toMatch(/^Caused by: RangeError/)
})
