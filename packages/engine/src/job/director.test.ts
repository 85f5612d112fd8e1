import { blueprint, overrideStorage } from '@impresario/core'
import type { Job, JobEvent, Storage } from '@impresario/core'
import { createMemoryStorage } from '@impresario/storage-embedded'
import { chain, ImpresarioError } from '@impresario/protocol'
import type { Soon } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { ListLog, registryOf, VirtualClock } from '../stage.fixture.ts'
import { Director } from './director.ts'
import type { DirectorOptions } from './director.ts'
import { ScriptRegistry } from './script-registry.ts'

const press = blueprint('press', { start: 'begin' }, (state) => ({
  begin: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'work', params: {}, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

const waits = blueprint('waits', { start: 'begin' }, (state) => ({
  begin: state.handler(async (_context, actions) => {
    await Promise.resolve()
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

const clock = new VirtualClock()
const registry = new ScriptRegistry(registryOf([press, waits]))

function directorOn(storage: Storage, over: Partial<DirectorOptions> = {}): Director {
  return new Director({
    storage,
    registry,
    clock,
    log: new ListLog(),
    place: () => ({ lane: 'any' }),
    onRefused: () => undefined,
    takeTurn,
    ...over,
  })
}

function takeTurn(job: Job): Soon<JobEvent> {
  const { signal } = new AbortController()
  const output = (job.blueprint === 'press' ? press : waits).perform({ job, signal })
  return chain(output, (chosen): JobEvent => ({ type: 'turnTaken', at: 0, visit: job.visit, ...chosen }))
}

function created(id: string, name = 'press'): JobEvent {
  return { type: 'created', at: 0, id, request: { blueprint: name, client: { id: 'c' }, initialData: {} } }
}

const ended: JobEvent = {
  type: 'taskEnded',
  at: 0,
  visit: 1,
  branch: '0',
  attempt: 1,
  workerId: 'w',
  status: 'success',
  chance: 0,
}

test('[G-01] in one process a job goes from its creation to its task, and from the result to its end, without a promise', () => {
  const director = directorOn(createMemoryStorage({ now: clock.now }))
  expect(director.apply('j1', created('j1'))).toMatchObject({ type: 'applied', job: { status: 'waiting_for_worker' } })
  expect(director.apply('j1', ended)).toMatchObject({ type: 'applied', version: 2, job: { status: 'finished' } })
})

test('[G-01] the same on a storage that answers later', async () => {
  const memory = createMemoryStorage({ now: clock.now })
  const director = directorOn(overrideStorage(memory, { commit: async (batch) => memory.commit(batch) }))
  const creating = director.apply('j1', created('j1'))
  expect(creating).toBeInstanceOf(Promise)
  // The result waits for the creation, which is under way.
  const ending = director.apply('j1', ended)
  expect(await creating).toMatchObject({ type: 'applied', version: 1 })
  expect(await ending).toMatchObject({ type: 'applied', version: 2, job: { status: 'finished' } })
})

test('[G-01] what a listener does to the job that it hears of comes after what it has heard', async () => {
  const director = directorOn(createMemoryStorage({ now: clock.now }))
  const seen: string[] = []
  let cancelling: ReturnType<Director['apply']> | undefined
  director.onDecided((decision) => {
    seen.push(decision.job.status)
    cancelling ??= director.apply('j1', { type: 'cancelled', at: 0, by: 'listener' })
  })
  expect(director.apply('j1', created('j1'))).toMatchObject({ type: 'applied' })
  expect(await cancelling).toMatchObject({ type: 'applied', job: { status: 'cancelled' } })
  expect(seen).toEqual(['waiting_for_worker', 'cancelled'])
  // Nothing is left waiting: the next one is looked at as usual.
  expect(await director.apply('j1', ended)).toMatchObject({ type: 'ignored', reason: 'job_ended' })
})

test('[G-01] a handler that waits makes the whole step wait', async () => {
  const director = directorOn(createMemoryStorage({ now: clock.now }))
  const applied = director.apply('j1', created('j1', 'waits'))
  expect(applied).toBeInstanceOf(Promise)
  expect(await applied).toMatchObject({ type: 'applied', job: { status: 'finished' } })
})

test('[G-01] when a task cannot be placed, its turn is written to be taken later, and places are given back', async () => {
  const refused: boolean[] = []
  const director = directorOn(createMemoryStorage({ now: clock.now }), {
    place: () => {
      throw new ImpresarioError('INVALID_BLUEPRINT', 'There is no such strategy.')
    },
    onRefused: (_decision, isUnknown) => refused.push(isUnknown),
  })
  expect(await director.apply('j1', created('j1'))).toMatchObject({ type: 'applied', job: { status: 'pending' } })
  expect(refused).toEqual([false])
})

test('[G-01] a storage that throws at once is like one that rejects: the outcome is unknown, and the job can be used again', async () => {
  const memory = createMemoryStorage({ now: clock.now })
  let fails = true
  const refused: boolean[] = []
  const storage = overrideStorage(memory, {
    commit: (batch) => {
      if (fails) throw new Error('The disk is gone.')
      return memory.commit(batch)
    },
  })
  const onRefused = (_decision: unknown, isUnknown: boolean): unknown => refused.push(isUnknown)
  const director = directorOn(storage, { onRefused })
  expect(() => director.apply('j1', created('j1'))).toThrow('The disk is gone.')
  expect(refused).toEqual([true])
  fails = false
  expect(await director.apply('j1', created('j1'))).toMatchObject({ type: 'applied', version: 1 })
})
