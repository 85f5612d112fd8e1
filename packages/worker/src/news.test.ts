import { once } from 'node:events'
import type { WireTask } from '@impresario/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createWorker } from './index.ts'
import { silentLog, taskOf, TestOrchestrator } from './orchestrator.fixture.ts'

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
  const base = { url: orchestrator.url, id: 'w1', log: silentLog, shutdownMs: 0, resultRetryMs: 1 }
  const worker = createWorker({ ...base, ...options })
  cleanUp.push(() => worker.stop())
  return worker
}

const resultOf = (task: WireTask) => orchestrator.resultOf(task)

const untilConnected = () => orchestrator.until(() => orchestrator.sockets.length === 1)

/** Waits until the signal aborts, and fails then. */
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('stopped')))
  })

test('[E-05] an event is sent until it has arrived, always with the same id, and the result comes after it', async () => {
  const worker = makeWorker().task('t', (_params, task) => {
    void task.sendEvent('found', { n: 1 })
  })
  await worker.start()
  let drops = 3
  orchestrator.intercept = ({ path }) => {
    if (path !== '/_worker/events' || drops === 0) return undefined
    drops -= 1
    return drops % 2 === 0 ? 'drop' : { status: 503 }
  }
  const task = taskOf('t')
  orchestrator.give(task)
  await resultOf(task)
  const sent = orchestrator.requests
    .filter(({ path }) => path === '/_worker/events')
    .map(({ body }) => body['event_id'])
  expect(sent).toHaveLength(4)
  expect(new Set(sent).size).toBe(1)
  expect(orchestrator.events).toMatchObject([
    {
      event_type: 'found',
      payload: { n: 1 },
      worker_id: 'w1',
      origin_task_id: task.task_id,
      target_job_id: task.job_id,
      target_task_id: task.task_id,
    },
  ])
  const paths = orchestrator.requests.map((request) => request.path)
  expect(paths.lastIndexOf('/_worker/events')).toBeLessThan(paths.indexOf('/_worker/tasks/results'))
})

test('[E-05] an event that the orchestrator refuses is told to the handler, and the task goes on', async () => {
  const refusals: string[] = []
  orchestrator.intercept = ({ path }) =>
    path === '/_worker/events' ? { status: 200, body: { status: 'error', message: 'no such event' } } : undefined
  const worker = makeWorker().task('t', async (_params, task) => {
    await task.sendEvent('odd').catch((error: unknown) => refusals.push(String(error)))
    return { done: true }
  })
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  expect(await resultOf(task)).toMatchObject({ status: 'success' })
  expect(refusals.join('')).toContain('no such event')
})

test('[E-05] events that the skill does not describe are refused here, unless that is switched off', async () => {
  const events = { found: z.object({ n: z.number() }) }
  const run = async (strictEvents: boolean) => {
    const worker = makeWorker({ id: `strict-${strictEvents}`, strictEvents }).task(
      't',
      { events },
      async ({ type, payload }, task) => {
        await task.sendEvent(type === 'found' ? 'found' : 'lost', payload as { n: number })
      },
    )
    await worker.start()
    const tasks = [
      taskOf('t', { type: 'found', payload: { n: 1 } }),
      taskOf('t', { type: 'found', payload: { n: 'one' } }),
      taskOf('t', { type: 'lost', payload: {} }),
    ]
    orchestrator.give(...tasks)
    const results = await Promise.all(tasks.map(resultOf))
    await worker.stop()
    return results.map(({ status, error }) => [status, typeof error === 'object' ? error?.code : undefined])
  }
  expect(await run(true)).toEqual([
    ['success', undefined],
    ['failure', 'CONTRACT_VIOLATION_ERROR'],
    ['failure', 'CONTRACT_VIOLATION_ERROR'],
  ])
  expect(orchestrator.events).toHaveLength(1)
  expect(await run(false)).toEqual([
    ['success', undefined],
    ['success', undefined],
    ['success', undefined],
  ])
  expect(orchestrator.events).toHaveLength(4)
  const info = orchestrator.registrations[0]?.supported_skills?.[0]
  expect(info).toMatchObject({ name: 't', events_schema: { found: { type: 'object' } } })
})

test('[E-05] progress that could not be sent is sent again, with the same id', async () => {
  let drops = 2
  orchestrator.intercept = ({ path }) => {
    if (path !== '/_worker/events' || drops === 0) return undefined
    drops -= 1
    return 'drop'
  }
  const worker = makeWorker().task('t', async (_params, task) => {
    task.progress(0.5, 'half')
    await untilAborted(task.signal)
  })
  await worker.start()
  orchestrator.give(taskOf('t'))
  await orchestrator.until(() => orchestrator.events.length === 1)
  const ids = orchestrator.requests.filter(({ path }) => path === '/_worker/events').map(({ body }) => body['event_id'])
  expect([ids.length, new Set(ids).size]).toEqual([3, 1])
})

