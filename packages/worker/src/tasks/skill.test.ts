import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { contract } from '@impresario/protocol'
import type { ResultRequest, WireTask } from '@impresario/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import * as sdk from '../index.ts'
import { stderrLog } from '../runtime/log.ts'
import { settingsOf } from '../settings/settings.ts'
import { silentLog, taskOf, TestOrchestrator } from '../orchestrator.fixture.ts'
import { Gauge, Telemetry, type Usage } from './telemetry.ts'

let orchestrator: TestOrchestrator
const cleanUp: (() => Promise<void>)[] = []

beforeEach(async () => {
  orchestrator = await new TestOrchestrator().listen()
  cleanUp.push(() => orchestrator.close())
})
afterEach(async () => {
  for (const clean of cleanUp.splice(0).toReversed()) await clean()
})

function makeWorker(options: sdk.WorkerOptions = {}) {
  const worker = sdk.createWorker({ url: orchestrator.url, id: 'w1', log: silentLog, shutdownMs: 0, ...options })
  cleanUp.push(() => worker.stop())
  return worker
}

async function resultOf(task: WireTask): Promise<ResultRequest> {
  orchestrator.give(task)
  return orchestrator.resultOf(task)
}

const texts = contract('texts', {
  upper: { input: z.object({ text: z.string() }), output: z.object({ text: z.string() }) },
  count: { input: z.object({ text: z.string() }), output: z.object({ length: z.number() }) },
})

test('[E-05] a worker may serve one task of a contract, with its checks, and offers only that', async () => {
  const worker = makeWorker().handle(texts.upper, ({ text }) => ({ text: text.toUpperCase() }))
  await worker.start()
  const upper = taskOf('texts.upper', { text: 'aria' })
  expect(await resultOf(upper)).toMatchObject({ status: 'success', data: { text: 'ARIA' } })
  const wrong = await resultOf(taskOf('texts.upper', { text: 7 }))
  expect(wrong).toMatchObject({ error: { code: 'INVALID_INPUT_ERROR' } })
  const [registered] = orchestrator.registrations
  expect(registered?.supported_skills).toMatchObject([{ name: 'texts.upper' }])
})

test('[E-05] what has no handler is refused with the way to serve a part', () => {
  const serve = makeWorker().handle.bind(makeWorker()) as (contract: unknown, handlers: unknown) => unknown
  expect(() => serve(texts, { upper: () => ({ text: '' }) })).toThrow(
    /no handler for "count".*worker\.handle\(contract/,
  )
  expect(() => serve(texts, () => ({}))).toThrow('There is no handler for "upper"')
  expect(() => serve(texts.upper, { upper: () => ({}) })).toThrow('The handler of "texts.upper" must be a function')
})

test('[E-05] middlewares run around the handler, the first outermost, and can change what goes in and comes out', async () => {
  const order: string[] = []
  const worker = makeWorker()
    .use(async (context, next) => {
      order.push('a in')
      context.notes.set('from', 'a')
      const returned = await next()
      order.push('a out')
      return { wrapped: returned }
    })
    .use(async (context, next) => {
      order.push(`b in, after ${String(context.notes.get('from'))}`)
      context.params = { ...context.params, n: 2 }
      await next()
      order.push('b out')
    })
    .task('t', { input: z.object({ n: z.number() }) }, ({ n }, task) => {
      order.push(task.type)
      return { n }
    })
  await worker.start()
  expect(await resultOf(taskOf('t', { n: 'not yet a number' }))).toMatchObject({ data: { wrapped: { n: 2 } } })
  expect(order).toEqual(['a in', 'b in, after a', 't', 'b out', 'a out'])
})

test('[E-05] a middleware can do without the handler, and what it throws fails the task', async () => {
  let calls = 0
  const worker = makeWorker()
    .use(({ params }, next) => {
      if (params['do'] === 'throw') throw new sdk.SecurityError('not you')
      return params['do'] === 'cached' ? { cached: true } : next()
    })
    .task('t', () => {
      calls += 1
      throw new sdk.PermanentError('from the handler')
    })
  await worker.start()
  expect(await resultOf(taskOf('t', { do: 'cached' }))).toMatchObject({ status: 'success', data: { cached: true } })
  expect(await resultOf(taskOf('t', { do: 'throw' }))).toMatchObject({ error: { code: 'SECURITY_ERROR' } })
  expect(calls).toBe(0)
  expect(await resultOf(taskOf('t'))).toMatchObject({ error: { code: 'PERMANENT_ERROR', message: 'from the handler' } })
})

test('[E-05] a middleware that calls next twice is told so', async () => {
  const worker = makeWorker()
    .use(async (_context, next) => {
      await next()
      await next()
    })
    .task('t', () => undefined)
  await worker.start()
  expect(await resultOf(taskOf('t'))).toMatchObject({
    status: 'failure',
    error: { message: 'A middleware called next() twice.' },
  })
})

test('[E-05] params are checked against a JSON Schema, and the schema is told to the orchestrator', async () => {
  const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } }
  const worker = makeWorker().task('t', { input: sdk.jsonSchema<{ n: number }>(schema) }, ({ n }) => ({ n: n + 1 }))
  await worker.start()
  expect(orchestrator.registrations[0]?.supported_skills).toEqual([{ name: 't', input_schema: schema }])
  expect(await resultOf(taskOf('t', { n: 1 }))).toMatchObject({ data: { n: 2 } })
  expect(await resultOf(taskOf('t', { n: 'x' }))).toMatchObject({
    error: { code: 'INVALID_INPUT_ERROR', message: 'The input is not as agreed: n: must be integer' },
  })
})

