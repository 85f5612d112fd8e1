import { blueprint, childJobId } from '@impresario/core'
import { expect, test } from 'vitest'
import { Stage, oneTask } from '../stage.fixture.ts'

function aStage(perClientMax: number, totalMax = 1_000): Stage {
  return new Stage([oneTask()], { settings: { backlog: { perClientMax, totalMax } } })
}

const asks = (id: string) => ({ client: { id } })

test('[H-04] a client with too many open jobs is refused until some have ended; others are not', async () => {
  const stage = aStage(2)
  const worker = await stage.worker('w', { concurrencyMax: 9 })
  await stage.create('one', asks('a'))
  await stage.create('one', asks('a'))
  const refused = stage.create('one', asks('a'))
  await expect(refused).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS', details: { retry_after_s: 5 } })
  await stage.create('one', asks('b'))
  await stage.run()
  for (const { taskId } of await worker.take(3)) await worker.report(taskId)
  await stage.after(1_000)
  await stage.create('one', asks('a'))
})

test('[H-04] there is a bound over all clients too', async () => {
  const stage = aStage(100, 3)
  for (const client of ['a', 'b', 'c']) await stage.create('one', asks(client))
  await expect(stage.create('one', asks('d'))).rejects.toThrow(
    'There are too many open jobs. Wait until some have ended.',
  )
})

test('[C-10] jobs of one client are bounded in bytes too: the more there are, the smaller a new one must be', async () => {
  const bytesPerClientMax = 1_000_000
  const stage = new Stage([oneTask()], {
    settings: { backlog: { perClientMax: 10_000, totalMax: 10_000, bytesPerClientMax } },
  })
  const create = (chars: number): Promise<string> =>
    stage.create('one', { ...asks('a'), initialData: { text: 'x'.repeat(chars) } })
  const refusals: unknown[] = []
  let [created, sum, chars] = [0, 0, 400_000]
  while (chars >= 0) {
    try {
      await create(chars)
      created += 1
      sum += 2 * chars
    } catch (error) {
      refusals.push(error)
      chars = chars === 0 ? -1 : Math.floor(chars * 0.9)
    }
  }
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({ code: 'TOO_MANY_REQUESTS', details: { retry_after_s: 5 } })
    expect(String(refusal)).toContain('Put large data into files, or wait until some have ended.')
  }
  expect(created).toBeGreaterThan(500)
  expect(sum).toBeLessThan(10 * bytesPerClientMax)
  // Empty ones count too, and others are not concerned.
  await expect(create(0)).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  await stage.create('one', { ...asks('b'), initialData: { text: 'x'.repeat(400_000) } })
})

test('[C-10] a job that begins in a later state counts with what it begins with there', async () => {
  const bytesPerClientMax = 1_000_000
  const stage = new Stage([oneTask()], {
    settings: { backlog: { perClientMax: 10_000, totalMax: 10_000, bytesPerClientMax } },
  })
  const jobId = await stage.create('one', asks('a'))
  const again = (chars: number): Promise<string> => {
    const stateHistory = { text: 'x'.repeat(chars) }
    return stage.create('one', { ...asks('a'), from: { jobId, state: 'ask', stateHistory } })
  }
  await again(1_000)
  await expect(again(600_000)).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS', details: { retry_after_s: 5 } })
})

test('[C-10] jobs of all clients are bounded in bytes too, however many clients share them', async () => {
  const bytesTotalMax = 1_000_000
  const stage = new Stage([oneTask()], {
    settings: { backlog: { perClientMax: 10_000, totalMax: 10_000, bytesTotalMax } },
  })
  let [clients, sum, chars] = [0, 0, 400_000]
  const refusals: unknown[] = []
  while (chars >= 0) {
    clients += 1
    try {
      await stage.create('one', { ...asks(`client-${clients}`), initialData: { text: 'x'.repeat(chars) } })
      sum += 2 * chars
    } catch (error) {
      refusals.push(error)
      chars = chars === 0 ? -1 : Math.floor(chars * 0.9)
    }
  }
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({ code: 'TOO_MANY_REQUESTS', details: { retry_after_s: 5 } })
    expect(String(refusal)).toMatch(/over all clients, .* Put large data into files, or wait until some have ended\./)
  }
  expect(clients - refusals.length).toBeGreaterThan(500)
  expect(sum).toBeLessThan(10 * bytesTotalMax)
})

test('[H-04] creations of one moment never exceed the bound', async () => {
  const stage = aStage(7)
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => stage.create('one', asks('a'))))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(7)
})

