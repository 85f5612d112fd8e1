/** One trace over three processes, of which one is killed on the way. */
import { createClient } from '@impresario/client'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { Collector } from '../servers/collector.ts'
import { freePort } from '../servers/free-port.ts'
import { Victim } from './victim.fixture.ts'

const TOKENS = { CLIENT_TOKEN: 'trace-test-client-token', WORKER_TOKEN: 'trace-test-worker-token' }
const CLI = fileURLToPath(new URL('../../apps/cli/dist/main.js', import.meta.url))
const WORKER = fileURLToPath(new URL('programs/traced-worker.mjs', import.meta.url))
const BLUEPRINTS = fileURLToPath(new URL('programs/blueprints', import.meta.url))
const CALLER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }

test('[I-04] one trace goes from the client through a server that was killed to the worker and what it does', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'impresario-traces-'))
  const collector = await new Collector().listen()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const OTEL_EXPORTER_OTLP_ENDPOINT = collector.url
  const server = new Victim([CLI, 'start'], {
    ...TOKENS,
    API_HOST: '127.0.0.1',
    API_PORT: String(port),
    STORAGE_URL: `file:${directory}`,
    BLUEPRINTS_DIR: BLUEPRINTS,
    OTEL_EXPORTER_OTLP_ENDPOINT,
    OTEL_BSP_SCHEDULE_DELAY: '20',
    LOG_LEVEL: 'error',
  })
  const worker = new Victim([WORKER], { ...TOKENS, ORCHESTRATOR_URL: url, OTEL_EXPORTER_OTLP_ENDPOINT })
  onTestFinished(async () => {
    await Promise.all([worker.stop(), server.stop()])
    rmSync(directory, { recursive: true, force: true })
  })
  server.start()
  const client = createClient({
    url,
    token: TOKENS.CLIENT_TOKEN,
    retries: 100,
    traceContext: () => ({ traceparent: `00-${CALLER.traceId}-${CALLER.spanId}-01` }),
  })
  const job = await client.start('one_state', { value: 21 })
  // The client may have tried several times until the server was there; the request that made the job is its parent.
  await collector.until(() => collector.spans.find(({ parentSpanId }) => parentSpanId === CALLER.spanId))
  await server.kill()
  server.start()
  worker.start()
  expect(await job.result()).toMatchObject({ value: 42 })

  const found = await collector.until(() => {
    const names = ['Job:one_state', 'State:one_state:work', 'Task:double', 'Worker:double', 'inside']
    const spans = names.map((name) => collector.named(name)[0])
    return spans.every((span) => span !== undefined) ? spans : undefined
  })
  const request = collector.spans.find(({ spanId }) => spanId === found[0]?.parentSpanId)
  let parent = CALLER.spanId
  for (const { name, traceId, parentSpanId, spanId } of [request, ...found].filter((span) => span !== undefined)) {
    expect({ name, traceId, parentSpanId }).toEqual({ name, traceId: CALLER.traceId, parentSpanId: parent })
    parent = spanId
  }
  expect(request?.name).toContain('POST')
})