test('[E-05] what a handler returns is checked, unless that is switched off', async () => {
  const options = { output: z.object({ n: z.number() }), description: 'counts', version: '2' }
  const strict = makeWorker().task('t', options, () => ({ n: 'one' }))
  await strict.start()
  expect(await resultOf(taskOf('t'))).toMatchObject({ error: { code: 'CONTRACT_VIOLATION_ERROR' } })
  expect(orchestrator.registrations[0]?.supported_skills).toMatchObject([
    { name: 't', description: 'counts', version: '2', output_schema: { type: 'object' } },
  ])
  await strict.stop()
  const loose = makeWorker({ id: 'w2', validateResults: false }).task('t', options, () => ({ n: 'one' }))
  await loose.start()
  expect(await resultOf(taskOf('t'))).toMatchObject({ status: 'success', data: { n: 'one' } })
})

test('[E-05] a task that takes longer than its skill allows sees its signal abort and fails as timed out', async () => {
  const causes: unknown[] = []
  const worker = makeWorker().task('t', { timeoutMs: 20 }, async (_params, { signal }) => {
    await new Promise<void>((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        causes.push(signal.reason)
        reject(new Error('stopped'))
      })
    })
  })
  await worker.start()
  expect(await resultOf(taskOf('t'))).toMatchObject({ status: 'failure', error: { code: 'TIMEOUT_ERROR' } })
  expect(causes).toMatchObject([{ reason: 'timeout' }])
})

test.for([
  ['IntegrityMismatchError', sdk.IntegrityMismatchError, 'INTEGRITY_MISMATCH_ERROR'],
  ['ResourceExhaustedError', sdk.ResourceExhaustedError, 'RESOURCE_EXHAUSTED_ERROR'],
  ['TimeoutError', sdk.TimeoutError, 'TIMEOUT_ERROR'],
  ['DependencyError', sdk.DependencyError, 'DEPENDENCY_ERROR'],
  ['DependencyMissingError', sdk.DependencyMissingError, 'DEPENDENCY_MISSING_ERROR'],
  ['SecurityError', sdk.SecurityError, 'SECURITY_ERROR'],
  ['TransientError', sdk.TransientError, 'TRANSIENT_ERROR'],
  ['PermanentError', sdk.PermanentError, 'PERMANENT_ERROR'],
  ['InvalidInputError', sdk.InvalidInputError, 'INVALID_INPUT_ERROR'],
] as const)('[E-05] %s has its own code', ([name, Failure, code]) => {
  const error = new Failure('why', { details: { a: 1 } })
  expect(error).toMatchObject({ name, code, message: 'why', details: { a: 1 } })
  expect(error).toBeInstanceOf(sdk.TaskFailure)
})

