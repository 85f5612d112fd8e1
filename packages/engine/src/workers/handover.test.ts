import { blueprint } from '@impresario/core'
import type { Storage } from '@impresario/core'
import { expect, test } from 'vitest'
import { Stage, settled } from '../stage.fixture.ts'
import { testStorage } from '../../../../test/servers/test-storage.ts'

const one = blueprint('one', { start: 'work' }, (state) => ({
  work: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'work', params: {}, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

interface Watched {
  readonly stage: Stage
  /** Claims of tasks that found something. */
  readonly claims: () => number
  /** The next commit that creates a task is written, and its answer is lost. */
  readonly loseAnswer: () => void
}

/** An engine whose storage is watched. */
function watched(): Watched {
  let claims = 0
  let losesAnswer = false
  const storage = (inner: Storage): Storage => ({
    now: () => inner.now(),
    read: (kind, id) => inner.read(kind, id),
    list: (kind, query) => inner.list(kind, query),
    counts: (kind, facets) => inner.counts(kind, facets),
    peek: (queue, ids) => inner.peek(queue, ids),
    held: (queue) => inner.held(queue),
    lanes: (queue) => inner.lanes(queue),
    oldest: (queue, lane) => inner.oldest(queue, lane),
    claimExpired: (queue, options) => inner.claimExpired(queue, options),
    renew: (leases, leaseMs) => inner.renew(leases, leaseMs),
    sync: () => inner.sync(),
    watch: (queue, listener) => inner.watch(queue, listener),
    close: () => inner.close(),
    async claim(queue, options) {
      const claimed = await inner.claim(queue, options)
      if (queue === 'tasks') claims += claimed.leases.length
      return claimed
    },
    async commit(batch) {
      const outcome = await inner.commit(batch)
      if (!losesAnswer || batch.enqueue?.some(({ queue }) => queue === 'tasks') !== true) return outcome
      losesAnswer = false
      throw new Error('the connection is lost')
    },
  })
  const stage = new Stage([one], { storage: (clock) => storage(testStorage({ now: clock.now })) })
  return { stage, claims: () => claims, loseAnswer: () => (losesAnswer = true) }
}

test('[D-01] [G-01] a worker whose poll waits gets a task without a claim', async () => {
  const { stage, claims } = watched()
  const worker = await stage.worker('w', { concurrencyMax: 3 })
  const poll = worker.poll(3, 30_000)
  await settled()
  const jobId = await stage.begin('one')
  await settled()
  const { deliveries } = await poll
  expect(deliveries).toMatchObject([{ jobId, attempt: 1, delivery: 1 }])
  expect(claims()).toBe(0)
  expect(await stage.storage.held('tasks')).toEqual([`${jobId}.1.0`])
  await worker.report(deliveries[0]?.taskId ?? '')
  await stage.run()
  expect(await stage.statusOf(jobId)).toBe('finished')
})

test('[D-01] a worker that has just been here gets what was meant for it with its next poll', async () => {
  const { stage, claims } = watched()
  const worker = await stage.worker('w', { concurrencyMax: 3 })
  const first = await stage.begin('one')
  expect(await worker.take(3)).toMatchObject([{ jobId: first }])
  expect(claims()).toBe(1)
  const second = await stage.begin('one')
  expect(await worker.take(3)).toMatchObject([{ jobId: second }])
  expect(claims()).toBe(1)
})

test('[E-02] a worker gets no more than it has room for, promised tasks included', async () => {
  const { stage } = watched()
  const worker = await stage.worker('w', { concurrencyMax: 2 })
  const poll = worker.poll(5, 30_000)
  await settled()
  for (let jobs = 0; jobs < 4; jobs += 1) await stage.create('one')
  await stage.run()
  await settled()
  const { deliveries } = await poll
  const more = await worker.take(5)
  expect(deliveries.length + more.length).toBe(2)
})

test('[C-04] what its worker does not fetch goes back into its queue', async () => {
  const { stage } = watched()
  const worker = await stage.worker('w', { concurrencyMax: 3 })
  await stage.begin('one')
  await worker.take(3)
  const jobId = await stage.begin('one')
  const id = `${jobId}.1.0`
  expect((await stage.storage.peek('tasks', [id]))[0]?.lease).toMatchObject({ holder: 'w' })
  await stage.clock.advance(1_100)
  await settled()
  expect((await stage.storage.peek('tasks', [id]))[0]).toMatchObject({ lease: undefined, deliveries: 0 })
  // The same worker, or any other that fits.
  expect(await worker.take(3)).toMatchObject([{ jobId }])
})

test('[A-06] a task that is cancelled before its worker fetches it is not handed out', async () => {
  const { stage } = watched()
  const worker = await stage.worker('w', { concurrencyMax: 3 })
  await stage.begin('one')
  await worker.take(3)
  const jobId = await stage.begin('one')
  await stage.engine.cancelJob(jobId, 'client')
  expect(await worker.take(3)).toEqual([])
  // Its place is free again.
  const next = await stage.begin('one')
  expect(await worker.take(3)).toMatchObject([{ jobId: next }])
})

test('[C-09] a task whose commit got no answer waits for no lease', async () => {
  const { stage, loseAnswer } = watched()
  const worker = await stage.worker('w', { concurrencyMax: 3 })
  await stage.begin('one')
  await worker.take(3)
  loseAnswer()
  const jobId = await stage.create('one').catch(() => undefined)
  await stage.run()
  await settled()
  const deliveries = await worker.take(3)
  expect(deliveries).toHaveLength(1)
  expect([undefined, deliveries[0]?.jobId]).toContain(jobId)
})

test('[G-01] an engine that stops gives back what nobody has fetched', async () => {
  const { stage } = watched()
  await stage.engine.start()
  const worker = await stage.worker('w', { concurrencyMax: 3 })
  await stage.begin('one')
  await worker.take(3)
  const jobId = await stage.begin('one')
  await stage.engine.stop()
  const [view] = await stage.storage.peek('tasks', [`${jobId}.1.0`])
  expect(view).toMatchObject({ lease: undefined, deliveries: 0 })
})
