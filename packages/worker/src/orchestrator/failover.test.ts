import { afterEach, beforeEach, expect, test } from 'vitest'
import { createWorker } from '../index.ts'
import { gate, silentLog, taskOf, TestOrchestrator } from '../orchestrator.fixture.ts'

let first: TestOrchestrator
let second: TestOrchestrator
const cleanUp: (() => Promise<void>)[] = []

beforeEach(async () => {
  first = await start(new TestOrchestrator())
  second = await start(new TestOrchestrator())
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
  const worker = createWorker({
    orchestrators: [
      { url: first.url, priority: 1 },
      { url: second.url, priority: 2 },
    ],
    id: 'w1',
    log: silentLog,
    shutdownMs: 0,
    resultRetryMs: 1,
    pollRetryMs: 1,
    heartbeatMs: 20,
    ...options,
  })
  cleanUp.push(() => worker.stop())
  return worker
}

test('[E-05] failover: registered and alive at all, work from the first alone while it answers', async () => {
  const worker = makeWorker().task('t', () => undefined)
  await worker.start()
  await Promise.all([first, second].map((one) => one.until(() => one.heartbeats.length > 2)))
  const tasks = Array.from({ length: 5 }, () => taskOf('t'))
  first.give(...tasks)
  for (const task of tasks) await first.resultOf(task)
  expect([first, second].map((one) => one.registrations.length)).toEqual([1, 1])
  expect(second.polls).toHaveLength(0)
})

test('[E-05] failover: without priorities the first of the list is the first, whatever its address', async () => {
  // Addresses differ by their ports alone, which come in any order.
  for (const list of [
    [first, second],
    [second, first],
  ]) {
    const [leader, other] = list
    const worker = makeWorker({ id: `w-${list.indexOf(first)}`, orchestrators: list.map(({ url }) => ({ url })) })
    worker.task('t', () => undefined)
    await worker.start()
    await other!.until(() => other!.heartbeats.length > 2)
    const before = other!.polls.length
    const task = taskOf('t')
    leader!.give(task)
    await leader!.resultOf(task)
    expect(other!.polls).toHaveLength(before)
    await worker.stop()
  }
})

test('[E-05] failover: the next is asked when the first is down, and the first again when it is back; each gets its own results', async () => {
  const { open, opened } = gate()
  const worker = makeWorker().task('t', async ({ hold }) => (hold === true ? opened : undefined))
  await worker.start()
  await second.until(() => second.registrations.length === 1)
  const held = taskOf('t', { hold: true })
  first.give(held)
  await first.until(() => first.polls.length === 2)

  await first.close()
  const elsewhere = taskOf('t')
  second.give(elsewhere)
  expect(await second.resultOf(elsewhere)).toMatchObject({ status: 'success' })
  open()

  await first.listen()
  expect(await first.resultOf(held)).toMatchObject({ status: 'success' })
  const asked = first.polls.length
  await first.until(() => first.polls.length > asked)
  const back = taskOf('t')
  first.give(back)
  await first.resultOf(back)
  expect(second.results.map((result) => result.task_id)).toEqual([elsewhere.task_id])
})

test('[E-05] failover: an orchestrator that takes requests and never answers is left after the time of a poll', async () => {
  const worker = makeWorker({ pollMs: 50 }).task('t', () => undefined)
  await worker.start()
  await second.until(() => second.registrations.length === 1)
  first.intercept = () => 'hold'
  const task = taskOf('t')
  second.give(task)
  expect(await second.resultOf(task)).toMatchObject({ status: 'success' })
})

test('[E-05] failover: a worker that starts while the first is down works for the next, and then for the first', async () => {
  await first.close()
  const worker = makeWorker({ registrationRetryMs: 10, registrationRetryMsMax: 50 }).task('t', () => undefined)
  await worker.start()
  const elsewhere = taskOf('t')
  second.give(elsewhere)
  await second.resultOf(elsewhere)
  await first.listen()
  const task = taskOf('t')
  first.give(task)
  expect(await first.resultOf(task)).toMatchObject({ status: 'success' })
})

test('[E-05] in rotation, by weight, evenly spread', async () => {
  const order: string[] = []
  const tally = (name: string, one: TestOrchestrator): void => {
    one.intercept = ({ path }) => {
      if (!path.endsWith('/tasks/batch')) return undefined
      order.push(name)
      return { status: 200, body: { tasks: [] } }
    }
  }
  const orchestrators = [
    { url: first.url, priority: 1, weight: 3 },
    { url: second.url, priority: 2, weight: 1 },
  ]
  const worker = makeWorker({ orchestrators, orchestratorMode: 'round_robin', idlePollMs: 0 }).task(
    't',
    () => undefined,
  )
  await worker.start()
  await second.until(() => second.registrations.length === 1)
  tally('a', first)
  tally('b', second)
  await second.until(() => order.filter((name) => name === 'b').length > 5)
  // From the first poll of the second one on, whatever was asked before both were there.
  const polls = order.slice(order.indexOf('b')).join('')
  expect(polls.slice(0, 16)).toBe('baaabaaabaaabaaa')
})

test('[E-05] in rotation, an orchestrator that is down costs the others nothing', async () => {
  const worker = makeWorker({ orchestratorMode: 'round_robin' }).task('t', () => undefined)
  await worker.start()
  await second.until(() => second.registrations.length === 1)
  await first.close()
  const tasks = Array.from({ length: 5 }, () => taskOf('t'))
  for (const task of tasks) {
    second.give(task)
    expect(await second.resultOf(task)).toMatchObject({ status: 'success' })
  }
})

test('[E-05] waterfall: the next is asked while the first has no work, and the first again after every find', async () => {
  const order: string[] = []
  const log = (name: string, one: TestOrchestrator): void => {
    one.intercept = ({ path }) => {
      if (!path.endsWith('/tasks/batch')) return undefined
      order.push(name)
      if (name === 'b' && order.length < 8) return { status: 200, body: { tasks: [taskOf('t')] } }
      return { status: 200, body: { tasks: [] } }
    }
  }
  const worker = makeWorker({ orchestratorMode: 'waterfall', idlePollMs: 0 }).task('t', () => undefined)
  log('a', first)
  log('b', second)
  await worker.start()
  await second.until(() => order.length > 12)
  const polls = order.slice(order.indexOf('b')).join('')
  expect(polls.slice(0, 8)).toBe('babababa')
  await second.until(() => second.results.length > 0)
})
