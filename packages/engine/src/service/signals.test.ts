import type { Item } from '@impresario/core'
import type { TaskOptions } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { companyOf } from '../company.fixture.ts'
import { Signals } from './signals.ts'
import { NEVER, Stage, guarded, oneTask, settled } from '../stage.fixture.ts'
import type { StageOptions } from '../stage.fixture.ts'
import type { Recall } from '../workers/holdings.ts'

const HOUR_MS = 3_600_000
/** What is found only by looking is found so late that a test would not see it. */
const SETTINGS = { isShared: true, relookMs: HOUR_MS }

const company = (count: number, task: TaskOptions = {}): Promise<readonly Stage[]> =>
  companyOf(count, { settings: SETTINGS, task })

test('[I-01] instances know whether they are alone, and notice who comes, goes and falls silent', async () => {
  const [one, two] = await company(2)
  expect([one?.engine.hasPeers, two?.engine.hasPeers]).toEqual([true, true])
  await two?.engine.stop()
  await settled()
  expect(one?.engine.hasPeers).toBe(false)
  const three = await anotherOn(one!)
  expect([one?.engine.hasPeers, three.stage.engine.hasPeers]).toEqual([true, true])
  // From one moment to the next, without a word.
  three.cutOff()
  await one?.clock.advance(16_000)
  expect(one?.engine.hasPeers).toBe(false)
})

test('[M-02] [I-01] instances know each other by name, version, since when and what they lead', async () => {
  const [one, two] = await company(2)
  const other = { name: 'i1', version: '1.1', startedAt: 1_700_000_001 }
  await one!.clock.advance(5_000)
  await settled()
  expect(one?.engine.company.peers).toMatchObject([{ ...other, status: 'running', leads: two?.engine.leadership.led }])
  expect(two?.engine.company.peers).toMatchObject([
    { name: 'i0', status: 'running', leads: one?.engine.leadership.led },
  ])
  // Nobody leads what another does.
  expect(one?.engine.leadership.led).not.toEqual([])
  expect(two?.engine.leadership.led.filter((name) => one?.engine.leadership.led.includes(name))).toEqual([])
  await two?.engine.stop()
  await settled()
  expect(one?.engine.company.peers).toMatchObject([{ ...other, status: 'stopped' }])
  // A clock that nobody sleeps by goes on at once.
  await one?.engine.stop()
  await one?.clock.advance(601_000)
  expect(one?.engine.company.peers).toEqual([])
})

test('[M-02] [I-01] an instance that says nothing any more is silent; a name of any length fits', async () => {
  const [one] = await company(1)
  const name = '"'.repeat(2_000)
  const three = await anotherOn(one!, { name, version: 'v'.repeat(2_000), startedAt: 1 })
  expect(one?.engine.company.peers).toMatchObject([{ name: name.slice(0, 120), status: 'running' }])
  three.cutOff()
  await one?.clock.advance(16_000)
  expect(one?.engine.company.peers).toMatchObject([{ status: 'silent', startedAt: 1 }])
})

test('[I-01] an instance whose name cannot be said is heard without one', async () => {
  const [one] = await company(1)
  await anotherOn(one!, { name: '\u0000'.repeat(100), version: '1', startedAt: 1 })
  expect(one?.engine.hasPeers).toBe(true)
  expect(one?.engine.company.peers).toEqual([])
})

/** One more instance on the same storage, which can be cut off from it. */
async function anotherOn(
  { clock, storage }: Stage,
  identity?: StageOptions['identity'],
): Promise<{ readonly stage: Stage; cutOff(): void }> {
  let isCut = false
  const door = guarded(storage, () => (isCut ? new Promise<void>(() => {}) : undefined))
  const stage = new Stage([oneTask()], { clock, storage: () => door, settings: SETTINGS, identity })
  for (let ids = 0; ids < 50_000; ids += 1) stage.random.id()
  await stage.engine.start()
  await settled()
  return {
    stage,
    cutOff: () => {
      isCut = true
    },
  }
}

test('[I-01] an instance that is alone says no more than that it is there', async () => {
  const [stage] = await company(1)
  const before = await peeked(stage!)
  const jobId = await stage!.create('one')
  void stage!.engine.waitForJob(jobId, { waitMs: 1_000, signal: NEVER })
  await settled()
  expect(await peeked(stage!)).toEqual(before)
})

/** What lies there of signals. */
async function peeked({ storage }: Stage): Promise<readonly string[]> {
  const ids = Array.from({ length: 64 }, (_, place) => `signal.${place}`)
  return (await storage.peek('signals', ids)).flatMap((view) => (view === undefined ? [] : [view.lane]))
}

test('[A-03] [I-01] who waits at one instance hears at once that the job ended at another', async () => {
  const [one, two, three] = await company(3)
  const worker = await one!.worker('w')
  const jobId = await two!.create('one')
  const waiting = three!.engine.waitForJob(jobId, { waitMs: HOUR_MS, signal: NEVER })
  await settled()
  await worker.report((await worker.takeOne()).taskId)
  await settled()
  expect((await waiting)?.value.status).toBe('finished')
})

