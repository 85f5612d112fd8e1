import { blueprint } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { EmbeddedStorage, createVolatileJournal } from '@impresario/storage-embedded'
import type { ClaimMarks } from '@impresario/storage-embedded'
import { expect, test } from 'vitest'
import { Engine } from '../engine.ts'
import { ListLog, VirtualClock, guarded, settled, registryOf } from '../stage.fixture.ts'

/** Marks that outlive their process, as a file does. */
class Marks implements ClaimMarks {
  readonly left: ReadonlySet<number>
  readonly settledBefore: ReadonlyMap<number, number>
  readonly #left: Set<number>
  readonly #settled: Map<number, number>

  constructor(earlier?: Marks) {
    this.#left = new Set(earlier === undefined ? [] : earlier.#left)
    this.#settled = new Map(earlier === undefined ? [] : earlier.#settled)
    this.left = new Set(this.#left)
    this.settledBefore = new Map(this.#settled)
  }

  claimed(turns: readonly number[]): void {
    for (const turn of turns) this.#left.add(turn)
  }

  settled(turn: number, token: number): void {
    this.#left.delete(turn)
    this.#settled.set(turn, token)
  }

  handedBack(turn: number): void {
    this.#left.delete(turn)
  }

  gone(turn: number): void {
    this.#left.delete(turn)
  }

  close(): void {
    this.#left.clear()
  }
}

/** A machine whose processes end one after the other. The disk takes nothing that follows the return of a handler. */
function machine(returns: () => boolean) {
  const clock = new VirtualClock()
  const runs = { begun: 0 }
  let isStuck = false
  let journal = createVolatileJournal({
    beforeWrite: () => (isStuck ? new Promise<void>(() => undefined) : Promise.resolve()),
  })
  let marks: Marks | undefined
  const film = blueprint('film', { start: 'a' }, (state) => ({
    a: state.handler(async (_context, actions) => {
      runs.begun += 1
      if (!returns()) await new Promise(() => undefined)
      isStuck = true
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
  const start = (): { readonly engine: Engine; readonly storage: EmbeddedStorage } => {
    isStuck = false
    journal = journal.reopened()
    marks = new Marks(marks)
    const storage = new EmbeddedStorage({ now: clock.now, journal, marks, schedule: (run) => queueMicrotask(run) })
    const random = { next: () => 0.5, id: () => 'job-1' }
    const engine = new Engine({ storage, clock, log: new ListLog(), blueprints: registryOf([film]), random })
    return { engine, storage }
  }
  const create = async ({ engine }: { readonly engine: Engine }): Promise<void> => {
    await engine.createJob({ blueprint: 'film', client: { id: 'ann' }, initialData: {} })
  }
  /** Takes turns until nothing more happens, and is then left as it stands, as a process that was killed. */
  const runAndDie = async ({ engine }: { readonly engine: Engine }): Promise<void> => {
    void engine.executor.tick()
    await settled()
  }
  return { clock, runs, start, create, runAndDie }
}

test('[C-11] a turn whose handler returned is not given up because the process is killed before the disk has it', async () => {
  const { runs, start, create, runAndDie } = machine(() => true)
  let current = start()
  await create(current)
  const kills = LIMITS.turnBegunMax + 2
  for (let kill = 1; kill <= kills; kill += 1) {
    await runAndDie(current)
    expect(runs.begun).toBe(kill)
    current = start()
    const job = (await current.storage.read('job', 'job-1'))?.value
    expect([kill, job?.status, job?.begun ?? 0]).toEqual([kill, 'pending', 0])
  }
})

test('[C-11] runs that died inside the handler count to three, also between others that returned', async () => {
  const returns = [true, false, true, false, true, false]
  const { runs, start, create, runAndDie } = machine(() => returns[runs.begun - 1] ?? false)
  let current = start()
  await create(current)
  for (let kill = 1; kill <= returns.length; kill += 1) {
    await runAndDie(current)
    expect(runs.begun).toBe(kill)
    current = start()
  }
  await current.engine.executor.tick()
  expect(runs.begun).toBe(returns.length)
  const job = (await current.storage.read('job', 'job-1'))?.value
  expect([job?.status, job?.error?.code]).toEqual(['quarantined', 'HANDLER_NEVER_ENDED'])
  expect(job?.error?.message).toContain('begun 3 times')
})

test('[C-11] a handler that returns and then ends the process with what it left behind is given up too', async () => {
  const { runs, start, create, runAndDie } = machine(() => true)
  let current = start()
  await create(current)
  for (let kill = 1; kill <= LIMITS.turnLostMax; kill += 1) {
    await runAndDie(current)
    current = start()
  }
  await current.engine.executor.tick()
  expect(runs.begun).toBe(LIMITS.turnLostMax)
  const job = (await current.storage.read('job', 'job-1'))?.value
  expect([job?.status, job?.error?.code]).toEqual(['quarantined', 'HANDLER_NEVER_ENDED'])
  expect(job?.error?.message).toContain('returned 10 times')
})

test('[C-11] a storage that does not take what a handler chose is no fault of the handler', async () => {
  const clock = new VirtualClock()
  const storage = new EmbeddedStorage({ now: clock.now })
  let isDown = false
  let begun = 0
  const film = blueprint('film', { start: 'a' }, (state) => ({
    a: state.handler(async (_context, actions) => {
      begun += 1
      isDown = true
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
  const flaky = guarded(storage, (verb) => {
    if (isDown && verb === 'commit') throw new Error('The storage is away.')
  })
  const random = { next: () => 0.5, id: () => 'job-1' }
  const engine = new Engine({ storage: flaky, clock, log: new ListLog(), blueprints: registryOf([film]), random })
  await engine.createJob({ blueprint: 'film', client: { id: 'ann' }, initialData: {} })
  for (let outage = 1; outage <= LIMITS.turnLostMax + 2; outage += 1) {
    await engine.executor.tick()
    expect(begun).toBe(outage)
    isDown = false
    await clock.advance(31_000)
    expect((await storage.read('job', 'job-1'))?.value.status).toBe('pending')
  }
})
