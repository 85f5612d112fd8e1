import { CATCH_UP_DEFAULT, SCHEDULER_CLIENT, blueprint } from '@impresario/core'
import type { Clock, Job, Schedule, Storage, Trigger } from '@impresario/core'
import { expect, test } from 'vitest'
import { storageGround } from '../../../../test/servers/storage-ground.ts'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Engine } from '../engine.ts'
import { ListLog, Stage, VirtualClock, guarded, oneTask, settled, registryOf } from '../stage.fixture.ts'
import type { BlueprintSource } from '../job/script-registry.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

const quick = blueprint('quick', { start: 'done' }, (state) => ({ done: state.end() }))

const hourly: Trigger = { kind: 'interval', everyMs: HOUR_MS }
/** The virtual clock begins at 2023-11-14T22:13:20Z. */
const daily: Trigger = { kind: 'daily', at: 23 * 60 }
const soon: Trigger = { kind: 'daily', at: 22 * 60 + 15 }

function schedule(trigger: Trigger, over: Partial<Schedule> = {}): Schedule {
  return {
    name: 'report',
    blueprint: 'quick',
    initialData: {},
    isEnabled: true,
    trigger,
    timeZone: 'UTC',
    misfire: 'run_once',
    catchUpMax: CATCH_UP_DEFAULT,
    clientId: SCHEDULER_CLIENT,
    ...over,
  }
}

async function jobsOn(storage: Storage): Promise<readonly Job[]> {
  const found = await storage.list('job', { limit: 1_000 })
  return found.map(({ value }) => value)
}

/** Lets time pass, and then what follows. An engine that is not started sleeps nowhere, so hours cost nothing. */
async function pass(stage: Stage, ...spansMs: readonly number[]): Promise<void> {
  for (const ms of spansMs) {
    await stage.clock.advance(ms)
    await stage.run()
  }
}

/** The times that jobs were started for, oldest first, without the year. */
async function firingsOn(storage: Storage): Promise<readonly unknown[]> {
  const jobs = await jobsOn(storage)
  return jobs.map(({ metadata }) => JSON.stringify(metadata?.['scheduled_for']).slice(6, -1)).sort()
}

test('[F-04] an interval fires at the start and then in step, as a job with all that its schedule says', async () => {
  const stage = new Stage([quick])
  await stage.engine.scheduler.replace([
    schedule(hourly, {
      priority: 7,
      dispatchTimeoutMs: 5_000,
      resultTimeoutMs: 6_000,
      metadata: { team: 'ops' },
      webhookUrl: 'https://example.com/hook',
      clientId: 'acme',
      initialData: { a: 1 },
    }),
  ])
  await stage.run()
  expect(await firingsOn(stage.storage)).toEqual(['11-14T22:13:20Z'])
  const [job] = await jobsOn(stage.storage)
  expect(job).toMatchObject({
    blueprint: 'quick',
    status: 'finished',
    client: { id: 'acme' },
    priority: 7,
    dispatchTimeoutMs: 5_000,
    resultTimeoutMs: 6_000,
    initialData: { a: 1 },
    metadata: { team: 'ops', schedule: 'report', scheduled_for: '2023-11-14T22:13:20Z' },
    webhookUrl: 'https://example.com/hook',
  })
  await pass(stage, HOUR_MS - 1, 2, HOUR_MS)
  expect(await firingsOn(stage.storage)).toEqual(['11-14T22:13:20Z', '11-14T23:13:20Z', '11-15T00:13:20Z'])
})

test('[F-04] a calendar waits for its time, and a job without an owner is the scheduler’s', async () => {
  const stage = new Stage([quick])
  await stage.engine.scheduler.replace([schedule(daily)])
  await stage.run()
  expect(await jobsOn(stage.storage)).toEqual([])
  await pass(stage, HOUR_MS)
  expect(await firingsOn(stage.storage)).toEqual(['11-14T23:00:00Z'])
  expect((await jobsOn(stage.storage))[0]?.client).toEqual({ id: 'scheduler', plan: 'system' })
})

test('[F-04] started engines fire to the second without being asked', async () => {
  const stage = new Stage([quick])
  await stage.engine.start()
  await stage.engine.scheduler.replace([schedule(soon)])
  await stage.clock.advance(2 * MINUTE_MS)
  expect(await firingsOn(stage.storage)).toEqual(['11-14T22:15:00Z'])
  const jobs = await jobsOn(stage.storage)
  expect(jobs.map(({ createdAt }) => createdAt % MINUTE_MS)).toEqual([0])
  await stage.engine.stop()
})