test('[E-04] [E-05] [J-15] a cancellation over the socket aborts the task', async () => {
  const worker = makeWorker({ webSockets: true, token: 'secret' }).task('t', (_params, { signal }) =>
    untilAborted(signal),
  )
  await worker.start()
  await untilConnected()
  const upgrade = orchestrator.requests.find((request) => request.headers.upgrade === 'websocket')
  expect(upgrade?.path).toBe('/_worker/ws/w1')
  expect(upgrade?.headers).toMatchObject({ 'x-worker-token': 'secret', 'x-worker-id': 'w1' })
  const tasks = [taskOf('t'), taskOf('t')] as const
  orchestrator.give(...tasks)
  await orchestrator.until(() => worker.running.length === 2)
  // The newest orchestrators write both names, the older ones one or the other.
  orchestrator.tell({ command: 'cancel_task', task_id: tasks[0].task_id, job_id: tasks[0].job_id })
  orchestrator.tell({ type: 'cancel_task', task_id: tasks[1].task_id })
  for (const task of tasks) expect(await resultOf(task)).toMatchObject({ status: 'cancelled' })
})

test('[E-04] [E-05] other commands reach the handlers that were given for them, and noise harms nobody', async () => {
  const seen: unknown[] = []
  const worker = makeWorker({ webSockets: true })
    .task('t', () => undefined)
    .onCommand('reload', (command) => {
      seen.push(command)
      if (seen.length === 1) throw new Error('not now')
    })
  await worker.start()
  await untilConnected()
  for (const socket of orchestrator.sockets) socket.send('not json')
  orchestrator.tell({ command: 'unheard_of' })
  orchestrator.tell({ command: 'reload', params: { hard: true } })
  orchestrator.tell({ command: 'reload' })
  await expect
    .poll(() => seen)
    .toEqual([
      { name: 'reload', params: { hard: true }, taskId: undefined, jobId: undefined },
      { name: 'reload', params: {}, taskId: undefined, jobId: undefined },
    ])
  expect(() => worker.onCommand('cancel_task', () => undefined)).toThrow('cancel_task')
})

test('[E-04] [E-05] progress goes over the socket while it is open, and events where they are acknowledged', async () => {
  const worker = makeWorker({ webSockets: true }).task('t', async (_params, task) => {
    task.progress(0.5)
    await orchestrator.until(() => orchestrator.frames.length === 1)
    // The answer to a ping comes after the acknowledgement that was sent before it.
    for (const socket of orchestrator.sockets) {
      socket.ping()
      await once(socket, 'pong')
    }
    await task.sendEvent('found', { n: 1 })
  })
  await worker.start()
  await untilConnected()
  const task = taskOf('t')
  orchestrator.give(task)
  await resultOf(task)
  expect(orchestrator.frames.map((frame) => frame.event_type)).toEqual(['progress', 'found'])
  expect(orchestrator.events).toEqual([])
})

test('[E-04] [E-05] an event whose acknowledgement is lost with the socket is sent over HTTP with the same id', async () => {
  const worker = makeWorker({ webSockets: true }).task('t', async (_params, task) => {
    task.progress(0.5)
    await orchestrator.until(() => orchestrator.frames.length === 1)
    for (const socket of orchestrator.sockets) {
      socket.ping()
      await once(socket, 'pong')
    }
    orchestrator.acknowledges = false
    await task.sendEvent('found')
  })
  await worker.start()
  await untilConnected()
  const task = taskOf('t')
  orchestrator.give(task)
  await orchestrator.until(() => orchestrator.frames.length === 2)
  for (const socket of orchestrator.sockets) socket.close(1_001)
  await resultOf(task)
  expect(orchestrator.events.map((event) => event.event_id)).toEqual([orchestrator.frames[1]?.event_id])
})

test('[E-04] [E-05] where nobody acknowledges, progress goes over the socket and events over HTTP', async () => {
  orchestrator.acknowledges = false
  const worker = makeWorker({ webSockets: true }).task('t', async (_params, task) => {
    task.progress(0.5)
    await task.sendEvent('found')
  })
  await worker.start()
  await untilConnected()
  const task = taskOf('t')
  orchestrator.give(task)
  await resultOf(task)
  expect(orchestrator.frames.map((event) => event.event_type)).toEqual(['progress'])
  expect(orchestrator.events.map((event) => event.event_type)).toEqual(['found'])
})

test('[E-04] [E-05] a socket that breaks is opened again', async () => {
  const worker = makeWorker({ webSockets: true }).task('t', () => undefined)
  await worker.start()
  const upgrades = () => orchestrator.requests.filter((request) => request.headers.upgrade === 'websocket')
  await untilConnected()
  for (const socket of orchestrator.sockets) socket.terminate()
  await orchestrator.until(() => upgrades().length === 2)
  await untilConnected()
  const [first, second] = upgrades()
  // A second, of which half is chance.
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(499)
})

test('[E-05] a worker without sockets opens none', async () => {
  const worker = makeWorker().task('t', () => undefined)
  await worker.start()
  const task = taskOf('t')
  orchestrator.give(task)
  await resultOf(task)
  expect(orchestrator.requests.some((request) => request.headers.upgrade !== undefined)).toBe(false)
})
