import { blueprint } from '@impresario/core'
import type { Batch, Storage } from '@impresario/core'
import { expect, test } from 'vitest'
import { passedThrough } from '../../../../test/servers/storage-traffic.ts'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { createOrchestrator } from '../orchestrator.ts'
import { SILENT } from '../runtime/log.ts'

/*
 * What a job costs in steps and bytes. These figures do not depend on the machine, so they show a slow decline that a benchmark
 * on a busy machine would hide. Whoever makes a job dearer has to change a number here, and say why.
 */

const noop = blueprint('noop', { start: 'work' }, (state) => ({
  work: state.handler((context, actions) =>
    actions.dispatchTask({ type: 'noop', params: context.initialData, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

const diamond = blueprint('diamond', { start: 'a' }, (state) => ({
  a: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'noop', params: {}, transitions: { success: 'split' } }),
  ),
  split: state.handler((_context, actions) =>
    actions.dispatchParallel([{ type: 'noop' }, { type: 'noop' }], { into: 'join' }),
  ),
  join: state.aggregator((_context, actions) => actions.transitionTo('d')),
  d: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'noop', params: {}, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

interface Cost {
  commits: number
  reads: number
  claims: number
  bytes: number
}

/** Counts the calls that jobs cause. What instances do for themselves in between, such as renewing leads, is left out. */
function counted(storage: Storage, cost: Cost): Storage {
  const isOfJob = ({ put = [] }: Batch): boolean => put.some(({ kind }) => kind === 'job')
  return {
    ...passedThrough(Promise.resolve(storage), (work) => work(storage)),
    commit: (batch) => {
      if (isOfJob(batch)) {
        cost.commits += 1
        cost.bytes += JSON.stringify([batch.put, batch.enqueue, batch.remove, batch.settle]).length
      }
      return storage.commit(batch)
    },
    read: (kind, id) => {
      if (kind === 'job') cost.reads += 1
      return storage.read(kind, id)
    },
    claim: (queue, options) => {
      if (queue === 'tasks' && options.limit > 0) cost.claims += 1
      return storage.claim(queue, options)
    },
  }
}

/** More than a handler needs to be known as one that answers at once. */
const WARM = 8
const JOBS = 10

async function costOf(name: 'noop' | 'diamond'): Promise<Cost> {
  const cost: Cost = { commits: 0, reads: 0, claims: 0, bytes: 0 }
  const storage = counted(testStorage({ now: () => Date.now() }), cost)
  const settings = { instanceId: 'one' }
  const orchestrator = createOrchestrator({ blueprints: [noop, diamond], storage, log: SILENT, settings })
  await orchestrator.start()
  const transport = orchestrator.localTransport()
  const { signal } = new AbortController()
  await transport.register({ worker_id: 'w', supported_skills: [{ name: 'noop' }], max_concurrent_tasks: 4 })
  const client = orchestrator.client()
  // As every worker does: it polls again before it has reported.
  const poll = (): ReturnType<typeof transport.poll> => transport.poll('w', { limit: 4, timeoutMs: 60_000 }, signal)
  let polling = poll()
  const run = async (): Promise<void> => {
    await client.start(name, {})
    for (let left = name === 'noop' ? 1 : 4; left > 0;) {
      const { tasks } = await polling
      left -= tasks.length
      polling = poll()
      await transport.results(
        'w',
        tasks.map(({ task_id, job_id }) => ({ task_id, job_id, worker_id: 'w', status: 'success', data: {} })),
      )
    }
  }
  for (let warm = 0; warm < WARM; warm += 1) await run()
  Object.assign(cost, { commits: 0, reads: 0, claims: 0, bytes: 0 })
  for (let jobs = 0; jobs < JOBS; jobs += 1) await run()
  const measured = { ...cost }
  await orchestrator.stop()
  const perJob = (total: number): number => Math.round((10 * total) / JOBS) / 10
  return {
    commits: perJob(measured.commits),
    reads: perJob(measured.reads),
    claims: perJob(measured.claims),
    bytes: measured.bytes / JOBS,
  }
}

test('[G-01] a job of one task takes two commits, no claim and no read of its record', async () => {
  const cost = await costOf('noop')
  expect(cost).toMatchObject({ commits: 2, claims: 0, reads: 0 })
  expect(cost.bytes).toBeLessThan(2_400)
})

test('[G-01] a diamond of four tasks takes five commits, no claim and no read of its record', async () => {
  const cost = await costOf('diamond')
  expect(cost).toMatchObject({ commits: 5, claims: 0, reads: 0 })
  expect(cost.bytes).toBeLessThan(9_300)
})
