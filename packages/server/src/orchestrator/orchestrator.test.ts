import { blueprint } from '@impresario/core'
import { contract, ExactNumber } from '@impresario/protocol'
import { createWorker } from '@impresario/worker'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { JobFailedError, createOrchestrator } from '../embedded.ts'
import type { Orchestrator } from '../embedded.ts'

const greeter = contract('greeter', {
  greet: { input: z.object({ name: z.string() }), output: z.object({ greeting: z.string() }) },
})

const hello = blueprint(
  'hello',
  { input: z.object({ name: z.string() }), output: z.string(), start: 'greet' },
  (state) => ({
    greet: state.handler((context, actions) =>
      actions.dispatchTask(greeter.greet, { params: context.initialData, transitions: { success: 'greeted' } }),
    ),
    greeted: state.end({ result: (context) => context.resultOf(greeter.greet).greeting }),
  }),
)

const ask = blueprint('ask', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Go on?', transitions: { yes: 'done', no: 'refused' } }),
  ),
  done: state.end(),
  refused: state.end({ outcome: 'failed' }),
}))

const broken = blueprint('broken', { start: 'try', handlerAttemptsMax: 1 }, (state) => ({
  try: state.handler((context, actions) => {
    if (context.initialData['works'] !== true) throw new Error('It does not work.')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

const running: Orchestrator[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.stop()))
})

async function aStage(): Promise<Orchestrator> {
  const orchestrator = createOrchestrator({
    blueprints: [hello, ask, broken],
    settings: { storageUrl: newStorageUrl(), logLevel: 'silent' },
  })
  running.push(orchestrator)
  await orchestrator.start()
  return orchestrator
}

/** The job once it waits for a person. */
async function whenAsked(orchestrator: Orchestrator, id: string): Promise<number> {
  const signal = new AbortController().signal
  for (let afterVersion = 0; ; afterVersion += 1) {
    const found = await orchestrator.engine.waitForJob(id, { afterVersion, waitMs: 5_000, signal })
    if (found?.value.status === 'waiting_for_human') return found.value.visit
  }
}

test('[E-07] a program brings an orchestrator along: no network, the same blueprints and workers', async () => {
  const orchestrator = await aStage()
  const worker = createWorker({ transport: orchestrator.localTransport() })
  worker.handle(greeter, { greet: ({ name }) => ({ greeting: `Hello, ${name}!` }) })
  await worker.start()
  const client = orchestrator.client()
  const job = await client.start(hello, { name: 'Ada' })
  const greeting: string = await job.result()
  expect(greeting).toBe('Hello, Ada!')
  expect((await job.status()).status).toBe('finished')
  expect((await client.list().all()).map(({ id }) => id)).toEqual([job.id])
  expect((await client.workers()).map(({ supportedSkills }) => supportedSkills)).toEqual([['greeter.greet']])
  await worker.stop()
})

test('[C-08] the same key gives the same job; wrong data is refused', async () => {
  const client = (await aStage()).client()
  const first = await client.start('ask', {}, { idempotencyKey: 'k' })
  expect((await client.start('ask', {}, { idempotencyKey: 'k' })).id).toBe(first.id)
  await expect(client.start('hello', { name: 7 })).rejects.toMatchObject({ code: 'INPUT_REFUSED' })
  await expect(client.start('nothing')).rejects.toMatchObject({ code: 'BLUEPRINT_NOT_FOUND' })
  await expect(client.start('ask', {}, { webhookUrl: 'ftp://x' })).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
})

const ledger = contract('ledger', {
  book: {
    input: z.object({ id: z.number(), amount: z.number() }),
    output: z.object({ booked: z.union([z.number(), z.bigint()]) }),
  },
})

/** Asks for numbers, as most schemas do, and compares one of them in a condition. */
const booking = blueprint(
  'booking',
  {
    input: z.object({ id: z.number(), amount: z.number() }),
    history: ledger.book.output,
    output: z.looseObject({}),
    start: 'choose',
  },
  (state) => ({
    choose: state
      .when('context.initial_data.id == 9007199254740993', (context, actions) =>
        actions.dispatchTask(ledger.book, { params: context.initialData, transitions: { success: 'done' } }),
      )
      .otherwise((_context, actions) => actions.transitionTo('other')),
    done: state.end({ result: (context) => ({ ...context.initialData, booked: context.stateHistory.booked }) }),
    other: state.end({ outcome: 'failed' }),
  }),
)

test('[E-07] [A-10] numbers of any length pass handlers, conditions, schemas and workers of the same process', async () => {
  const orchestrator = createOrchestrator({
    blueprints: [booking],
    settings: { storageUrl: newStorageUrl(), logLevel: 'silent' },
  })
  running.push(orchestrator)
  await orchestrator.start()
  const worker = createWorker({ transport: orchestrator.localTransport() })
  worker.handle(ledger, { book: ({ id }) => ({ booked: id }) })
  await worker.start()
  const client = orchestrator.client()
  const data = { id: 9_007_199_254_740_993n, amount: new ExactNumber('0.30000000000000001') }
  const job = await client.start('booking', data, { metadata: { big: 2n ** 64n } })
  expect(await job.result()).toEqual({ ...data, booked: data.id })
  expect(await job.status()).toMatchObject({ initialData: data, metadata: { big: 2n ** 64n } })
  const near = await client.start('booking', { ...data, id: 9_007_199_254_740_992n })
  expect((await near.wait()).status).toBe('failed')
  await worker.stop()
})

test('[C-10] numbers that are none are refused in the same process too', async () => {
  const client = (await aStage()).client()
  for (const value of [Number.NaN, Infinity, -Infinity]) {
    await expect(client.start('ask', { a: [value] })).rejects.toMatchObject({ code: 'INPUT_REFUSED' })
    await expect(client.start('ask', {}, { metadata: { a: value } })).rejects.toMatchObject({ code: 'INPUT_REFUSED' })
    await expect(client.start('ask', {}, { priority: value })).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    await expect(client.start('ask', {}, { resultTimeoutMs: value })).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  }
})

test('[B-04] a decision is for the request that was seen', async () => {
  const orchestrator = await aStage()
  const job = await orchestrator.client().start(ask, {})
  const visit = await whenAsked(orchestrator, job.id)
  await expect(job.approve('perhaps')).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  await expect(job.approve('yes', { visit: visit + 1 })).rejects.toMatchObject({ code: 'STALE_DECISION' })
  await job.approve('no', { visit, comment: 'not today' })
  const failure: unknown = await job.result().catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(JobFailedError)
  expect(failure).toMatchObject({ job: { status: 'failed', currentState: 'refused' } })
})

test('[C-05, C-07] jobs are cancelled, retried with other data and discarded', async () => {
  const orchestrator = await aStage()
  const client = orchestrator.client()
  const asked = await client.start(ask, {})
  await asked.cancel('enough')
  await asked.cancel()
  expect((await asked.status()).errorMessage).toBe('enough')
  const one = await client.start(broken, {})
  expect((await one.wait()).status).toBe('quarantined')
  await one.retry({ initialData: { works: true } })
  expect((await one.wait()).status).toBe('finished')
  await one.retry({ initialData: { works: true } })
  await expect(one.retry()).rejects.toMatchObject({ code: 'NOT_WAITING' })
  const other = await client.start(broken, {})
  await other.wait()
  expect(await other.explain()).toMatchObject({ status: 'quarantined', tasks: [] })
  await other.discard()
  await other.discard()
  expect((await other.status()).status).toBe('failed')
  await expect(other.retry()).rejects.toMatchObject({ code: 'NOT_WAITING' })
})

test('[H-05] another client does not see the job', async () => {
  const orchestrator = await aStage()
  const job = await orchestrator.client({ id: 'acme' }).start(ask, {})
  const stranger = orchestrator.client({ id: 'other' })
  await expect(stranger.job(job.id).status()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
  await expect(stranger.job(job.id).cancel()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
  expect(await stranger.list().all()).toEqual([])
})

test('[I-07] a wait ends when its time is up or it is given up, and a stop may be asked for twice', async () => {
  const orchestrator = await aStage()
  const job = await orchestrator.client().start(ask, {})
  await expect(job.wait({ timeoutMs: 1 })).rejects.toMatchObject({ name: 'TimeoutError' })
  await expect(job.wait({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
  await orchestrator.stop()
  await orchestrator.stop()
})
