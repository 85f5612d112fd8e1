import { blueprint } from '@impresario/core'
import { createWorker } from '@impresario/worker'
import { expect, onTestFinished, test } from 'vitest'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { attributesIn, Collector } from '../../../../test/servers/collector.ts'
import type { OtlpLogRecord } from '../../../../test/servers/collector.ts'
import { setLogLevel } from '../client-api/admin-routes.ts'
import type { Settings } from '../config/config.ts'
import { createOrchestrator } from '../orchestrator.ts'
import type { Orchestrator } from '../orchestrator.ts'
import { createLog } from '../runtime/log.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` }

const talker = blueprint('talker', { start: 'begin' }, (state) => ({
  begin: state.handler((context, actions) => {
    context.log.info('hello', { token: 'very secret', nested: { password: 'very secret', list: [1] }, price: 1.5 })
    context.log.debug('for those who debug')
    return actions.dispatchTask({ type: 'fall', attemptsMax: 1, transitions: { failure: 'done' } })
  }),
  done: state.end(),
}))

async function start(settings: Partial<Settings>, lines: string[] = []): Promise<Orchestrator> {
  const destination = { write: (line: string) => lines.push(line) }
  const orchestrator = createOrchestrator({
    blueprints: [talker],
    log: createLog({ level: 'info', format: 'json', timeZone: 'UTC', instance: 'one', destination }),
    settings: { storageUrl: newStorageUrl(), otelLogDelayMs: 10, otelTraceDelayMs: 10, instanceId: 'one', ...settings },
  })
  await orchestrator.start()
  onTestFinished(() => orchestrator.stop())
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const worker = createWorker({ transport: orchestrator.localTransport(), log })
  worker.task('fall', () => {
    throw new Error('not today')
  })
  await worker.start()
  onTestFinished(() => worker.stop())
  return orchestrator
}

test('[I-05] [I-04] the log goes to a collector too, and its lines lead to the spans that they are about', async () => {
  const collector = await new Collector().listen()
  const lines: string[] = []
  const orchestrator = await start({ otelEndpoint: collector.url, otelHeaders: 'x-key=1' }, lines)
  const job = await orchestrator.client().start('talker', {}, { tracingContext: CALLER })
  await job.result()
  const hello = await collector.until(() => collector.lines('hello')[0])
  const failed = await collector.until(() => collector.lines('a task failed')[0])
  const [state, run] = [
    await collector.until(() => collector.named('State:talker:begin')[0]),
    await collector.until(() => collector.named('Task:fall')[0]),
  ]
  expect(hello).toMatchObject({ severityNumber: 9, severityText: 'INFO', traceId: TRACE, spanId: state.spanId })
  expect(failed).toMatchObject({ severityNumber: 13, severityText: 'WARN', traceId: TRACE, spanId: run.spanId })
  expect(attributesIn(hello.attributes)).toEqual({
    job_id: job.id,
    blueprint: 'talker',
    state: 'begin',
    token: '[hidden]',
    nested: '{"password":"[hidden]","list":[1]}',
    price: 1.5,
  })
  expect(attributesIn(failed.attributes)).toMatchObject({ job_id: job.id, code: 'TRANSIENT_ERROR', attempt: 1 })
  expect(Math.abs(Number(BigInt(hello.timeUnixNano) / 1_000_000n) - Date.now())).toBeLessThan(60_000)
  expect(JSON.stringify(collector.records)).not.toContain('very secret')
  expect(collector.requests).toContainEqual(
    expect.objectContaining({ url: '/v1/logs', headers: expect.objectContaining({ 'x-key': '1' }) as unknown }),
  )
  expect(collector.resources).toContainEqual(expect.objectContaining({ 'service.instance.id': 'one' }))
  // The log itself has the same lines, in the same order, each with its trace.
  const written = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(written.find(({ msg }) => msg === 'hello')).toMatchObject({ trace_id: TRACE, span_id: state.spanId })
  const bodies = collector.records.map(({ body }) => body.stringValue)
  expect(bodies).toEqual(written.slice(0, bodies.length).map(({ msg }) => msg))
})

test('[I-05] what is sent follows the level of the log, also when it is changed while the server runs', async () => {
  const collector = await new Collector().listen()
  const orchestrator = await start({ otelLogsEndpoint: `${collector.url}/own` })
  await orchestrator.client().start('talker', {})
  await collector.until(() => collector.lines('hello')[0])
  expect(collector.lines('for those who debug')).toEqual([])
  expect(setLogLevel(orchestrator.parts.log, 'debug')).toEqual({ level: 'debug', before: 'info' })
  await orchestrator.client().start('talker', {})
  const line: OtlpLogRecord = await collector.until(() => collector.lines('for those who debug')[0])
  expect([line.severityText, line.traceId ?? '']).toEqual(['DEBUG', ''])
  expect(collector.lines('telemetry is on')).toHaveLength(1)
  expect(collector.requests[0]?.url).toBe('/own')
  expect(collector.spans).toEqual([])
})

test('[I-05] a collector of logs that is gone or slow does no harm, and what is lost is counted', async () => {
  const collector = await new Collector().listen()
  collector.status = 400
  const refused = await start({ otelLogsEndpoint: collector.url })
  const gone = await start({ otelLogsEndpoint: 'http://127.0.0.1:9/', otelTimeoutMs: 50 })
  const tiny = await start({ otelLogsEndpoint: collector.url, otelLogQueueMax: 1, otelLogDelayMs: 3_600_000 })
  const small = await start({
    otelLogsEndpoint: collector.url,
    otelLogQueueBytesMax: 1_024,
    otelLogDelayMs: 3_600_000,
  })
  const lost = async (orchestrator: Orchestrator): Promise<string> => {
    const job = await orchestrator.client().start('talker', {})
    expect(await job.result()).toBeDefined()
    await orchestrator.stop()
    const isOfLoss = (line: string): boolean => /^impresario_log_lines_dropped_total.* [1-9]/.test(line)
    return orchestrator.parts.metrics.text().split('\n').filter(isOfLoss).join('\n')
  }
  expect(await lost(refused)).toContain('reason="export_failed"')
  expect(await lost(gone)).toContain('reason="export_failed"')
  expect(await lost(tiny)).toContain('reason="queue_full"')
  expect(await lost(small)).toContain('reason="queue_full"')
})

test('[I-05] a collector that takes traces and no logs is told of once, however often it refuses', async () => {
  const collector = await new Collector().listen()
  collector.unknown.add('/v1/logs')
  const lines: string[] = []
  const orchestrator = await start({ otelEndpoint: collector.url }, lines)
  for (let round = 1; round <= 3; round += 1) {
    await (await orchestrator.client().start('talker', {})).result()
    await collector.until(() => collector.named('Job:talker')[round - 1])
    await collector.until(() =>
      collector.requests.filter(({ url }) => url === '/v1/logs').length > round ? 1 : undefined,
    )
  }
  expect(lines.filter((line) => line.includes('the collector does not take telemetry'))).toHaveLength(1)
})