// ── One job for each firing ──────────────────────────────────────────────────

interface Instance {
  readonly engine: Engine
  crash: () => void
}

/** Several engines on one storage, each of which can die without a word. */
function fleet(count: number): { clock: VirtualClock; storage: Storage; instances: Instance[]; open: () => Instance } {
  const clock = new VirtualClock()
  const storage = testStorage({ now: clock.now })
  let ids = 0
  const random = { next: () => 0.5, id: () => `job-${String((ids += 1)).padStart(6, '0')}` }
  const open = (): Instance => {
    let isDead = false
    const own = guarded(storage, () => (isDead ? new Promise<void>(() => undefined) : undefined))
    const engine = new Engine({
      storage: own,
      clock,
      random,
      log: new ListLog(),
      blueprints: registryOf([quick]),
      settings: { isShared: true },
    })
    return {
      engine,
      crash: () => {
        isDead = true
      },
    }
  }
  return { clock, storage, instances: Array.from({ length: count }, open), open }
}

test('[F-04] [F-05] each firing has one job, over three instances of which the leading one dies again and again', async () => {
  const { clock, storage, instances, open } = fleet(3)
  const plans = [schedule({ kind: 'interval', everyMs: MINUTE_MS })]
  for (const { engine } of instances) {
    await engine.start()
    await engine.scheduler.replace(plans)
  }
  // Three deaths are enough where each of the thousands of calls goes to a disk or a server.
  const minutesMax = storageGround().backend === 'memory' ? 30 : 9
  for (let minutes = 0; minutes < minutesMax; minutes += 1) {
    await clock.advance(MINUTE_MS)
    if (minutes % 3 !== 0) continue
    const leader = instances.findIndex(({ engine }) => engine.leadership.isLeading('scheduler'))
    expect(leader).not.toBe(-1)
    instances[leader]?.crash()
    const next = open()
    instances[leader] = next
    await next.engine.start()
    await next.engine.scheduler.replace(plans)
  }
  const firings = await firingsOn(storage)
  expect(firings).toHaveLength(minutesMax + 1)
  expect(new Set(firings).size).toBe(minutesMax + 1)
  await Promise.all(instances.map(({ engine }) => engine.stop()))
})

test('[F-05] a leader that was paused in the middle of a firing creates no job when it wakes', async () => {
  const { clock, storage, instances } = fleet(1)
  const held: (() => void)[] = []
  let [isHolding, isPaused] = [false, false]
  const paused = guarded(storage, (verb) => {
    // From the commit of the firing on nothing of it goes on.
    isPaused ||= isHolding && verb === 'commit'
    return isPaused ? new Promise<void>((resolve) => held.push(resolve)) : undefined
  })
  const random = { next: () => 0.5, id: () => 'job-of-the-paused' }
  const old = new Engine({ storage: paused, clock, random, log: new ListLog(), blueprints: registryOf([quick]) })
  await old.start()
  await old.scheduler.replace([schedule(soon)])
  await clock.advance(MINUTE_MS)
  isHolding = true
  await clock.advance(MINUTE_MS)
  expect(await jobsOn(storage)).toEqual([])
  const [heir] = instances as [Instance]
  await heir.engine.start()
  await heir.engine.scheduler.replace([schedule(soon)])
  await clock.advance(MINUTE_MS)
  expect(await jobsOn(storage)).toHaveLength(1)
  ;[isHolding, isPaused] = [false, false]
  for (const goOn of held) goOn()
  await settled()
  // The one of the heir.
  expect((await jobsOn(storage)).map(({ id }) => id)).toEqual([expect.not.stringContaining('paused')])
  await heir.engine.stop()
})

test('[F-04] a commit whose outcome is unknown is looked up, not repeated', async () => {
  const clock = new VirtualClock()
  let isLost = true
  const lossy = guarded(
    testStorage({ now: clock.now }),
    () => undefined,
    (verb) => {
      if (verb !== 'commit' || !isArmed || !isLost) return
      isLost = false
      throw new Error('The answer was lost.')
    },
  )
  let isArmed = false
  const stage = new Stage([quick], { clock, storage: () => lossy })
  await stage.engine.scheduler.replace([schedule(daily)])
  await stage.run()
  isArmed = true
  await pass(stage, HOUR_MS)
  expect(stage.log.errors).toEqual(['a schedule could not be served and is tried again'])
  await pass(stage, MINUTE_MS)
  expect(await jobsOn(stage.storage)).toHaveLength(1)
})

