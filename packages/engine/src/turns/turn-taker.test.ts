import { blueprint } from '@impresario/core'
import type { Batch, RunnableBlueprint, Storage } from '@impresario/core'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { Stage, oneTask, settled } from '../stage.fixture.ts'

/** A storage that shows what was written. */
function watched(): { commits: Batch[]; storage: (clock: { readonly now: () => number }) => Storage } {
  const commits: Batch[] = []
  const storage = (clock: { readonly now: () => number }): Storage => {
    const memory = testStorage({ now: clock.now })
    return new Proxy(memory, {
      get(target, verb: keyof Storage) {
        if (verb !== 'commit') return target[verb].bind(target)
        return (batch: Batch) => {
          commits.push(batch)
          return target.commit(batch)
        }
      },
    })
  }
  return { commits, storage }
}

const queuesOf = (batch: Batch | undefined): readonly string[] => (batch?.enqueue ?? []).map(({ queue }) => queue)

test('[C-01] a handler that has answered at once a few times takes its turn in the commit that asks for it', async () => {
  const { commits, storage } = watched()
  const stage = new Stage([oneTask()], { storage })
  for (let jobs = 0; jobs < 3; jobs += 1) await stage.begin('one')
  commits.length = 0
  const jobId = await stage.create('one')
  expect(commits.map(queuesOf)).toEqual([['tasks']])
  expect(await stage.statusOf(jobId)).toBe('waiting_for_worker')
  expect(await stage.eventsOf(jobId)).toEqual(['job_created', 'task_dispatched'])
})

test('[C-01] a handler that waits for something is run by the executor, once', async () => {
  let waits = 0
  let runs = 0
  const moody = blueprint('moody', { start: 'a' }, (state) => ({
    a: state.handler(async (context, actions) => {
      runs += 1
      if (context.initialData['slow'] === true) {
        waits += 1
        await settled()
      }
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
  const stage = new Stage([moody])
  for (let jobs = 0; jobs < 3; jobs += 1) await stage.begin('moody')
  const prompt = await stage.create('moody')
  expect(await stage.statusOf(prompt)).toBe('finished')
  // It is begun with the commit that asks for it, and its turn finds it at work.
  const slow = await stage.create('moody', { initialData: { slow: true } })
  expect([waits, await stage.statusOf(slow)]).toEqual([1, 'pending'])
  await stage.run()
  expect([waits, runs, await stage.statusOf(slow)]).toEqual([1, 5, 'finished'])
  // From now on it is taken for one that waits.
  const next = await stage.create('moody')
  expect([runs, await stage.statusOf(next)]).toEqual([5, 'pending'])
})

test('[C-01] blueprints of the same code learn from each other, and one that waited does not slow them for good', async () => {
  const code = {}
  let slow = false
  const one = (name: string): RunnableBlueprint => {
    const made = blueprint(name, { start: 'a' }, (state) => ({
      a: state.handler(async (_context, actions) => {
        if (slow) await settled()
        return actions.transitionTo('done')
      }),
      done: state.end(),
    }))
    return Object.assign(made, { kin: code })
  }
  const stage = new Stage([one('first'), one('second')])
  for (let jobs = 0; jobs < 3; jobs += 1) await stage.begin('first')
  expect(await stage.statusOf(await stage.create('second'))).toBe('finished')
  slow = true
  await stage.create('first')
  await stage.run()
  slow = false
  expect(await stage.statusOf(await stage.create('second'))).toBe('pending')
  for (let jobs = 0; jobs < 110; jobs += 1) await stage.begin('first')
  expect(await stage.statusOf(await stage.create('second'))).toBe('finished')
})

test('[B-06] a handler that fails at once has failed as it does in a turn of its own', async () => {
  const brittle = blueprint('brittle', { start: 'a', backoffMs: 60_000 }, (state) => ({
    a: state.handler((context, actions) => {
      if (context.initialData['break'] === true) throw new Error('It broke.')
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
  const stage = new Stage([brittle])
  for (let jobs = 0; jobs < 3; jobs += 1) await stage.begin('brittle')
  const jobId = await stage.create('brittle', { initialData: { break: true } })
  expect(await stage.eventsOf(jobId)).toEqual(['job_created', 'state_failed'])
  expect((await stage.job(jobId)).failures).toBe(1)
})

test('[D-03] what a prompt handler asks for in vain is its failure and never that of the job before', async () => {
  const asking = blueprint('asking', { start: 'a', handlerAttemptsMax: 1 }, (state) => ({
    a: state.handler((context, actions) =>
      actions.dispatchTask({
        type: 'work',
        strategy: context.initialData['strategy'] as 'default',
        transitions: { success: 'done' },
      }),
    ),
    done: state.end(),
  }))
  const stage = new Stage([asking])
  await stage.worker('w', { concurrencyMax: 10 })
  for (let jobs = 0; jobs < 3; jobs += 1) await stage.begin('asking', { initialData: { strategy: 'default' } })
  const jobId = await stage.create('asking', { initialData: { strategy: 'no_such' } })
  expect(await stage.statusOf(jobId)).toBe('pending')
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('quarantined')
  // It takes up no place with a worker.
  expect(stage.engine.dispatcher.loadOf('w')).toBe(3)
})

test('[C-01] a loop of prompt handlers lets others have their turn, and ends at its limit', async () => {
  const { commits, storage } = watched()
  const round = blueprint('round', { start: 'a', transitionsMax: 100 }, (state) => ({
    a: state.handler((_context, actions) => actions.transitionTo('b')),
    b: state.handler((context, actions) => actions.transitionTo(context.initialData['stop'] === true ? 'done' : 'a')),
    done: state.end(),
  }))
  const stage = new Stage([round], { storage })
  await stage.begin('round')
  commits.length = 0
  const jobId = await stage.begin('round')
  expect((await stage.job(jobId)).error?.code).toBe('LOOP_LIMIT')
  expect(commits.length).toBeGreaterThan(8)
  expect(commits.length).toBeLessThan(15)
})

test('[C-05] what another instance wrote meanwhile is seen, though this one remembers the job', async () => {
  const stage = new Stage([oneTask()])
  const worker = await stage.worker('w')
  const jobId = await stage.begin('one')
  const { taskId } = await worker.takeOne()
  const other = new Stage([oneTask()], { clock: stage.clock, storage: () => stage.storage })
  await other.engine.cancelJob(jobId, 'ann')
  expect(await worker.report(taskId)).toMatchObject({ type: 'ignored', reason: 'job_ended' })
  expect(await stage.statusOf(jobId)).toBe('cancelled')
})
