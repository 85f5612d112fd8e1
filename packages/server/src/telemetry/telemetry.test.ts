import { blueprint, child } from '@impresario/core'
import { createWorker } from '@impresario/worker'
import { expect, onTestFinished, test } from 'vitest'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { createOrchestrator } from '../orchestrator.ts'
import type { Orchestrator } from '../orchestrator.ts'
import type { Settings } from '../config/config.ts'
import { attributesIn, Collector } from '../../../../test/servers/collector.ts'
import type { OtlpSpan } from '../../../../test/servers/collector.ts'

const CALLER = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'rojo=1' }

const inner = blueprint('child', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) => actions.dispatchTask({ type: 'look', transitions: { success: 'done' } })),
  done: state.end(),
}))

const parent = blueprint('parent', { start: 'work' }, (state) => ({
  work: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'shaky', attemptsMax: 2, transitions: { success: 'split' } }),
  ),
  split: state.handler((_context, actions) =>
    actions.dispatchParallel([child('child', {}), child('child', {})], { into: 'join' }),
  ),
  join: state.aggregator((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

async function start(settings: Partial<Settings>): Promise<Orchestrator> {
  const orchestrator = createOrchestrator({
    blueprints: [parent, inner],
    settings: { storageUrl: newStorageUrl(), logLevel: 'silent', otelTraceDelayMs: 10, ...settings },
  })
  await orchestrator.start()
  onTestFinished(() => orchestrator.stop())
  return orchestrator
}

/** Fails the first try of a task, and notes what it was told of the trace. */
async function work(orchestrator: Orchestrator): Promise<readonly (string | undefined)[]> {
  const told: (string | undefined)[] = []
  const worker = createWorker({ transport: orchestrator.localTransport() })
  worker.task('look', (_params, task) => {
    told.push(task.tracingContext['traceparent'])
    return {}
  })
  worker.task('shaky', (_params, task) => {
    told.push(task.tracingContext['traceparent'])
    if (task.attempt === 1) throw new Error('not yet')
    return {}
  })
  await worker.start()
  onTestFinished(() => worker.stop())
  return told
}

test('[I-04] a trace has the job, its states, handlers, tries and children, over a retry', async () => {
  const collector = await new Collector().listen()
  const orchestrator = await start({ otelEndpoint: collector.url, otelHeaders: 'x-key=a%20b', instanceId: 'one' })
  const told = await work(orchestrator)
  const job = await orchestrator.client().start('parent', {}, { tracingContext: CALLER })
  await job.result()
  const root = await collector.until(() => collector.named('Job:parent')[0])
  await collector.until(() => (collector.named('Job:child').length === 2 ? true : undefined))

  expect(new Set(collector.spans.map(({ traceId }) => traceId))).toEqual(new Set([CALLER.traceparent.split('-')[1]]))
  expect(root.parentSpanId).toBe(CALLER.traceparent.split('-')[2])
  expect(attributesIn(root.attributes)).toMatchObject({ 'job.id': job.id, 'job.status': 'finished' })
  const parentOf = (span: OtlpSpan): OtlpSpan | undefined =>
    collector.spans.find(({ spanId }) => spanId === span.parentSpanId)
  const [first, second] = collector.named('Task:shaky')
  expect([first?.status.code, second?.status.code]).toEqual([2, 1])
  expect(first?.status.message).toContain('not yet')
  for (const span of [first, second]) expect(span && parentOf(span)?.name).toBe('State:parent:work')
  const [split] = collector.named('JobExecutor:parent:split')
  expect(split && parentOf(split)?.name).toBe('State:parent:split')
  for (const span of collector.named('Job:child')) expect(parentOf(span)?.name).toBe('State:parent:split')
  for (const span of collector.named('State:parent:work')) expect(parentOf(span)).toBe(root)
  expect(collector.spans.filter((span) => parentOf(span) === undefined)).toEqual([root])
  const tries = [...collector.named('Task:shaky'), ...collector.named('Task:look')]
  expect(new Set(told)).toEqual(new Set(tries.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`)))
  const links = collector.named('JobExecutor:parent:join')[0]?.links.map(({ spanId }) => spanId) ?? []
  expect(links).toEqual(collector.named('State:parent:split').map(({ spanId }) => spanId))
  for (const { startTimeUnixNano, endTimeUnixNano } of collector.spans) {
    expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano))
  }
  expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(collector.spans.length)
  expect(collector.resources[0]).toMatchObject({ 'service.name': 'impresario', 'service.instance.id': 'one' })
  expect(collector.requests[0]).toMatchObject({ url: '/v1/traces', headers: { 'x-key': 'a b' } })
})

test('[I-04] a job without a trace gets one; what a caller does not record is not recorded', async () => {
  const collector = await new Collector().listen()
  const orchestrator = await start({ otelTracesEndpoint: `${collector.url}/own` })
  const told = await work(orchestrator)
  const client = orchestrator.client()
  const off = CALLER.traceparent.replace(/01$/, '00')
  const unseen = await client.start('child', {}, { tracingContext: { traceparent: off } })
  await unseen.result()
  const seen = await client.start('child', {})
  await seen.result()
  const root = await collector.until(() => collector.named('Job:child')[0])
  expect(attributesIn(root.attributes)['job.id']).toBe(seen.id)
  expect(root.parentSpanId).toBeUndefined()
  expect(collector.spans.every(({ traceId }) => traceId === root.traceId)).toBe(true)
  expect(told).toHaveLength(2)
  expect(told[0]).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-[\da-f]{16}-00$/)
  expect(told[1]).toMatch(new RegExp(`^00-${root.traceId}-[\\da-f]{16}-01$`))
  expect(collector.requests[0]?.url).toBe('/own')
})

test('[I-04] a collector that is gone or refuses does no harm, and what is lost is counted', async () => {
  const collector = await new Collector().listen()
  collector.status = 400
  const refused = await start({ otelTracesEndpoint: collector.url })
  const gone = await start({ otelTracesEndpoint: 'http://127.0.0.1:9/', otelTimeoutMs: 50 })
  const tiny = await start({ otelTracesEndpoint: collector.url, otelQueueMax: 1, otelTraceDelayMs: 3_600_000 })
  const small = await start({
    otelTracesEndpoint: collector.url,
    otelQueueBytesMax: 1_024,
    otelTraceDelayMs: 3_600_000,
  })
  for (const orchestrator of [refused, gone, tiny, small]) {
    await work(orchestrator)
    const job = await orchestrator.client().start('child', {})
    expect(await job.result()).toBeDefined()
    await orchestrator.stop()
  }
  const lost = (orchestrator: Orchestrator): string =>
    orchestrator.parts.metrics
      .text()
      .split('\n')
      .filter((line) => /^impresario_spans_dropped_total.* [1-9]/.test(line))
      .join('\n')
  expect(lost(refused)).toContain('reason="export_failed"')
  expect(lost(gone)).toContain('reason="export_failed"')
  expect(lost(tiny)).toContain('reason="queue_full"')
  expect(lost(small)).toContain('reason="queue_full"')
})

test('[I-03] the figures go to a collector too, with their labels and buckets', async () => {
  const collector = await new Collector().listen()
  const orchestrator = await start({ otelMetricsEndpoint: `${collector.url}/v1/metrics`, otelMetricIntervalMs: 100 })
  await work(orchestrator)
  const job = await orchestrator.client().start('child', {})
  await job.result()
  const named = (name: string) => collector.metrics.findLast((metric) => metric.name === name)
  await collector.until(() => named('orchestrator_job_duration_seconds'))
  const created = named('orchestrator_jobs_total')?.sum
  expect(created?.isMonotonic).toBe(true)
  expect(created?.dataPoints.map(({ asDouble, attributes }) => [asDouble, attributesIn(attributes)])).toEqual([
    [1, { blueprint: 'child' }],
  ])
  const [duration] = named('orchestrator_job_duration_seconds')?.histogram?.dataPoints ?? []
  expect(Number(duration?.count)).toBe(1)
  expect(duration?.bucketCounts).toHaveLength((duration?.explicitBounds?.length ?? 0) + 1)
  expect(named('process_resident_memory_bytes')?.gauge?.dataPoints).toHaveLength(1)
  expect(collector.spans).toEqual([])
})