test('[H-04] [I-01] the bound holds over several instances, but for a sixteenth for each further one', async () => {
  const settings = { backlog: { perClientMax: 150, totalMax: 1_000 }, isShared: true }
  const first = new Stage([oneTask()], { settings })
  // Three engines on one storage, which know nothing of each other.
  const { clock, storage } = first
  const others = [1, 2].map(() => new Stage([oneTask()], { settings, clock, storage: () => storage }))
  const stages = [first, ...others]
  const asked = stages.flatMap((stage) => Array.from({ length: 80 }, () => stage.create('one', asks('a'))))
  const outcomes = await Promise.allSettled(asked)
  const admitted = outcomes.filter(({ status }) => status === 'fulfilled').length
  expect(admitted).toBeLessThanOrEqual(150 + 2 * Math.ceil(150 / 16))
  // Who is refused may have come too soon, and asks again: what is free can be had.
  for (;;) {
    const counts = await storage.counts('job', { owner: 'a' })
    if (Object.values(counts).reduce((sum, count) => sum + count, 0) >= 150) break
    await clock.advance(1_000)
    await Promise.allSettled(stages.map((stage) => stage.create('one', asks('a'))))
  }
  for (const stage of stages) {
    await clock.advance(1_000)
    await expect(stage.create('one', asks('a'))).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  }
})

test('[C-08] whoever asks again for a job that is there gets it, however many are open', async () => {
  const stage = aStage(1)
  const first = await stage.create('one', { ...asks('a'), idempotencyKey: 'k' })
  expect(await stage.create('one', { ...asks('a'), idempotencyKey: 'k' })).toBe(first)
  await expect(stage.create('one', { ...asks('a'), idempotencyKey: 'other' })).rejects.toThrow('You have 1 open jobs')
  const jobId = uuidAt(stage.clock.now())
  const named = await stage.create('one', { ...asks('b'), jobId })
  expect(await stage.create('one', { ...asks('b'), jobId })).toBe(named)
})

const outer = blueprint('outer', { start: 'run' }, (state) => ({
  run: state.handler((_context, actions) =>
    actions.runBlueprint({ name: 'one', initialData: {}, transitions: { success: 'done', failure: 'gave_up' } }),
  ),
  done: state.end(),
  gave_up: state.end({ outcome: 'failed' }),
}))

function withChildren(perClientMax: number): Stage {
  return new Stage([oneTask(), outer], { settings: { backlog: { perClientMax, totalMax: 1_000 } } })
}

test('[H-04] parents that fill the bound do not keep their own children out', async () => {
  const stage = withChildren(2)
  const worker = await stage.worker('w', { concurrencyMax: 9 })
  const parents = [await stage.create('outer', asks('a')), await stage.create('outer', asks('a'))]
  await stage.run()
  await expect(stage.create('one', asks('a'))).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  for (const { taskId } of await worker.take(2)) await worker.report(taskId)
  await stage.run()
  for (const parent of parents) expect(await stage.statusOf(parent)).toBe('finished')
})

/** One parent with its child, which is as many as children may reach, and a parent of an instance that has no bound. */
async function crowded(): Promise<{ readonly stage: Stage; readonly first: string; readonly second: string }> {
  const stage = withChildren(1)
  const first = await stage.begin('outer', asks('a'))
  const { storage, clock } = stage
  const second = await new Stage([oneTask(), outer], { clock, storage: () => storage }).create('outer', asks('a'))
  await stage.after(1_000)
  return { stage, first, second }
}

test('[H-04] a child beyond twice the bound waits for its place', async () => {
  const { stage, first, second } = await crowded()
  const childId = childJobId(second, 1, '0')
  expect(await stage.engine.readJob(childId)).toBeUndefined()
  expect(await stage.statusOf(second)).toBe('waiting_for_child')
  const worker = await stage.worker('w')
  await worker.report((await worker.takeOne()).taskId)
  await stage.run()
  expect(await stage.statusOf(first)).toBe('finished')
  await stage.after(16_000)
  expect(await stage.statusOf(childId)).toBe('waiting_for_worker')
})

test('[H-04] a child that gets no place is a failure for its parent, so that parents cannot block each other for ever', async () => {
  const { stage, second } = await crowded()
  for (let deliveries = 0; deliveries < 20; deliveries += 1) await stage.after(16_000)
  expect(await stage.job(second)).toMatchObject({ status: 'failed', state: 'gave_up' })
})

test('[H-04] [F-04] a schedule whose client has too many open jobs starts none, and is tried again', async () => {
  const stage = aStage(1)
  const worker = await stage.worker('w')
  await stage.begin('one', asks('a'))
  const told = { blueprint: 'one', initialData: {}, isEnabled: true, clientId: 'a', timeZone: 'UTC' } as const
  const trigger = { kind: 'interval', everyMs: 3_600_000 } as const
  const schedule = { ...told, name: 's', trigger, misfire: 'run_once', catchUpMax: 1 } as const
  await stage.engine.scheduler.replace([schedule])
  await expect(stage.engine.scheduler.runNow('s')).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  await stage.engine.tick()
  const open = async (): Promise<number> =>
    (await stage.engine.listJobs({ limit: 9, status: 'waiting_for_worker' })).length
  expect(await open()).toBe(1)
  await worker.report((await worker.takeOne()).taskId)
  await stage.after(31_000)
  expect(await open()).toBe(1)
  expect((await stage.engine.scheduler.list())[0]?.lastJobId).toBeDefined()
})

/** A UUIDv7 of this moment. */
function uuidAt(ms: number): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000001`
}
