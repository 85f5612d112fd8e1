import { ExactNumber, type JsonObject, type WireTask } from '@impresario/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createWorker } from '../index.ts'
import { gate, silentLog, taskOf, TestOrchestrator } from '../orchestrator.fixture.ts'

let orchestrator: TestOrchestrator
const cleanUp: (() => Promise<void>)[] = []

beforeEach(async () => {
  orchestrator = await start(new TestOrchestrator())
})
afterEach(async () => {
  for (const clean of cleanUp.splice(0).toReversed()) await clean()
})

async function start(one: TestOrchestrator): Promise<TestOrchestrator> {
  await one.listen()
  cleanUp.push(() => one.close())
  return one
}

function makeWorker(options: Parameters<typeof createWorker>[0] = {}) {
  const base = { id: 'w1', log: silentLog, shutdownMs: 0, resultRetryMs: 1 }
  const worker = createWorker({
    ...(options.orchestrators === undefined ? { url: orchestrator.url } : {}),
    ...base,
    ...options,
  })
  cleanUp.push(() => worker.stop())
  return worker
}

const resultOf = (task: WireTask, where: TestOrchestrator = orchestrator) => where.resultOf(task)

test('[E-05] results that end while a post is on its way travel together in the next one', async () => {
  const worker = makeWorker({ concurrency: 10 }).task('t', () => undefined)
  await worker.start()
  orchestrator.resultsFault = 'hold'
  orchestrator.give(taskOf('t'))
  await orchestrator.until(() => orchestrator.resultPosts.length === 1)
  orchestrator.give(...Array.from({ length: 5 }, () => taskOf('t')))
  await orchestrator.until(() => orchestrator.polls.length === 3)
  orchestrator.releaseResults()
  await orchestrator.until(() => orchestrator.results.length === 6)
  expect(orchestrator.resultPosts.map((post) => post.length)).toEqual([1, 5])
})

test('[E-05] a result is sent again, unchanged, until the orchestrator has answered', async () => {
  const worker = makeWorker().task('t', () => ({ n: 1 }))
  await worker.start()
  orchestrator.resultsFault = 'drop'
  orchestrator.give(taskOf('t'))
  await orchestrator.until(() => orchestrator.resultPosts.length === 3)
  orchestrator.resultsFault = 'none'
  await orchestrator.until(() => orchestrator.resultPosts.length === 4)
  const [first, ...others] = orchestrator.resultPosts
  for (const other of others) expect(other).toEqual(first)
})

test('[E-05] while a result cannot be delivered, heartbeats keep its task', async () => {
  const worker = makeWorker({ heartbeatMs: 5 }).task('t', () => undefined)
  await worker.start()
  orchestrator.resultsFault = 'hold'
  const task = taskOf('t')
  orchestrator.give(task)
  await orchestrator.until(() => orchestrator.heartbeats.some((beat) => beat.current_tasks?.includes(task.task_id)))
  await orchestrator.until(() => orchestrator.resultPosts.length === 1)
  const before = orchestrator.heartbeats.length
  await orchestrator.until(() => orchestrator.heartbeats.length > before + 1)
  expect(orchestrator.heartbeats.at(-1)?.current_tasks).toEqual([task.task_id])
  orchestrator.releaseResults()
  await orchestrator.until(() => orchestrator.heartbeats.at(-1)?.current_tasks?.length === 0)
})

test('[E-05] after the last retry that was allowed, a result is given up and the log says so', async () => {
  const lines: string[] = []
  const log = { ...silentLog, error: (message: string) => lines.push(message) }
  const worker = makeWorker({ resultRetriesMax: 2, log }).task('t', () => undefined)
  await worker.start()
  orchestrator.resultsFault = 'drop'
  orchestrator.give(taskOf('t'))
  await expect.poll(() => lines).toEqual(['Results were given up: the orchestrator could not be reached.'])
  expect(orchestrator.resultPosts).toHaveLength(3)
})

test('[E-05] a result that is refused fails its task instead of running it again and again', async () => {
  const worker = makeWorker().task('t', () => ({ huge: true }))
  await worker.start()
  orchestrator.resultsFault = 'refuse'
  orchestrator.give(taskOf('t'))
  await orchestrator.until(() => orchestrator.resultPosts.length === 2)
  expect(orchestrator.resultPosts[1]).toMatchObject([{ status: 'failure', error: { code: 'PERMANENT_ERROR' } }])
})

