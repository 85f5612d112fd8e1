import { blueprint, createBlueprintRegistry } from '@impresario/core'
import type { RunnableBlueprint } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Stage, guarded, settled } from '../stage.fixture.ts'

/** Its handler calls `run`, and the job ends when that has returned. */
function calling(run: (jobId: string, clientId: string, signal: AbortSignal) => unknown, name = 'calling') {
  return blueprint(name, { start: 'a' }, (state) => ({
    a: state.handler(async (context, actions) => {
      await run(context.jobId, context.client.id, context.signal)
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
}

/** Handlers that stand still until the test lets them go. */
function held() {
  const waiting = new Map<string, () => void>()
  const begun: string[] = []
  const run = (jobId: string): Promise<void> => {
    begun.push(jobId)
    return new Promise((resolve) => {
      waiting.set(jobId, resolve)
    })
  }
  const release = (): void => {
    for (const resolve of waiting.values()) resolve()
    waiting.clear()
  }
  return { run, begun, release }
}

test('[C-01] many handlers run at a time', async () => {
  const { run, begun, release } = held()
  const stage = new Stage([calling(run)])
  const ids = await Promise.all(Array.from({ length: 40 }, () => stage.create('calling')))
  const ticking = stage.engine.tick()
  await settled()
  expect([begun.length, stage.engine.executor.running]).toEqual([40, 40])
  release()
  await ticking
  expect(await Promise.all(ids.map((id) => stage.statusOf(id)))).toEqual(ids.map(() => 'finished'))
})

test('[C-01] never more handlers run than allowed, and a place that gets free is used at once', async () => {
  let running = 0
  let runningMax = 0
  const { run, begun, release } = held()
  const counted = calling(async (jobId) => {
    running += 1
    runningMax = Math.max(runningMax, running)
    await run(jobId)
    running -= 1
  })
  const stage = new Stage([counted], { settings: { executorConcurrencyMax: 3 } })
  for (let jobs = 0; jobs < 8; jobs += 1) await stage.create('calling')
  await stage.engine.start()
  for (const seen of [3, 6, 8]) {
    await settled()
    expect(begun).toHaveLength(seen)
    release()
  }
  await settled()
  expect([running, runningMax, stage.engine.executor.running]).toEqual([0, 3, 0])
  await stage.engine.stop()
})

test('[C-01] a storage that answers late changes nothing about the limit, nor about what a tick waits for', async () => {
  const { run, begun, release } = held()
  const slow = { settings: { executorConcurrencyMax: 2 } }
  const stage = new Stage([calling(run)], {
    ...slow,
    storage: (clock) => guarded(testStorage({ now: clock.now }), () => settled()),
  })
  for (let jobs = 0; jobs < 4; jobs += 1) await stage.create('calling')
  let isTicked = false
  const first = stage.engine.executor.tick().then(() => {
    isTicked = true
  })
  await settled()
  await settled()
  const second = stage.engine.executor.tick()
  for (let turns = 0; turns < 6; turns += 1) await settled()
  expect([begun.length, isTicked]).toEqual([2, false])
  release()
  await Promise.all([first, second])
  expect(stage.engine.executor.running).toBe(0)
})

test('[C-01] a client with 500 jobs does not keep another one waiting', async () => {
  const order: string[] = []
  const noted = calling((_jobId, clientId) => order.push(clientId))
  const stage = new Stage([noted], { settings: { executorConcurrencyMax: 10 } })
  const many = Array.from({ length: 500 }, () => ({ blueprint: 'calling', client: { id: 'A' }, initialData: {} }))
  await stage.engine.createJobs(many)
  await stage.create('calling', { client: { id: 'B' } })
  await stage.engine.executor.tick()
  expect(order).toHaveLength(10)
  expect(order.indexOf('B')).toBeOneOf([0, 1])
})

test('[C-01] of one client the job with the higher priority comes first', async () => {
  const order: string[] = []
  const stage = new Stage([calling((jobId) => order.push(jobId))], { settings: { executorConcurrencyMax: 1 } })
  const low = await stage.create('calling', { priority: 1 })
  const high = await stage.create('calling', { priority: 5 })
  const mid = await stage.create('calling', { priority: 3 })
  await stage.run()
  expect(order).toEqual([high, mid, low])
})

test('[C-03] a handler that throws is tried again, later each time, then put aside with error and stack', async () => {
  let runs = 0
  const stage = new Stage([
    calling(() => {
      runs += 1
      throw new TypeError(`run ${runs}`)
    }),
  ])
  // The longest that the jitter allows.
  stage.random.chance = 1
  const jobId = await stage.begin('calling')
  expect([runs, await stage.statusOf(jobId)]).toEqual([1, 'running'])
  for (const [waitMs, runsThen] of [
    [1_000, 2],
    [2_000, 3],
    [4_000, 4],
  ] as const) {
    await stage.after(waitMs - 1)
    expect(runs).toBe(runsThen - 1)
    await stage.after(1)
    expect(runs).toBe(runsThen)
  }
  const job = await stage.job(jobId)
  expect([job.status, job.state, job.error?.code]).toEqual(['quarantined', 'a', 'HANDLER_FAILED'])
  expect(job.error?.message).toBe('The handler of "a" failed 4 times: run 4')
  expect(job.error?.stack).toContain('executor.test')
  await stage.after(60_000)
  expect(runs).toBe(LIMITS.handlerAttemptsMax)
})

test('[C-03] of what a handler throws only the beginning is kept', async () => {
  const long = 'x'.repeat(100_000)
  const stage = new Stage([calling(() => Promise.reject(Object.assign(new Error(long), { stack: long })))])
  const jobId = await stage.begin('calling')
  await stage.after(60_000)
  const { error } = await stage.job(jobId)
  expect(error?.message).toBe(`The handler of "a" failed 4 times: ${'x'.repeat(LIMITS.handlerErrorCharsMax - 1)}…`)
  expect(error?.stack).toBe(`${'x'.repeat(LIMITS.handlerStackCharsMax - 1)}…`)
})

test('[C-03] the jitter draws the wait anew, never below half of the shortest', async () => {
  let runs = 0
  const stage = new Stage([
    calling(() => {
      runs += 1
      throw new Error('no')
    }),
  ])
  stage.random.chance = 0
  await stage.begin('calling')
  await stage.after(499)
  expect(runs).toBe(1)
  await stage.after(1)
  expect(runs).toBe(2)
})

test('[C-03] a handler that works again in time loses nothing', async () => {
  let runs = 0
  const stage = new Stage([
    calling(() => {
      runs += 1
      if (runs < 3) throw new Error('not yet')
    }),
  ])
  const jobId = await stage.begin('calling')
  await stage.after(10_000)
  const job = await stage.job(jobId)
  expect([runs, job.status, job.error]).toEqual([3, 'finished', undefined])
})

test.each([
  ['undefined', undefined, 'Something that is not an Error was thrown: undefined'],
  ['null', null, 'Something that is not an Error was thrown: null'],
  ['a string', 'no', 'Something that is not an Error was thrown: no'],
  ['an object without a prototype', Object.create(null), 'Something that is not an Error was thrown'],
  ['an error with a broken message', Object.assign(new Error('x'), { message: { odd: 1 } }), '[object Object]'],
])('[C-03] throwing %s is a failure like any other', async (_name, thrown: unknown, message) => {
  const stage = new Stage([
    calling(() => {
      throw thrown
    }),
  ])
  const jobId = await stage.begin('calling')
  await stage.after(60_000)
  const job = await stage.job(jobId)
  expect(job.status).toBe('quarantined')
  expect(job.error?.message).toContain(`failed 4 times: ${message}`)
  expect(stage.log.errors).toEqual([])
})

test('[C-03] a handler that never answers has failed after its time; its signal says so', async () => {
  const signals: AbortSignal[] = []
  const stage = new Stage([
    calling(async (_jobId, _clientId, signal) => {
      signals.push(signal)
      await new Promise<never>(() => undefined)
    }),
  ])
  const jobId = await stage.create('calling')
  const ticking = stage.engine.tick()
  await stage.clock.advance(59_999)
  expect([stage.engine.executor.running, signals[0]?.aborted]).toEqual([1, false])
  await stage.clock.advance(1)
  await ticking
  const job = await stage.job(jobId)
  expect([job.failures, job.trail.at(-1)?.note]).toEqual([1, 'The handler of "a" did not answer within 60 s.'])
  expect([signals[0]?.aborted, stage.engine.executor.running]).toEqual([true, 0])
})

test('[C-03] what a handler answers after its time is ignored', async () => {
  const answers: (() => void)[] = []
  const stage = new Stage([
    blueprint('late', { start: 'a' }, (state) => ({
      a: state.handler(async (_context, actions) => {
        const run = answers.length
        await new Promise<void>((resolve) => {
          answers.push(resolve)
        })
        return actions.transitionTo('done', { run })
      }),
      done: state.end(),
    })),
  ])
  const jobId = await stage.create('late')
  await stage.engine.start()
  await stage.clock.advance(60_000)
  answers[0]?.()
  await settled()
  expect([await stage.statusOf(jobId), (await stage.job(jobId)).stateHistory]).toEqual(['running', {}])
  await stage.clock.advance(1_000)
  expect(answers).toHaveLength(2)
  answers[1]?.()
  await settled()
  expect([await stage.statusOf(jobId), (await stage.job(jobId)).result]).toEqual(['finished', { run: 1 }])
  await stage.engine.stop()
})

test('[C-05] the signal of a running handler aborts when its job is cancelled, and its answer is ignored', async () => {
  const signals: AbortSignal[] = []
  const { run, release } = held()
  const stage = new Stage([
    calling(async (jobId, _clientId, signal) => {
      signals.push(signal)
      await run(jobId)
    }),
  ])
  const jobId = await stage.create('calling')
  const other = await stage.create('calling')
  const ticking = stage.engine.tick()
  await settled()
  await stage.engine.cancelJob(jobId, 'test')
  expect(signals.map((signal) => signal.aborted)).toEqual([true, false])
  release()
  await ticking
  await stage.run()
  expect([await stage.statusOf(jobId), await stage.statusOf(other)]).toEqual(['cancelled', 'finished'])
})

test('[C-06] a job that enters too many states is put aside', async () => {
  let runs = 0
  const circling = blueprint('circling', { start: 'a', transitionsMax: 20 }, (state) => ({
    a: state.handler((context, actions) => {
      runs += 1
      return context.initialData['stop'] === true ? actions.transitionTo('done') : actions.transitionTo('a')
    }),
    done: state.end(),
  }))
  const stage = new Stage([circling])
  const jobId = await stage.begin('circling')
  const job = await stage.job(jobId)
  expect([job.status, job.error?.code, runs]).toEqual(['quarantined', 'LOOP_LIMIT', 20])
  expect(job.error?.message).toContain('20 states')
  // The count begins anew for a person who has looked at it.
  await stage.engine.retryJob(jobId, 'test', { initialData: { stop: true } })
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('finished')
})

/** Two states with a task between them. The name of the last state tells the versions apart. */
function versioned(version: number, migrates = false) {
  return blueprint(
    'versioned',
    {
      start: 'ask',
      version,
      ...(migrates
        ? {
            migrate: (job: { state: string; blueprintVersion: number; stateHistory: object }) =>
              job.state === 'use'
                ? { state: 'use', stateHistory: { ...job.stateHistory, from: job.blueprintVersion } }
                : undefined,
          }
        : {}),
    },
    (state) => ({
      ask: state.handler((_context, actions) =>
        actions.dispatchTask({ type: 'work', transitions: { success: 'use' } }),
      ),
      use: state.handler((_context, actions) => actions.transitionTo('done', { version })),
      done: state.end(),
    }),
  )
}

/** Blueprints that can be taken away and put back while the engine runs. */
function swappable(...first: readonly RunnableBlueprint[]) {
  let registry = createBlueprintRegistry()
  const load = (...blueprints: readonly RunnableBlueprint[]): void => {
    registry = createBlueprintRegistry()
    for (const one of blueprints) registry.register(one)
  }
  load(...first)
  const source = {
    get: (name: string, version: number) => registry.get(name, version),
    latest: (name: string) => registry.latest(name),
  }
  return { source, load }
}

test('[A-08] a job goes on under the version that it began with, while new ones begin under the newest', async () => {
  const { source, load } = swappable(versioned(1))
  const stage = new Stage([], { source })
  const worker = await stage.worker('w', { concurrencyMax: 2 })
  const old = await stage.begin('versioned')
  load(versioned(1), versioned(2))
  const young = await stage.begin('versioned')
  for (const { taskId } of await worker.take(2)) await worker.report(taskId)
  await stage.run()
  expect([(await stage.job(old)).result, (await stage.job(young)).result]).toEqual([{ version: 1 }, { version: 2 }])
})

test('[A-08] a job whose version is gone is migrated by the newest, if that knows how', async () => {
  const { source, load } = swappable(versioned(1))
  const stage = new Stage([], { source })
  const worker = await stage.worker('w')
  const jobId = await stage.begin('versioned')
  load(versioned(3, true))
  // Its result is still on the way: it is kept, and the job finds out at its next turn.
  await worker.report((await worker.takeOne()).taskId, { data: { kept: 1 } })
  await stage.run()
  const job = await stage.job(jobId)
  expect([job.status, job.blueprintVersion, job.result]).toEqual(['finished', 3, { kept: 1, from: 1, version: 3 }])
  expect(await stage.eventsOf(jobId)).toContain('job_migrated')
})

test.each([
  ['no other version is there', [], 'no version of it is loaded'],
  ['the newest does not migrate it', [versioned(2)], 'only version 2 is loaded'],
])(
  '[A-08] a job whose version is gone is put aside when %s, and goes on once it is back',
  async (_name, left, says) => {
    const { source, load } = swappable(versioned(1))
    const stage = new Stage([], { source })
    const worker = await stage.worker('w')
    const jobId = await stage.begin('versioned')
    load(...left)
    await worker.report((await worker.takeOne()).taskId, { data: { kept: 1 } })
    await stage.run()
    const aside = await stage.job(jobId)
    expect([aside.status, aside.state, aside.error?.code]).toEqual(['quarantined', 'use', 'BLUEPRINT_GONE'])
    expect(aside.error?.message).toContain(says)
    // Retried too early it comes back here.
    await stage.engine.retryJob(jobId, 'test')
    await stage.run()
    expect(await stage.statusOf(jobId)).toBe('quarantined')
    load(versioned(1), ...left)
    await stage.engine.retryJob(jobId, 'test')
    await stage.run()
    const job = await stage.job(jobId)
    expect([job.status, job.result, job.error]).toEqual(['finished', { kept: 1, version: 1 }, undefined])
  },
)

test('[A-08] a migration that throws puts the job aside like one that is not there', async () => {
  const { source, load } = swappable(versioned(1))
  const stage = new Stage([], { source })
  const jobId = await stage.create('versioned')
  load(
    blueprint(
      'versioned',
      {
        start: 'done',
        version: 2,
        migrate: () => {
          throw new Error('broken')
        },
      },
      (state) => ({ done: state.end() }),
    ),
  )
  await stage.run()
  expect((await stage.job(jobId)).error?.code).toBe('BLUEPRINT_GONE')
  expect(stage.log.lines.find(({ level }) => level === 'error')?.fields).toEqual({ job_id: jobId, error: 'broken' })
})
