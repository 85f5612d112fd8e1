import { expect, onTestFinished, test } from 'vitest'
import { Collector } from '../../../../test/servers/collector.ts'
import { blueprint } from '@impresario/core'
import { traceContextOf } from '@impresario/protocol'
import { createWorker } from '@impresario/worker'
import { startTestServer } from '../server.fixture.ts'
import { TraceRate } from './trace-rate.ts'

const quick = blueprint('quick', { start: 'begin' }, (state) => ({
  begin: state.handler((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

test('[I-04] as many traces begin in a second as are allowed, however the second before was', () => {
  let now = 0
  let skipped = 0
  const clock = { now: () => now, sleep: () => Promise.resolve() }
  const rate = new TraceRate(clock, 3, () => {
    skipped += 1
  })
  const taken = (): number => Array.from({ length: 10 }, () => rate.take()).filter(Boolean).length
  expect([taken(), rate.isUsedUp, skipped]).toEqual([3, true, 7])
  now += 400
  expect(taken()).toBe(1)
  now += 60_000
  expect([rate.isUsedUp, taken()]).toEqual([false, 3])
  const open = new TraceRate(clock, 0, () => undefined)
  expect(Array.from({ length: 10 }, () => open.take())).not.toContain(false)
})

test('[I-04] of many jobs some have a trace, and all that belong to the trace of a caller', async () => {
  const collector = await new Collector().listen()
  const settings = { otelTracesEndpoint: collector.url, otelTraceDelayMs: 10, tracesPerSecond: 1 }
  const app = await startTestServer({ blueprints: [quick], settings })
  onTestFinished(() => app.server.stop())
  const jobs = Array.from({ length: 5 }, () => ({ blueprint: 'quick' }))
  const { body } = await app.client('POST', '/api/v1/jobs/batch', { jobs })
  expect(body).toMatchObject({ results: jobs.map(() => ({ status: 'accepted' })) })
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const traceparent = `00-${trace}-b7ad6b7169203331-01`
  for (let sent = 0; sent < 3; sent += 1) {
    await app.client('POST', '/api/v1/jobs', { blueprint: 'quick' }, { traceparent })
  }
  const ofCaller = (): number => collector.named('Job:quick').filter(({ traceId }) => traceId === trace).length
  await collector.until(() => (ofCaller() === 3 ? true : undefined))
  // What began here came before, and went out before.
  expect(collector.named('Job:quick')).toHaveLength(4)
})

const inner = blueprint('inner', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) => actions.dispatchTask({ type: 'look', transitions: { success: 'done' } })),
  done: state.end(),
}))

const outer = blueprint('outer', { start: 'child' }, (state) => ({
  child: state.handler((_context, actions) =>
    actions.runBlueprint({ name: 'inner', transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

test('[I-04] a job beyond the rate keeps nothing of a trace, and neither its child nor its worker begins one', async () => {
  const collector = await new Collector().listen()
  const settings = { otelTracesEndpoint: collector.url, otelTraceDelayMs: 10, tracesPerSecond: 1 }
  const app = await startTestServer({ blueprints: [outer, inner], settings })
  const worker = createWorker({ transport: app.server.localTransport() })
  const told: string[] = []
  worker.task('look', (_params, task) => {
    told.push(String(traceContextOf(task.tracingContext)?.traceparent))
    return {}
  })
  await worker.start()
  onTestFinished(async () => {
    await worker.stop()
    await app.server.stop()
  })
  // One request: the decisions are made in one go, however slow the machine is.
  const jobs = Array.from({ length: 4 }, () => ({ blueprint: 'outer' }))
  const { body } = await app.client('POST', '/api/v1/jobs/batch', { jobs })
  const ids = (body['results'] as { readonly job_id: string }[]).map(({ job_id: id }) => id)
  for (const id of ids) await app.ended(id)
  const kept = await Promise.all(ids.map(async (id) => (await app.server.engine.readJob(id))?.value.tracing))
  expect(kept.map((tracing) => Object.keys(tracing ?? { none: '' }))).toEqual([['traceparent'], [], [], []])
  const flags = told.map((traceparent) => traceparent.slice(-2)).toSorted()
  expect(flags).toEqual(['00', '00', '00', '01'])
  expect(new Set(told.map((traceparent) => traceparent.split('-')[1])).size).toBe(4)
  await collector.until(() => collector.named('Job:outer')[0])
  expect([collector.named('Job:outer'), collector.named('Job:inner')].map(({ length }) => length)).toEqual([1, 1])
})

test('[I-04] jobs that no request starts count in the rate too', async () => {
  const collector = await new Collector().listen()
  const settings = { otelTracesEndpoint: collector.url, tracesPerSecond: 1 }
  const app = await startTestServer({ blueprints: [quick], settings })
  onTestFinished(() => app.server.stop())
  const jobs = Array.from({ length: 20 }, () => ({ blueprint: 'quick', client: { id: 'a' }, initialData: {} }))
  const created = await app.server.engine.createJobs(jobs)
  const ids = created.map((one) => ('jobId' in one ? one.jobId : ''))
  const kept = await Promise.all(ids.map(async (id) => (await app.server.engine.readJob(id))?.value.tracing))
  // Nothing: the trace of such a job follows from its id. An empty object: it has none.
  expect(new Set(kept.map((tracing) => JSON.stringify(tracing)))).toEqual(new Set([undefined, '{}']))
})

test('[I-04] a share of the traces is a share of the jobs: what is decided for a request holds for its job', async () => {
  const collector = await new Collector().listen()
  const sampling = { otelSampler: 'parentbased_traceidratio', otelSamplerShare: 0.5 } as const
  const app = await startTestServer({
    blueprints: [quick],
    settings: { otelTracesEndpoint: collector.url, otelTraceDelayMs: 10, ...sampling },
  })
  onTestFinished(() => app.server.stop())
  for (let sent = 0; sent < 24; sent += 1) await app.ended(await app.createJob('quick'))
  const trace = '0af7651916cd43dd8448eb211c80319c'
  await app.client('POST', '/api/v1/jobs', { blueprint: 'quick' }, { traceparent: `00-${trace}-b7ad6b7169203331-01` })
  await collector.until(() => collector.named('Job:quick').find(({ traceId }) => traceId === trace))
  // The span of a request may be sent after that of its job.
  const withoutRequest = (): unknown[] => {
    const requests = new Set(collector.named('POST /api/v1/jobs').map(({ spanId }) => spanId))
    return collector.named('Job:quick').filter(({ parentSpanId: id = '' }) => !requests.has(id))
  }
  await expect.poll(withoutRequest).toEqual([])
})