test('[E-05] [C-10] so does one that is refused among others', async () => {
  const worker = makeWorker().task('t', () => ({ huge: true }))
  await worker.start()
  orchestrator.resultsFault = 'refuse each success'
  orchestrator.give(taskOf('t'), taskOf('t'))
  await orchestrator.until(() => orchestrator.results.filter(({ status }) => status === 'failure').length === 2)
  const message = 'The orchestrator refused the result: too large'
  expect(orchestrator.resultPosts.at(-1)).toMatchObject([{ error: { code: 'PERMANENT_ERROR', message } }])
})

test('[E-05] what a handler returned and JSON cannot hold fails the task', async () => {
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  const answers: Readonly<Record<string, unknown>> = {
    '{"a":1}': Number.NaN,
    '{"a":2}': [-Infinity],
    '{"a":3}': cyclic,
  }
  const worker = makeWorker().task('t', (params) => ({ n: answers[JSON.stringify(params)] }))
  await worker.start()
  for (const answer of Object.keys(answers)) {
    const task = { ...taskOf('t'), params: JSON.parse(answer) as JsonObject }
    orchestrator.give(task)
    expect(await resultOf(task)).toMatchObject({ status: 'failure', error: { code: 'PERMANENT_ERROR' } })
  }
})

test('[E-05] numbers of any length come to a handler and go back as they are', async () => {
  const seen: unknown[] = []
  const worker = makeWorker().task('t', (params) => {
    seen.push(params)
    return { ...(params as object), more: 18_446_744_073_709_551_615n, small: 7n, negative: -0 }
  })
  await worker.start()
  const params = {
    id: 9_007_199_254_740_993n,
    price: new ExactNumber('0.30000000000000001'),
    tiny: new ExactNumber('1e-400'),
    minus: -0,
    plain: 1.5,
  }
  const task = { ...taskOf('t'), params: params as never }
  orchestrator.give(task)
  const { data } = await resultOf(task)
  expect(data).toEqual({ ...params, more: 18_446_744_073_709_551_615n, small: 7, negative: -0 })
  expect(seen).toEqual([params])
})

test('[E-05] a worker that the orchestrator does not know any more registers again', async () => {
  const worker = makeWorker().task('t', () => undefined)
  await worker.start()
  await orchestrator.until(() => orchestrator.polls.length === 1)
  orchestrator.forget()
  await orchestrator.until(() => orchestrator.registrations.length === 2)
  const task = taskOf('t')
  orchestrator.give(task)
  expect(await resultOf(task)).toMatchObject({ status: 'success' })
})

test('[E-05] a restarted orchestrator is found again, and gets the result of before', async () => {
  const { open, opened } = gate()
  const worker = makeWorker().task('t', async () => opened)
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  await orchestrator.until(() => orchestrator.polls.length === 2)
  await orchestrator.close()
  open()
  await orchestrator.listen()
  expect(await resultOf(task)).toMatchObject({ status: 'success' })
  const next = taskOf('t')
  orchestrator.give(next)
  expect(await resultOf(next)).toMatchObject({ status: 'success' })
})

test('[E-05] stop waits for what is running, and says that it drains and then that it is gone', async () => {
  const { open, opened } = gate()
  const worker = makeWorker({ shutdownMs: 60_000 }).task('t', async () => opened)
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  await orchestrator.until(() => orchestrator.polls.length === 2)
  const stopped = worker.stop()
  await orchestrator.until(() => orchestrator.heartbeats.some((beat) => beat.status === 'draining'))
  expect(orchestrator.heartbeats.at(-1)?.current_tasks).toEqual([task.task_id])
  open()
  await stopped
  expect(await resultOf(task)).toMatchObject({ status: 'success' })
  expect(orchestrator.heartbeats.at(-1)).toMatchObject({ status: 'offline', current_tasks: [] })
})

test('[E-05] run ends when the worker is stopped, before and after it has begun', async () => {
  const worker = makeWorker().task('t', () => undefined)
  const ended = worker.run()
  await orchestrator.until(() => orchestrator.polls.length === 1)
  await worker.stop()
  await ended
  expect(process.listenerCount('SIGTERM')).toBe(0)
  const never = makeWorker({ id: 'w2' }).task('t', () => undefined)
  await never.stop()
  await never.run()
  // Nor does it wait for an orchestrator that is not there.
  const alone = makeWorker({ id: 'w3', orchestrators: [{ url: 'http://127.0.0.1:9' }] }).task('t', () => undefined)
  const gaveUp = alone.run()
  await alone.stop()
  await gaveUp
})