test('[E-05] skills come from a directory, and a module that is none is named', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'impresario-skills-'))
  writeFileSync(join(directory, 'a.mjs'), `export default (worker) => worker.task('from.file', () => ({ file: true }))`)
  writeFileSync(join(directory, 'notes.txt'), '')
  const worker = await makeWorker({ skillsDir: directory }).loadSkills()
  await worker.start()
  expect(await resultOf(taskOf('from.file'))).toMatchObject({ data: { file: true } })
  writeFileSync(join(directory, 'b.mjs'), 'export const nothing = 1')
  await expect(makeWorker().loadSkills(directory)).rejects.toThrow('b.mjs')
  await expect(makeWorker().loadSkills(join(directory, 'none'))).rejects.toThrow('WORKER_SKILLS_DIR')
})

test('[E-05] the use of the machine is told when it has changed, and from time to time', () => {
  let usage: Usage = { cpuPercent: 10, ramGb: 1 }
  let now = 0
  const telemetry = new Telemetry({ deadband: 5, forceMs: 1_000, read: () => usage, now: () => now })
  const listener = {}
  expect(telemetry.next(listener)).toEqual({ cpu_load_percent: 10, ram_used_gb: 1 })
  usage = { cpuPercent: 14, ramGb: 1 }
  expect(telemetry.next(listener)).toBeUndefined()
  expect(telemetry.next({})).toBeDefined()
  usage = { cpuPercent: 15, ramGb: 1 }
  expect(telemetry.next(listener)).toEqual({ cpu_load_percent: 15, ram_used_gb: 1 })
  now = 1_000
  expect(telemetry.next(listener)).toBeDefined()
  const { cpuPercent, ramGb } = new Gauge().read()
  expect([cpuPercent >= 0 && cpuPercent <= 100, ramGb > 0]).toEqual([true, true])
})

test('[E-05] heartbeats tell the use of the machine when that is switched on', async () => {
  await makeWorker({ telemetry: true, heartbeatMs: 20 })
    .task('t', () => undefined)
    .start()
  // Heartbeats may overtake one another on their way, and only one of them has news to tell.
  const told = (): object | undefined => orchestrator.heartbeats.find(({ usage }) => usage)?.usage ?? undefined
  await orchestrator.until(() => told() !== undefined)
  expect(Object.keys(told() ?? {})).toEqual(['cpu_load_percent', 'ram_used_gb'])
})

function written(work: () => void): readonly string[] {
  const lines: string[] = []
  const write = process.stderr.write.bind(process.stderr)
  process.stderr.write = (text: string | Uint8Array): boolean => lines.push(String(text)) > 0
  try {
    work()
  } finally {
    process.stderr.write = write
  }
  return lines
}

test('[I-05] the log of a worker is in its time zone; one that is not known is no reason to be without a log', () => {
  const lines = written(() => {
    for (const zone of ['Asia/Kathmandu', 'UTC', ':/etc/localtime']) stderrLog('text', 'info', zone).info('this')
  })
  expect(
    lines.map((line) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?<zone>\S+) /.exec(line)?.groups?.['zone']),
  ).toEqual(['+05:45', 'Z', 'Z'])
  const { log } = settingsOf({}, { TZ: 'Asia/Kathmandu' })
  expect(written(() => log.info('this'))[0]).toContain('+05:45 INFO')
})

test('[I-05] no text makes a line of its own in the log of a worker, and no field passes for what the log says itself', () => {
  const [text = '', json = ''] = written(() => {
    stderrLog('text', 'info').info('one\n2026-01-01 ERROR two\u001B[2J', { stack: 'Error: x\n  at y\u001B[2J' })
    stderrLog('json', 'info').info('this', { level: 'error', message: 'that', time: 'never', n: 1 })
  })
  expect(text.split('\n')).toEqual([
    expect.stringMatching(/Z INFO {2}one\\n2026-01-01 ERROR two\\u001b\[2J$/),
    '    Error: x',
    String.raw`      at y\u001b[2J`,
    '',
  ])
  expect(JSON.parse(json)).toEqual({
    time: expect.stringMatching(/Z$/) as unknown,
    level: 'info',
    message: 'this',
    n: 1,
  })
})

test('[E-05] the log is text for people or JSON for programs, from the level on that is set', () => {
  const lines = written(() => {
    const text = stderrLog('text', 'warn')
    text.info('not this')
    text.warn('this', { n: 1 })
    stderrLog('json', 'debug').debug('that', { n: 2 })
  })
  expect(lines).toHaveLength(2)
  expect(lines[0]).toMatch(/^\S+Z WARN {2}this n=1\n$/)
  expect(JSON.parse(lines[1] ?? '')).toMatchObject({ level: 'debug', message: 'that', n: 2 })
})
