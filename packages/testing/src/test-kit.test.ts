import { blueprint } from '@impresario/core'
import { contract } from '@impresario/protocol'
import { PermanentError, TransientError } from '@impresario/worker'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startTestKit } from './test-kit.ts'
import type { TestKit, TestKitOptions } from './test-kit.ts'

const shop = contract('shop', {
  charge: { input: z.object({ cents: z.number() }), output: z.object({ receipt: z.string() }) },
  ship: { input: z.object({ receipt: z.string() }), output: z.object({ parcel: z.string() }) },
})

const order = blueprint(
  'order',
  { input: z.object({ cents: z.number() }), output: z.object({ parcel: z.string() }), start: 'charge' },
  (state) => ({
    charge: state.handler((context, actions) =>
      actions.dispatchTask(shop.charge, {
        params: { cents: context.initialData.cents },
        transitions: { success: 'cool_off', failure: 'refused' },
      }),
    ),
    cool_off: state.handler((_context, actions) => actions.sleep('3d', { to: 'ask' })),
    ask: state.handler((_context, actions) =>
      actions.awaitHumanApproval({ message: 'Ship it?', transitions: { yes: 'ship', no: 'refused' } }),
    ),
    ship: state.handler((context, actions) =>
      actions.dispatchTask(shop.ship, {
        params: { receipt: context.resultOf(shop.charge).receipt },
        transitions: { success: 'done' },
      }),
    ),
    done: state.end({ result: ({ resultOf }) => resultOf(shop.ship) }),
    refused: state.end({ outcome: 'failed' }),
  }),
)