test('[E-05] a worker that stops says what it waits for', async () => {
  const lines: [string, unknown][] = []
  const log = { ...silentLog, info: (message: string, fields?: object) => lines.push([message, fields]) }
  const { open, opened } = gate()
  const worker = makeWorker({ shutdownMs: 60_000, log }).task('t', async () => opened)
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  await orchestrator.until(() => orchestrator.polls.length === 2)
  const stopped = worker.stop()
  const says = 'Stopping: 1 running tasks are waited for. A second signal ends at once.'
  await expect.poll(() => lines).toContainEqual([says, { task_ids: [task.task_id], wait_ms: 60_000 }])
  open()
  await stopped
  expect(lines.at(-1)).toEqual(['Stopped.', undefined])
})

test('[E-05] stop hands back what takes too long: its signal aborts and its failure is transient', async () => {
  const signals: AbortSignal[] = []
  const worker = makeWorker({ shutdownMs: 0 }).task('t', async (_params, { signal }) => {
    signals.push(signal)
    await new Promise(() => undefined)
  })
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  await orchestrator.until(() => orchestrator.polls.length === 2)
  await worker.stop()
  expect(signals[0]?.aborted).toBe(true)
  expect(await resultOf(task)).toMatchObject({ status: 'failure', error: { code: 'TRANSIENT_ERROR' } })
})

test('[E-05] a program that runs a worker ends in order when it is told to', async () => {
  const worker = makeWorker().task('t', () => undefined)
  const ended = worker.run()
  await orchestrator.until(() => orchestrator.polls.length === 1)
  process.emit('SIGTERM')
  await ended
  expect(orchestrator.heartbeats.map((beat) => beat.status)).toEqual(['draining', 'offline'])
})

test('[E-05] an orchestrator without batches is asked for one task at a time, and told at once when slots run out', async () => {
  const old = await start(new TestOrchestrator({ batch: false }))
  const { open, opened } = gate()
  const worker = makeWorker({ url: old.url, concurrency: 2 }).task('t', async () => opened)
  await worker.start()
  const tasks = [taskOf('t'), taskOf('t'), taskOf('t')]
  old.give(...tasks)
  await old.until(() => old.heartbeats.some((beat) => beat.status === 'busy'))
  expect(old.polls).toHaveLength(2)
  open()
  await Promise.all(tasks.map((task) => resultOf(task, old)))
  expect(old.resultPosts.every((post) => post.length === 1)).toBe(true)
  await old.until(() => old.heartbeats.at(-1)?.status === 'idle')
})

test('[E-05] the single mode can be chosen although the orchestrator offers batches', async () => {
  const worker = makeWorker({ mode: 'single' }).task('t', () => undefined)
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  await resultOf(task)
  expect(orchestrator.requests.map((request) => request.path)).toContain('/_worker/workers/w1/tasks/next')
})

test('[E-05] a cancellation in the answer to a heartbeat aborts the task', async () => {
  const old = await start(new TestOrchestrator({ batch: false }))
  const worker = makeWorker({ url: old.url, heartbeatMs: 5 }).task('t', async (_params, { signal }) => {
    await new Promise((_resolve, reject) => {
      signal.addEventListener('abort', reject)
    })
  })
  await worker.start()
  const task = taskOf('t')
  old.give(task)
  await old.until(() => old.heartbeats.some((beat) => beat.current_tasks?.includes(task.task_id)))
  old.cancel(task.task_id)
  expect(await resultOf(task, old)).toMatchObject({ status: 'cancelled' })
})

test('[E-05] with several orchestrators: registered with all, work from the first, then from the next that answers', async () => {
  const second = await start(new TestOrchestrator())
  const orchestrators = [
    { url: second.url, priority: 20 },
    { url: orchestrator.url, priority: 1 },
  ]
  const worker = makeWorker({ orchestrators }).task('t', () => undefined)
  await worker.start()
  await Promise.all([orchestrator, second].map((one) => one.until(() => one.registrations.length === 1)))
  const task = taskOf('t')
  orchestrator.give(task)
  await resultOf(task)
  expect(second.polls).toHaveLength(0)
  await orchestrator.close()
  const other = taskOf('t')
  second.give(other)
  await resultOf(other, second)
})

test('[E-05] in rotation: every orchestrator is asked', async () => {
  const second = await start(new TestOrchestrator())
  const orchestrators = [{ url: second.url }, { url: orchestrator.url }]
  const worker = makeWorker({ orchestrators, orchestratorMode: 'round_robin' }).task('t', () => undefined)
  await worker.start()
  const tasks = Array.from({ length: 4 }, () => taskOf('t'))
  orchestrator.give(...tasks.slice(0, 2))
  second.give(...tasks.slice(2))
  await orchestrator.until(() => orchestrator.results.length === 2)
  await second.until(() => second.results.length === 2)
  expect([orchestrator, second].map((one) => one.registrations.length)).toEqual([1, 1])
})
