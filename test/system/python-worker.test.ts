/** The Python example against a real server: the guide is enough to write a worker. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { createClient } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { isJsonObject, type JsonObject } from '@impresario/protocol'
import { createServer } from '@impresario/server'
import type { Settings } from '@impresario/server'
import { afterEach, expect, test } from 'vitest'
import { attributesIn, Collector } from '../servers/collector.ts'
import { ensure } from './debian-packages.ts'
import { installPython } from './python-packages.ts'

const missing = ensure(['python3'])
/** Those of a worker that is traced by OpenTelemetry. Its SDK is not needed: the worker uses the API alone. */
const PACKAGES = ['opentelemetry-api==1.45.0']
const TRACED = fileURLToPath(new URL('programs/traced_worker.py', import.meta.url))
const PROGRAM = fileURLToPath(new URL('../../examples/python-worker/worker.py', import.meta.url))
const TOKEN = 'python-worker-test-token'

/** One task of the type that the job names. */
const one = blueprint('one', { start: 'work' }, (state) => ({
  work: state.handler((context, actions) =>
    actions.dispatchTask({
      type: textOf(context.initialData['type']),
      params: paramsOf(context.initialData['params']),
      transitions: { success: 'done', cancelled: 'stopped' },
      ...(context.initialData['isOnce'] === true ? { attemptsMax: 1 } : {}),
    }),
  ),
  done: state.end(),
  stopped: state.end(),
}))

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function paramsOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

const cleanUp: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanUp.splice(0).toReversed()) await clean()
})

async function startServer(apiPort = 0, more: Partial<Settings> = {}) {
  const server = createServer({
    blueprints: [one],
    settings: { apiHost: '127.0.0.1', apiPort, storageUrl: 'memory:', logLevel: 'error', workerToken: TOKEN, ...more },
  })
  const { address } = await server.start()
  cleanUp.push(() => server.stop())
  return { server, address, client: createClient({ url: address }) }
}

class PythonWorker {
  readonly #child: ChildProcess
  #output = ''
  readonly #watchers: (() => void)[] = []

  constructor(address: string, env: NodeJS.ProcessEnv = {}, program = [PROGRAM]) {
    this.#child = spawn('python3', ['-B', ...program], {
      env: { ...process.env, ORCHESTRATOR_URL: address, WORKER_TOKEN: TOKEN, HEARTBEAT_INTERVAL: '0.2', ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#output += chunk.toString()
      for (const wake of this.#watchers.splice(0)) wake()
    })
    cleanUp.push(() => this.#end('SIGKILL'))
  }

  async says(text: string, times = 1): Promise<void> {
    while (this.#output.split(`"${text}"`).length <= times) {
      await new Promise<void>((resolve) => {
        this.#watchers.push(resolve)
      })
    }
  }

  /** The lines that are JSON objects with this field. */
  async lines(field: string, count: number): Promise<readonly JsonObject[]> {
    for (;;) {
      const whole = this.#output.slice(0, this.#output.lastIndexOf('\n')).split('\n')
      const found = whole.filter((line) => line.startsWith(`{"${field}"`)).map((line) => paramsOf(JSON.parse(line)))
      if (found.length >= count) return found
      await new Promise<void>((resolve) => {
        this.#watchers.push(resolve)
      })
    }
  }

  count(text: string): number {
    return this.#output.split(text).length - 1
  }

  stop(): Promise<number | null> {
    return this.#end('SIGTERM')
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    const child = this.#child
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      child.kill(signal)
      await exited
    }
    return child.exitCode
  }
}