const parent = blueprint('parent', { input: z.object({}), start: 'order' }, (state) => ({
  order: state.handler((_context, actions) =>
    actions.runBlueprint(order, { initialData: { cents: 1 }, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

let kit: TestKit | undefined
afterEach(async () => {
  await kit?.close()
  kit = undefined
})

async function start(options: Partial<TestKitOptions> = {}): Promise<TestKit> {
  kit = await startTestKit({ blueprints: [order, parent], ...options })
  return kit
}

const handlers = {
  charge: ({ cents }: { cents: number }) => ({ receipt: `r${cents}` }),
  ship: ({ receipt }: { receipt: string }) => ({ parcel: `p-${receipt}` }),
}

describe('time', () => {
  test('[M-05] a job with tasks, a sleep of days and a question runs to its typed result in virtual time', async () => {
    const it = await start()
    const worker = await it.addWorker(shop, handlers)
    const job = await it.client().start(order, { cents: 5 })
    const begunAt = it.now.getTime()
    const asking = await it.runUntil(job, 'ask')
    expect(asking.status).toBe('waiting_for_human')
    expect((it.now.getTime() - begunAt) / 86_400_000).toBeCloseTo(3, 3)
    await job.approve('yes')
    const { parcel } = await it.result(job)
    expect(parcel).toBe('p-r5')
    expect(worker.deliveries.map(({ type }) => type)).toEqual(['shop.charge', 'shop.ship'])
  })

  test('[M-05] nothing happens while time stands still, and a span that passes ends what is due in it', async () => {
    const it = await start({ startAt: '2030-05-01T12:00:00Z' })
    await it.addWorker(shop, handlers)
    const job = await it.client().start(order, { cents: 5 })
    await it.settle()
    expect(await job.status()).toMatchObject({ status: 'waiting_for_time', currentState: 'cool_off' })
    await it.advance('71h')
    expect((await job.status()).currentState).toBe('cool_off')
    await it.advance('1h')
    await it.advance('1s')
    expect((await job.status()).currentState).toBe('ask')
    expect(it.now.toISOString()).toBe('2030-05-04T12:00:01.000Z')
  })

  test('[M-05] work may take virtual time, and its worker stays alive', async () => {
    const it = await start()
    const worker = await it.addWorker(shop.charge, async ({ cents }) => {
      await it.sleep('4m')
      return { receipt: `r${cents}` }
    })
    const job = await it.client().start(order, { cents: 5 })
    await it.runUntil(job, 'cool_off')
    expect(it.now.toISOString()).toBe('2026-01-01T00:04:00.000Z')
    expect(worker.deliveries).toHaveLength(1)
  })

  test('[M-05] a job that nothing can move on is an error that says what it waits for', async () => {
    const it = await start()
    await it.addWorker(shop, handlers)
    const job = await it.client().start(order, { cents: 5 })
    await expect(it.run(job)).rejects.toThrow(/still "waiting_for_human" in "ask".*Ship it\?/s)
    await expect(it.runUntil(job, 'ship', { within: '1d' })).rejects.toThrow('within 1d')
    await job.approve('no')
    await expect(it.result(job)).rejects.toMatchObject({ name: 'JobFailedError' })
    await expect(it.runUntil(job, 'done')).rejects.toThrow('will not change')
  })
})

describe('faults', () => {
  test('[M-05] errors of workers are retried with their waits, and permanent ones are not', async () => {
    const it = await start()
    let tries = 0
    const worker = await it.addWorker(shop.charge, ({ cents }) => {
      tries += 1
      if (cents === 0) throw new PermanentError('There is nothing to pay.')
      if (tries < 3) throw new TransientError('The bank is closed.')
      return { receipt: 'r' }
    })
    const job = await it.client().start(order, { cents: 5 })
    await it.runUntil(job, 'cool_off')
    expect(worker.deliveries.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    const wrong = await it.client().start(order, { cents: 0 })
    expect((await it.run(wrong)).currentState).toBe('refused')
  })

  test('[M-05] a worker that crashes loses its task to another one', async () => {
    const it = await start()
    const first = await it.addWorker(shop.charge, () => it.sleep('4m').then(() => ({ receipt: 'first' })))
    const job = await it.client().start(order, { cents: 5 })
    await it.settle()
    expect(first.deliveries).toHaveLength(1)
    first.crash()
    const second = await it.addWorker(shop.charge, () => ({ receipt: 'second' }))
    await it.runUntil(job, 'cool_off')
    expect(second.deliveries).toMatchObject([{ delivery: 2, attempt: 1 }])
  })

  test('[M-05] jobs survive a crash and a restart of the orchestrator', async () => {
    const it = await start()
    await it.addWorker(shop, handlers)
    const job = await it.client().start(order, { cents: 5 })
    await it.crash()
    await it.runUntil(job, 'ask')
    await it.restart()
    await job.approve('yes')
    expect(await it.result(job)).toEqual({ parcel: 'p-r5' })
  })

  test.each([1, 2])('[M-05] with seed %s, jobs end whatever goes wrong, and each result counts once', async (seed) => {
    const it = await start({ seed, faults: { orchestratorCrash: 0.05, lostTask: 0.2, lostReply: 0.2, max: 20 } })
    await it.addWorker(shop, handlers)
    const client = it.client({ role: 'admin' })
    const jobs = []
    for (let index = 0; index < 5; index += 1) jobs.push(await client.start(parent, {}))
    for (const job of jobs) {
      await it.runUntil(job, ({ status }) => status === 'waiting_for_child')
      const { children } = await job.explain()
      const child = client.job(children[0]!.jobId, order)
      await it.runUntil(child, 'ask')
      await child.approve('yes')
      expect(await it.result(child)).toEqual({ parcel: 'p-r1' })
      expect((await it.run(job)).status).toBe('finished')
    }
    expect(await client.list().all()).toHaveLength(10)
  })

  test('[M-05] a handler that never ends is named', async () => {
    const it = await start({ handlerTimeoutMs: 200 })
    await it.addWorker(shop.charge, () => new Promise<never>(() => undefined), { shutdownMs: 1 })
    await it.client().start(order, { cents: 5 })
    await expect(it.settle()).rejects.toThrow(/does not come to rest.*worker-1.*kit\.sleep/s)
  })
})
