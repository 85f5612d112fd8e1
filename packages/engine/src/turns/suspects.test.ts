import { blueprint } from '@impresario/core'
import type { RunnableBlueprint, Storage } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Engine } from '../engine.ts'
import { ListLog, VirtualClock, guarded, settled, registryOf } from '../stage.fixture.ts'
import { SuspectGate } from './suspects.ts'

/** Longer than the lease of a turn. */
const LEASE_MS = 31_000

/** A process that can end without a word: nothing of it reaches the storage any more. */
class Process {
  readonly engine: Engine
  readonly log = new ListLog()
  #isDead = false

  constructor(storage: Storage, clock: VirtualClock, blueprints: readonly RunnableBlueprint[]) {
    let ids = 0
    this.engine = new Engine({
      storage: guarded(storage, () => (this.#isDead ? new Promise(() => undefined) : undefined)),
      clock,
      log: this.log,
      blueprints: registryOf(blueprints),
      random: { next: () => 0.5, id: () => `job-${(ids += 1)}` },
    })
  }

  die(): void {
    this.#isDead = true
  }
}

function world(blueprints: readonly RunnableBlueprint[]) {
  const clock = new VirtualClock()
  const storage = testStorage({ now: clock.now })
  return { clock, storage, start: () => new Process(storage, clock, blueprints) }
}

/** Jobs whose data says so never come back; the others end at once. */
function deadly(begun: string[]) {
  return blueprint('deadly', { start: 'a' }, (state) => ({
    a: state.handler(async (context, actions) => {
      begun.push(context.jobId)
      if (context.initialData['kills'] === true) await new Promise(() => undefined)
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
}

const create = ({ engine }: Process, initialData = {}): Promise<{ readonly jobId: string }> =>
  engine.createJob({ blueprint: 'deadly', client: { id: 'ann' }, initialData })

test('[C-11] a turn that ended the process again and again waits for a person, and others go on', async () => {
  const begun: string[] = []
  const { clock, storage, start } = world([deadly(begun)])
  let current = start()
  const { jobId: killer } = await create(current, { kills: true })
  const { jobId: bystander } = await create(current)
  for (let run = 1; run <= LIMITS.turnBegunMax; run += 1) {
    void current.engine.executor.tick()
    await settled()
    expect(begun.filter((id) => id === killer)).toHaveLength(run)
    current.die()
    current = start()
    await clock.advance(LEASE_MS)
  }
  await current.engine.executor.tick()
  expect(begun.filter((id) => id === killer)).toHaveLength(LIMITS.turnBegunMax)
  const job = (await storage.read('job', killer))?.value
  expect([job?.status, job?.state, job?.error?.code]).toEqual(['quarantined', 'a', 'HANDLER_NEVER_ENDED'])
  expect((await storage.read('job', bystander))?.value.status).toBe('finished')
  expect(current.log.errors).toContain('a handler was begun several times and never ended; its job is quarantined')
  // A person may send it back, and it begins from nothing.
  await current.engine.retryJob(killer, 'bob')
  void current.engine.executor.tick()
  await settled()
  expect(begun.filter((id) => id === killer)).toHaveLength(LIMITS.turnBegunMax + 1)
})

test('[C-11] only the turn at fault is counted: those that were claimed with it run one by one', async () => {
  const begun: string[] = []
  const { clock, storage, start } = world([deadly(begun)])
  const first = start()
  const ids: string[] = []
  for (const kills of [true, false, false, false]) ids.push((await create(first, { kills })).jobId)
  // As a process that ends before anything is written that its handlers chose.
  await storage.claim('turns', { limit: 10, leaseMs: 1_000 })
  await clock.advance(1_001)
  const jobs = async () => {
    const stored = await Promise.all(ids.map((id) => storage.read('job', id)))
    return stored.map((job) => [job?.value.status, job?.value.begun])
  }
  void first.engine.executor.tick()
  await settled()
  const killer = ids[0] ?? ''
  expect(begun.at(-1)).toBe(killer)
  expect(await jobs()).toContainEqual(['pending', 1])
  expect((await jobs()).filter(([, count]) => count !== undefined)).toHaveLength(1)
  // A run that lasts has let others have the process, and keeps them waiting no longer.
  await clock.advance(5_001)
  const done = ['finished', undefined]
  expect(await jobs()).toEqual([['pending', 1], done, done, done])
})

test('[C-11] a turn that was claimed once and answers is not counted any more', async () => {
  const begun: string[] = []
  const { clock, storage, start } = world([deadly(begun)])
  const current = start()
  const { jobId } = await create(current)
  await storage.claim('turns', { limit: 10, leaseMs: 1_000 })
  await clock.advance(1_001)
  await current.engine.executor.tick()
  expect((await storage.read('job', jobId))?.value).toMatchObject({ status: 'finished' })
  expect(begun).toEqual([jobId])
})

// The simulator found this (seed 14630359): an instance that remembered the job as it once was ran its handler once more.
test('[C-11] an instance that has not seen how often others began a turn does not run it once too often', async () => {
  const begun: string[] = []
  const { clock, storage, start } = world([deadly(begun)])
  // It creates the job, and so remembers it as new.
  const witness = start()
  const { jobId } = await create(witness, { kills: true })
  for (let run = 1; run <= LIMITS.turnBegunMax; run += 1) {
    const current = start()
    void current.engine.executor.tick()
    await settled()
    expect(begun).toHaveLength(run)
    current.die()
    await clock.advance(LEASE_MS)
  }
  await witness.engine.executor.tick()
  expect(begun).toHaveLength(LIMITS.turnBegunMax)
  const job = (await storage.read('job', jobId))?.value
  expect([job?.status, job?.error?.code]).toEqual(['quarantined', 'HANDLER_NEVER_ENDED'])
  // Nothing of it is left in the queue.
  expect(await storage.peek('turns', [jobId])).toEqual([undefined])
})

test('[C-11] turns that wait to be begun again are handed back when everything stops', async () => {
  const begun: string[] = []
  const { clock, storage, start } = world([deadly(begun)])
  const current = start()
  const ids = await Promise.all([true, false, false].map((kills) => create(current, { kills })))
  await storage.claim('turns', { limit: 10, leaseMs: 1_000 })
  await clock.advance(1_001)
  await current.engine.start()
  await settled()
  const stopping = current.engine.stop()
  await settled()
  await clock.advance(61_000)
  await stopping
  const views = await storage.peek(
    'turns',
    ids.map(({ jobId }) => jobId),
  )
  expect(views.map((view) => view?.lease)).toEqual(ids.map(() => undefined))
})

test('[C-11] of many that wait some run together, those begun before alone', async () => {
  const clock = new VirtualClock()
  const gate = new SuspectGate(clock)
  const inside: (() => void)[] = []
  const enter = async (isAlone: boolean): Promise<void> => {
    const leave = await gate.enter(isAlone)
    if (leave !== undefined) inside.push(leave)
  }
  for (let count = 0; count < 20; count += 1) void enter(false)
  void enter(true)
  await settled()
  // The first came when nobody else waited, and has the place to itself.
  expect(inside).toHaveLength(1)
  inside.shift()?.()
  await settled()
  expect(inside).toHaveLength(8)
  for (const leave of inside.splice(0)) leave()
  await settled()
  const seen: number[] = []
  while (inside.length > 0) {
    seen.push(inside.length)
    for (const leave of inside.splice(0)) leave()
    await settled()
  }
  expect(seen.at(-1)).toBe(1)
  expect(1 + 8 + seen.reduce((sum, count) => sum + count, 0)).toBe(21)
  gate.close()
  expect(await gate.enter(false)).toBeUndefined()
})