test('[A-03] [I-01] a change that crosses with the question for it is told too, and any change where that is asked for', async () => {
  const [one, two] = await company(2)
  const worker = await one!.worker('w')
  const jobId = await one!.create('one')
  await settled()
  const delivery = await worker.takeOne()
  const { version } = (await two!.engine.readJob(jobId))!
  const waiting = two!.engine.waitForJob(jobId, { waitMs: HOUR_MS, signal: NEVER })
  const following = two!.engine.waitForJob(jobId, { waitMs: HOUR_MS, signal: NEVER, afterVersion: version })
  // Both have read it; what they ask is on its way when the job ends.
  await worker.report(delivery.taskId)
  await settled()
  expect((await waiting)?.value.status).toBe('finished')
  expect((await following)?.version).toBeGreaterThan(version)
})

test('[E-04] [I-01] a task that is cancelled at one instance is recalled wherever its worker can be told', async () => {
  const [deciding, holding, other] = await company(3)
  await settled()
  const worker = await holding!.worker('w')
  const jobId = await deciding!.create('one')
  await settled()
  const { taskId } = await worker.takeOne()
  const told: Recall[] = []
  other!.engine.desk.onRecall((recall) => told.push(recall))
  const parked = deciding!.engine.desk.poll('w', { limit: 1, waitMs: HOUR_MS, signal: NEVER, wantsCancelled: true })
  await settled()
  await deciding!.engine.cancelJob(jobId, 'client')
  await settled()
  expect(told).toEqual([{ workerId: 'w', taskId, jobId }])
  expect(await parked).toMatchObject({ cancelled: [taskId], deliveries: [] })
  expect(await worker.heartbeat()).toEqual([taskId])
})

test('[E-04] [I-01] a task that another instance has sent out anew is not taken from who holds it now', async () => {
  const [one, two] = await company(2)
  const worker = await one!.worker('w')
  await one!.create('one')
  await settled()
  const { taskId } = await worker.takeOne()
  const told: Recall[] = []
  one!.engine.desk.onRecall((recall) => told.push(recall))
  // As if an older try of it had been dropped, and the word of that came late.
  const lane = JSON.stringify(['somebody', 1, ['drop', taskId.slice(0, taskId.lastIndexOf('.'))], ['drop', 'unknown']])
  await two!.storage.commit({ enqueue: [signal('signal.0', lane)] })
  await settled()
  expect(told).toEqual([])
  expect(await worker.heartbeat([taskId])).toEqual([])
})

function signal(id: string, lane: string): Item {
  return { queue: 'signals', id, lane, priority: 0, delayMs: 0, payload: null }
}

test('[D-03] [I-01] turns go round over the instances together', async () => {
  const stages = await company(2, { strategy: 'round_robin' })
  const workers = []
  for (const id of ['a', 'b', 'c']) workers.push(await stages[0]!.worker(id, { concurrencyMax: 9 }))
  await stages[0]!.clock.advance(2_000)
  for (let round = 0; round < 12; round += 1) {
    await stages[round % 2]!.create('one')
    await settled()
  }
  const lanes = await stages[0]!.storage.lanes('tasks')
  expect(Object.fromEntries(lanes.map(({ lane, ready }) => [lane, ready]))).toEqual({
    'worker:a': 4,
    'worker:b': 4,
    'worker:c': 4,
  })
})

test('[I-01] what is not understood, comes twice or cannot be sent does no harm', async () => {
  const [one, two] = await company(2)
  const { clock, random, log, storage } = two!
  let isBroken = false
  const broken = guarded(storage, (verb) => {
    if (isBroken && verb === 'commit') throw new Error('the storage is gone')
  })
  const signals = new Signals({ clock, random, log, storage: broken, isShared: true })
  const heard: string[][] = []
  signals.on('turn', (...words) => heard.push(words))
  signals.on('drop', () => {
    throw new Error('nobody understands this')
  })
  await signals.start()
  await settled()
  const said = JSON.stringify(['x', 7, ['turn', 'work', 'w'], ['drop', 'i'], [1], 'hello', ['unknown', 'word']])
  for (const lane of [said, said, 'nonsense', '{}', '[1]', '["x"]', '["x",7,["turn","again"]]']) {
    await one!.storage.commit({ enqueue: [signal('signal.1', lane)] })
  }
  expect(heard).toEqual([['work', 'w']])
  expect(log.errors).toEqual(['a signal of another instance was not understood'])
  isBroken = true
  signals.send(['turn', 'work', 'w'])
  await settled()
  expect(signals.hasPeers).toBe(true)
  await signals.stop()
  await signals.stop()
})

test('[I-01] many signals go in few commits, and one that is too long is left out', async () => {
  const [one, two] = await company(2)
  const { clock, random, log, storage } = one!
  let commits = 0
  const counted = guarded(storage, (verb) => {
    commits += verb === 'commit' ? 1 : 0
  })
  const signals = new Signals({ clock, random, log, storage: counted, isShared: true })
  await signals.start()
  await settled()
  const heard: string[] = []
  const ear = new Signals({ clock, random, log, storage: two!.storage, isShared: true })
  ear.on('news', (jobId = '') => heard.push(jobId))
  await ear.start()
  await settled()
  const before = commits
  const ids = Array.from({ length: 500 }, (_, index) => `job-${String(index).padStart(32, '0')}`)
  signals.send(['news', 'x'.repeat(1_000)])
  for (const id of ids) signals.send(['news', id])
  await settled()
  expect(heard).toEqual(ids)
  expect(commits - before).toBeLessThanOrEqual(6)
  await signals.stop()
  await ear.stop()
})