test.skipIf(missing !== undefined)(
  `[E-06] a worker of Python's standard library does tasks of every kind${missing === undefined ? '' : ` (${missing})`}`,
  async () => {
    const { address, client } = await startServer()
    const worker = new PythonWorker(address)
    await worker.says('registered')
    const run = async (type: string, params: JsonObject) => (await client.start('one', { type, params })).result()

    expect(await run('texts.upper', { text: 'grüße' })).toMatchObject({ text: 'GRÜSSE' })
    expect(await run('texts.count', { text: 'a b a\nb a' })).toMatchObject({ words: { a: 3, b: 2 } })
    expect(await run('texts.flaky', { attempts: 2 })).toMatchObject({ attempt: 2 })
    await expect(run('texts.upper', { text: 5 })).rejects.toThrow('text must be a string')
    const many = await Promise.all(Array.from({ length: 20 }, (_, n) => run('texts.upper', { text: `n${n}` })))
    expect(many).toMatchObject(Array.from({ length: 20 }, (_, n) => ({ text: `N${n}` })))

    expect(await worker.stop()).toBe(0)
  },
)

test.skipIf(missing !== undefined)(
  '[E-06] an exception of a Python skill leaves its traceback in the log of the worker and with the job',
  async () => {
    const { address, client } = await startServer()
    const worker = new PythonWorker(address)
    await worker.says('registered')
    const job = await client.start('one', { type: 'texts.read_aloud', params: { seconds: 'many' }, isOnce: true })
    await worker.says('a skill failed')
    await expect.poll(async () => (await job.status()).status).toBe('quarantined')
    const { error } = await job.quarantined()
    expect(error?.message).toContain('ValueError')
    expect(error?.stack).toMatch(/^Traceback .*read_aloud.*ValueError: could not convert string/s)
    expect(await worker.stop()).toBe(0)
  },
)