// ── Downtime and clocks ──────────────────────────────────────────────────────

test.each([
  ['skip', []],
  ['run_once', ['11-17T23:00:00Z']],
  ['catch_up', ['11-14T23:00:00Z', '11-15T23:00:00Z', '11-16T23:00:00Z', '11-17T23:00:00Z']],
] as const)('[F-04] after a time in which nothing ran: %s', async (misfire, expected) => {
  const stage = new Stage([quick])
  await stage.engine.scheduler.replace([schedule(daily, { misfire })])
  await stage.run()
  await stage.restart()
  await stage.clock.advance(4 * DAY_MS - HOUR_MS / 2)
  await stage.engine.scheduler.replace([schedule(daily, { misfire })])
  await stage.run()
  expect(await firingsOn(stage.storage)).toEqual(expected)
  await pass(stage, 76 * MINUTE_MS + 40_000)
  expect(await firingsOn(stage.storage)).toEqual([...expected, '11-18T23:00:00Z'])
})

test('[F-04] the clock on the wall may be set: back fires nothing twice, ahead counts as downtime', async () => {
  const virtual = new VirtualClock()
  let offsetMs = 0
  const clock: Clock = {
    now: virtual.now,
    sleep: (ms, signal) => virtual.sleep(ms, signal),
    wall: () => virtual.now() + offsetMs,
  }
  const storage = testStorage({ now: virtual.now })
  let ids = 0
  const random = { next: () => 0.5, id: () => `job-${(ids += 1)}` }
  const engine = new Engine({ storage, clock, random, log: new ListLog(), blueprints: registryOf([quick]) })
  await engine.start()
  await engine.scheduler.replace([schedule(soon)])
  await virtual.advance(2 * MINUTE_MS)
  expect(await firingsOn(storage)).toEqual(['11-14T22:15:00Z'])
  offsetMs = -2 * MINUTE_MS
  await virtual.advance(3 * MINUTE_MS)
  expect(await firingsOn(storage)).toEqual(['11-14T22:15:00Z'])
  offsetMs = 3 * DAY_MS
  await virtual.advance(2_000)
  expect(await firingsOn(storage)).toEqual(['11-14T22:15:00Z', '11-17T22:15:00Z'])
  await engine.stop()
})

// ── Changes at run time ──────────────────────────────────────────────────────

test('[F-04] schedules are replaced while they run: all of them, or none when one cannot work', async () => {
  const strict = blueprint('strict', { start: 'done', input: mustHaveName() }, (state) => ({ done: state.end() }))
  const stage = new Stage([quick, strict])
  const { scheduler } = stage.engine
  await scheduler.replace([schedule(hourly)])
  const other = schedule(hourly, { name: 'other' })
  await expect(scheduler.replace([other, schedule(hourly, { blueprint: 'nowhere' })])).rejects.toThrow(
    'The schedule "report" names the blueprint "nowhere", which is not there.',
  )
  await expect(scheduler.replace([other, other])).rejects.toThrow('The schedule "other" is there twice.')
  await expect(scheduler.replace([schedule(hourly, { blueprint: 'strict' })])).rejects.toThrow(
    'The schedule "report" has data that "strict" refuses: name: is missing',
  )
  await expect(scheduler.replace([schedule(hourly, { timeZone: 'Mars/Olympus' })])).rejects.toThrow('Mars/Olympus')
  expect((await scheduler.list()).map((view) => view.schedule.name)).toEqual(['report'])
  await scheduler.replace([other])
  await stage.run()
  expect((await jobsOn(stage.storage)).map(({ metadata }) => metadata?.['schedule'])).toEqual(['other'])
  await scheduler.replace([])
  await pass(stage, 2 * HOUR_MS)
  expect(await jobsOn(stage.storage)).toHaveLength(1)
})

