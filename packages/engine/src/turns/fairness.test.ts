import { AGEING_MS, blueprint } from '@impresario/core'
import { expect, test } from 'vitest'
import { Stage, oneTask } from '../stage.fixture.ts'

test('[C-01] under a flood of one client, every other client goes on at its own pace', async () => {
  const order: string[] = []
  const steps = blueprint('steps', { start: 'one' }, (state) => ({
    one: state.handler((context, actions) => {
      order.push(context.client.id)
      return actions.transitionTo('two')
    }),
    two: state.handler((context, actions) => {
      order.push(context.client.id)
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
  const stage = new Stage([steps], { settings: { executorConcurrencyMax: 1 } })
  for (let count = 0; count < 300; count += 1) await stage.create('steps', { client: { id: 'flood' }, priority: 9 })
  const quiet = ['ann', 'bob', 'cleo']
  for (const id of quiet) for (let count = 0; count < 5; count += 1) await stage.create('steps', { client: { id } })
  await stage.run()
  expect(order).toHaveLength(630)
  // Ten turns of each quiet client, and no more than one of the flood beside each of them. A job's two turns may come together.
  for (const id of quiet) expect(order.lastIndexOf(id)).toBeLessThan(10 * (quiet.length + 1) + 2 * quiet.length)
})

test('[C-01] clients that come while the flood runs are served next', async () => {
  const order: string[] = []
  const quick = blueprint('quick', { start: 'go' }, (state) => ({
    go: state.handler((context, actions) => {
      order.push(context.client.id)
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }))
  const stage = new Stage([quick])
  for (let count = 0; count < 200; count += 1) await stage.create('quick', { client: { id: 'flood' } })
  const claim = { limit: 1, leaseMs: 1 }
  const { leases } = await stage.storage.claim('turns', claim)
  expect(leases[0]?.lane).toBe('flood')
  await stage.storage.renew(leases, 0)
  await stage.create('quick', { client: { id: 'late' } })
  await stage.run()
  expect(order.indexOf('late')).toBeLessThan(2)
})

test('[D-04] a task that waits grows more important: one level of priority for each minute', async () => {
  const stage = new Stage([oneTask({ priority: 0 }, {}, 'humble'), oneTask({ priority: 2 }, {}, 'proud')])
  const humble = await stage.begin('humble')
  await stage.after(AGEING_MS)
  const early = await stage.begin('proud')
  await stage.after(AGEING_MS + 1_000)
  const late = await stage.begin('proud')
  const worker = await stage.worker('w', { concurrencyMax: 3 })
  const taken = await worker.take(3)
  // Two levels are worth two minutes: the early one still goes first, the late one does not.
  expect(taken.map(({ jobId }) => jobId)).toEqual([early, humble, late])
})

test('[D-04] nothing waits for ever behind a stream of more important work', async () => {
  const stage = new Stage([oneTask({ priority: 0 }, {}, 'humble'), oneTask({ priority: 5 }, {}, 'proud')])
  const humble = await stage.begin('humble')
  const worker = await stage.worker('w')
  await stage.engine.desk.heartbeat('w', undefined, [])
  let rounds = 0
  for (let isDone = false; !isDone; rounds += 1) {
    expect(rounds).toBeLessThan(20)
    await stage.begin('proud')
    await stage.after(AGEING_MS / 2)
    const [delivery] = await worker.take()
    if (delivery === undefined) continue
    isDone = delivery.jobId === humble
    await worker.report(delivery.taskId)
  }
  expect(await stage.statusOf(humble)).toBe('finished')
})