test.skipIf(missing !== undefined)('[I-04] the Python worker continues the trace of its task', async () => {
  const collector = await new Collector().listen()
  const { address, client } = await startServer(0, {
    otelTracesEndpoint: `${collector.url}/v1/traces`,
    otelTraceDelayMs: 10,
  })
  const worker = new PythonWorker(address, { WORKER_ID: 'py-traced', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  await worker.says('registered')
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const job = await client.start(
    'one',
    { type: 'texts.flaky', params: { attempts: 2 } },
    { tracingContext: { traceparent } },
  )
  await job.result()
  const off = { tracingContext: { traceparent: traceparent.replace(/01$/, '00') } }
  await (await client.start('one', { type: 'texts.upper', params: { text: 'a' } }, off)).result()
  await collector.until(() => collector.named('Task:texts.flaky')[1])
  await collector.until(() => collector.named('Worker:texts.flaky')[1])
  const [failed, done] = collector.named('Worker:texts.flaky')
  expect([failed?.status.code, done?.status.code]).toEqual([2, 1])
  expect(failed?.status.message).toBe('ConnectionError: the dictionary does not answer')
  expect(collector.named('Worker:texts.flaky').map(({ parentSpanId }) => parentSpanId)).toEqual(
    collector.named('Task:texts.flaky').map(({ spanId }) => spanId),
  )
  expect(attributesIn(done?.attributes ?? [])).toMatchObject({ 'job.id': job.id, 'worker.id': 'py-traced' })
  expect(await worker.stop()).toBe(0)
  expect(new Set(collector.spans.map(({ traceId }) => traceId))).toEqual(new Set([traceparent.split('-')[1]]))
  expect(collector.named('Worker:texts.upper')).toEqual([])
})

test.skipIf(missing !== undefined)(
  '[I-04] in a Python program with OpenTelemetry, the spans of the worker are made by it',
  async () => {
    const packages = installPython(PACKAGES)
    // Debian has no such package, and a machine need not reach another registry: the test above shows the wire without it.
    if (packages === undefined) return console.warn(`Not tried: ${PACKAGES.join(', ')} cannot be installed with pip.`)
    cleanUp.push(async () => rm(packages, { recursive: true, force: true }))
    const collector = await new Collector().listen()
    const { address, client } = await startServer(0, {
      otelTracesEndpoint: `${collector.url}/v1/traces`,
      otelTraceDelayMs: 10,
    })
    const env = { WORKER_ID: 'py-traced', PYTHONPATH: packages }
    const worker = new PythonWorker(address, env, [TRACED, PROGRAM])
    await worker.says('registered')
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const flaky = { type: 'texts.flaky', params: { attempts: 2 } }
    const job = await client.start('one', flaky, { tracingContext: { traceparent } })
    await job.result()
    const off = traceparent.replace(/01$/, '00')
    const upper = { type: 'texts.upper', params: { text: 'a' } }
    await (await client.start('one', upper, { tracingContext: { traceparent: off } })).result()
    await collector.until(() => collector.named('Task:texts.flaky')[1])
    const spans = await worker.lines('span', 3)
    const tries = collector.named('Task:texts.flaky').map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`)
    expect(spans.map((span) => span['traceparent'])).toEqual([...tries, off])
    expect(spans).toMatchObject([
      { span: 'Worker:texts.flaky', kind: 'CONSUMER', status: 'ERROR', exception: 'ConnectionError' },
      { status: 'UNSET', attributes: { 'job.id': job.id, 'worker.id': 'py-traced', 'task.attempt': 2 } },
      { span: 'Worker:texts.upper' },
    ])
    expect(await worker.stop()).toBe(0)
    expect(worker.count('{"flushed": true}')).toBe(1)
  },
)

test.skipIf(missing !== undefined)('[E-06] a Python worker with a wrong token says once what to set', async () => {
  let refused = 0
  let seen = (): void => undefined
  const often = new Promise<void>((resolve) => {
    seen = resolve
  })
  const server = createHttpServer((_request, response) => {
    refused += 1
    if (refused === 5) seen()
    response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"Unauthorized: Invalid token"}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUp.push(async () => server.close())
  const { port } = server.address() as AddressInfo
  const worker = new PythonWorker(`http://127.0.0.1:${port}`)
  await often
  expect(await worker.stop()).toBe(0)
  expect(worker.count('Set WORKER_TOKEN')).toBe(1)
  expect(worker.count('401 Unauthorized: Invalid token')).toBe(1)
})

test.skipIf(missing !== undefined)(
  '[E-06] a cancelled task stops in the Python worker, which learns it by its heartbeat',
  async () => {
    const { address, client } = await startServer()
    const worker = new PythonWorker(address)
    await worker.says('registered')
    const job = await client.start('one', { type: 'texts.read_aloud', params: { seconds: 600 } })
    await expect.poll(async () => (await job.status()).progress ?? 0).toBeGreaterThan(0)
    await job.cancel()
    await worker.says('cancelled')
    await worker.says('delivered')
    expect((await job.status()).status).toBe('cancelled')
  },
)

test.skipIf(missing !== undefined)('[E-06] told to end, the Python worker finishes its task first', async () => {
  const { address, client } = await startServer()
  const worker = new PythonWorker(address)
  await worker.says('registered')
  const job = await client.start('one', { type: 'texts.read_aloud', params: { seconds: 2 } })
  await expect.poll(async () => (await job.status()).progress ?? 0).toBeGreaterThan(0)
  expect(await worker.stop()).toBe(0)
  expect(await job.result()).toMatchObject({ read: true })
})

test.skipIf(missing !== undefined)(
  '[E-06] the Python worker hands back what takes too long, and another one does it',
  async () => {
    const { address, client } = await startServer()
    const first = new PythonWorker(address, { WORKER_ID: 'py-1', WORKER_SHUTDOWN_TIMEOUT: '0' })
    await first.says('registered')
    const job = await client.start('one', { type: 'texts.read_aloud', params: { seconds: 3 } })
    await expect.poll(async () => (await job.status()).progress ?? 0).toBeGreaterThan(0)
    expect(await first.stop()).toBe(0)
    const second = new PythonWorker(address, { WORKER_ID: 'py-2' })
    await second.says('delivered')
    expect(await job.result()).toMatchObject({ read: true })
  },
)

test.skipIf(missing !== undefined)(
  '[E-06] a server that forgot everything is found again by the Python worker',
  async () => {
    const before = await startServer()
    const worker = new PythonWorker(before.address)
    await worker.says('registered')
    await before.server.stop()
    const after = await startServer(Number(new URL(before.address).port))
    await worker.says('registered', 2)
    const job = await after.client.start('one', { type: 'texts.upper', params: { text: 'again' } })
    expect(await job.result()).toMatchObject({ text: 'AGAIN' })
  },
)