/** A schema as any library of the standard makes them. */
function mustHaveName(): NonNullable<Parameters<typeof blueprint>[1]['input']> {
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value: unknown) =>
        typeof value === 'object' && value !== null && 'name' in value
          ? { value }
          : { issues: [{ message: 'is missing', path: ['name'] }] },
    },
  }
}

test('[F-04] a schedule that was off begins anew when it is switched on: being off is not being down', async () => {
  const stage = new Stage([quick])
  const { scheduler } = stage.engine
  await scheduler.replace([schedule(daily, { misfire: 'catch_up' })])
  await pass(stage, 0, HOUR_MS)
  expect(await jobsOn(stage.storage)).toHaveLength(1)
  await scheduler.replace([schedule(daily, { misfire: 'catch_up', isEnabled: false })])
  await stage.run()
  expect((await scheduler.list())[0]).toMatchObject({ nextAt: undefined, lastJobId: undefined })
  await stage.clock.advance(5 * DAY_MS)
  await stage.run()
  await scheduler.replace([schedule(daily, { misfire: 'catch_up' })])
  await stage.run()
  expect(await jobsOn(stage.storage)).toHaveLength(1)
})

test('[F-04] a job whose blueprint is away for a while is started when it is back', async () => {
  const all = registryOf([quick])
  let isAway = false
  const source: BlueprintSource = {
    get: (name, version) => all.get(name, version),
    latest: (name) => (isAway ? undefined : all.latest(name)),
  }
  const stage = new Stage([], { source })
  await stage.engine.scheduler.replace([schedule(daily), schedule(daily, { name: 'second' })])
  await stage.run()
  isAway = true
  await pass(stage, 50 * MINUTE_MS)
  expect(stage.log.errors).toContain('a schedule could not be served and is tried again')
  expect(await jobsOn(stage.storage)).toEqual([])
  isAway = false
  await pass(stage, MINUTE_MS)
  expect(await firingsOn(stage.storage)).toEqual(['11-14T23:00:00Z', '11-14T23:00:00Z'])
})

// ── Looking and doing by hand ────────────────────────────────────────────────

test('[F-04] the list says when each schedule fires next, fired last, and as which job', async () => {
  const stage = new Stage([quick])
  const { scheduler } = stage.engine
  const begin = stage.clock.now()
  await scheduler.replace([schedule(hourly), schedule(daily, { name: 'daily' })])
  const at = Date.UTC(2023, 10, 14, 23)
  const none = { lastFor: undefined, lastAt: undefined, lastJobId: undefined, recent: [] }
  const ten = (from: number, stepMs: number): readonly number[] =>
    Array.from({ length: 10 }, (_, index) => from + index * stepMs)
  expect(await scheduler.list()).toEqual([
    { schedule: schedule(hourly), nextAt: begin, upcoming: ten(begin, HOUR_MS), ...none },
    { schedule: schedule(daily, { name: 'daily' }), nextAt: at, upcoming: ten(at, DAY_MS), ...none },
  ])
  await stage.run()
  const [first, second] = await scheduler.list()
  expect(first).toMatchObject({ nextAt: begin + HOUR_MS, lastFor: begin, lastAt: begin, lastJobId: 'job-000001' })
  expect(first?.upcoming).toEqual(ten(begin + HOUR_MS, HOUR_MS))
  expect(first?.recent).toMatchObject([{ firedFor: begin, firedAt: begin, jobId: 'job-000001' }])
  // That it has begun is no firing.
  expect(second?.recent).toEqual([])
})

test('[F-04] the list keeps the last ten firings, those that were skipped with the reason', async () => {
  const stage = new Stage([quick])
  const { scheduler } = stage.engine
  const begin = stage.clock.now()
  await scheduler.replace([schedule(hourly, { misfire: 'skip' })])
  await stage.run()
  // Nothing runs for more than two hours.
  await pass(stage, 2 * HOUR_MS + 30 * MINUTE_MS)
  const [missed] = await scheduler.list()
  expect(missed?.recent).toMatchObject([
    { firedFor: begin + 2 * HOUR_MS, firedAt: begin + 2 * HOUR_MS + 30 * MINUTE_MS, skipped: 'missed' },
    { firedFor: begin, jobId: 'job-000001' },
  ])
  expect(missed?.recent[0]?.jobId).toBeUndefined()
  await pass(stage, 30 * MINUTE_MS, ...Array.from({ length: 11 }, () => HOUR_MS))
  const [later] = await scheduler.list()
  expect(later?.recent).toHaveLength(10)
  expect(later?.recent[0]?.firedFor).toBe(begin + 14 * HOUR_MS)
  expect(later?.recent.every(({ jobId }) => jobId !== undefined)).toBe(true)
})

test('[F-04] a schedule can be run by hand, on any instance, without changing its firings', async () => {
  const stage = new Stage([quick])
  const { scheduler } = stage.engine
  await scheduler.replace([schedule(daily, { isEnabled: false })])
  const { jobId } = await scheduler.runNow('report')
  await stage.run()
  expect(await stage.job(jobId)).toMatchObject({ status: 'finished', metadata: { schedule: 'report' } })
  expect((await scheduler.list())[0]?.lastJobId).toBeUndefined()
  await expect(scheduler.runNow('nothing')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('[F-04] a paused schedule starts nothing, says so, and goes on from its next time', async () => {
  const stage = new Stage([quick])
  const { scheduler } = stage.engine
  await scheduler.replace([schedule(daily, { misfire: 'catch_up' })])
  await pass(stage, 0, HOUR_MS)
  expect(await jobsOn(stage.storage)).toHaveLength(1)
  await scheduler.pause('report', 'chief')
  await scheduler.pause('report', 'somebody else')
  await pass(stage, DAY_MS, DAY_MS)
  expect(await jobsOn(stage.storage)).toHaveLength(1)
  const [still] = await scheduler.list()
  expect(still).toMatchObject({ paused: { by: 'chief' }, nextAt: undefined, upcoming: [] })
  await scheduler.resume('report', 'chief')
  await scheduler.resume('report', 'chief')
  await stage.run()
  expect(await jobsOn(stage.storage)).toHaveLength(1)
  const [again] = await scheduler.list()
  expect(again?.paused).toBeUndefined()
  expect(again?.recent.map(({ skipped }) => skipped)).toEqual(['paused', undefined])
  await pass(stage, DAY_MS)
  expect(await firingsOn(stage.storage)).toEqual(['11-14T23:00:00Z', '11-17T23:00:00Z'])
})

test('[F-04] what is not there or switched off is not paused', async () => {
  const stage = new Stage([quick])
  const { scheduler } = stage.engine
  await scheduler.replace([schedule(daily, { isEnabled: false })])
  await expect(scheduler.pause('report', 'chief')).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  await expect(scheduler.pause('nothing', 'chief')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(scheduler.resume('nothing', 'chief')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('[F-04] [F-05] a schedule that one instance pauses is fired by none, and by one when another resumes it', async () => {
  const { clock, storage, instances, open } = fleet(2)
  const everyMinute: Trigger = { kind: 'interval', everyMs: MINUTE_MS }
  await Promise.all(
    instances.map(async ({ engine }) => {
      await engine.start()
      await engine.scheduler.replace([schedule(everyMinute)])
    }),
  )
  await clock.advance(MINUTE_MS / 2)
  expect(await jobsOn(storage)).toHaveLength(1)
  const leader = instances.find(({ engine }) => engine.leadership.isLeading('scheduler'))
  const other = instances.find((one) => one !== leader)
  // The leader does not hear of it. What it has read is old, so that it writes nothing.
  await other?.engine.scheduler.pause('report', 'chief')
  await clock.advance(2 * MINUTE_MS)
  expect(await jobsOn(storage)).toHaveLength(1)
  // A restart changes nothing.
  leader?.crash()
  const fresh = open()
  await fresh.engine.start()
  await fresh.engine.scheduler.replace([schedule(everyMinute)])
  await clock.advance(2 * MINUTE_MS)
  expect(await jobsOn(storage)).toHaveLength(1)
  await fresh.engine.scheduler.resume('report', 'chief')
  await clock.advance(MINUTE_MS)
  expect(await jobsOn(storage)).toHaveLength(2)
  await Promise.all([other?.engine.stop(), fresh.engine.stop()])
})

test('[F-04] an engine without schedules leaves them to those that have some', async () => {
  const stage = new Stage([oneTask()])
  await stage.engine.start()
  await stage.clock.advance(1_000)
  expect(stage.engine.leadership.isLeading('scheduler')).toBe(false)
  expect(stage.engine.leadership.isLeading('health-checker')).toBe(true)
  await stage.engine.stop()
})
