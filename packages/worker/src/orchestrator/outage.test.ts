import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createWorker } from '../index.ts'
import type { Log } from '../runtime/log.ts'
import { Outage } from './outage.ts'
import { TestOrchestrator } from '../orchestrator.fixture.ts'
import { TransportError } from '../transport/transport.ts'

interface Line {
  readonly level: keyof Log
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>> | undefined
}

function listLog(): { readonly lines: Line[]; readonly log: Log } {
  const lines: Line[] = []
  const at =
    (level: keyof Log) =>
    (message: string, fields?: Readonly<Record<string, unknown>>): void => {
      if (level !== 'debug') lines.push({ level, message, fields })
    }
  return { lines, log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

describe('what is said of an orchestrator that cannot be worked with', () => {
  const wrong = new TransportError('unavailable', 'POST /register: 401 Unauthorized', { status: 401 })
  const away = new TransportError('unavailable', 'connect ECONNREFUSED')

  test('[E-05] once what to set, then every minute, and once that it is over', () => {
    let now = 0
    const { lines, log } = listLog()
    const outage = new Outage({ name: 'http://o', log, now: () => now })
    outage.over()
    for (; now < 700_000; now += 1_000) outage.failed('The worker could not register.', wrong)
    expect(lines).toHaveLength(12)
    expect(lines[0]).toMatchObject({ level: 'error', fields: { orchestrator: 'http://o' } })
    for (const { message } of lines) expect(message).toContain('Set WORKER_TOKEN')
    expect(lines[0]?.message).toContain('Until then it keeps trying.')
    outage.over()
    outage.over()
    expect(lines.slice(12)).toEqual([
      {
        level: 'info',
        message: 'Connected to the orchestrator again.',
        fields: { orchestrator: 'http://o', after_s: 700 },
      },
    ])
  })

  test('[E-05] an orchestrator that is away is told of every five minutes', () => {
    let now = 0
    const { lines, log } = listLog()
    const outage = new Outage({ name: 'http://o', log, now: () => now })
    for (; now < 700_000; now += 1_000) outage.failed('A heartbeat failed.', away)
    expect(lines).toHaveLength(3)
  })

  test('[E-05] another trouble is said at once', () => {
    const { lines, log } = listLog()
    const outage = new Outage({ name: 'http://o', log, now: () => 0 })
    for (const error of [away, away, wrong, wrong, new TransportError('unavailable', 'x', { status: 503 })]) {
      outage.failed('A heartbeat failed.', error)
    }
    expect(lines.map(({ level }) => level)).toEqual(['warn', 'error', 'warn'])
  })
})

describe('a worker', () => {
  let orchestrator: TestOrchestrator
  beforeEach(async () => {
    orchestrator = await new TestOrchestrator().listen()
  })
  afterEach(() => orchestrator.close())

  test('[E-05] whose token is wrong says once what to set, and once that it is let in', async () => {
    const { lines, log } = listLog()
    const body = { error: 'Unauthorized: Invalid token', code: 'UNAUTHENTICATED', type: 'urn:x', status: 401 }
    orchestrator.intercept = () => ({ status: 401, body })
    const worker = createWorker({
      url: orchestrator.url,
      token: 'wrong',
      id: 'w1',
      log,
      registrationRetryMs: 1,
      shutdownMs: 0,
    })
    worker.task('t', () => undefined)
    const started = worker.start()
    await orchestrator.until(() => orchestrator.requests.length >= 5)
    expect(lines).toMatchObject([
      { level: 'error', fields: { error: 'POST /_worker/workers/register: 401 Unauthorized: Invalid token' } },
    ])
    orchestrator.intercept = undefined
    await started
    const told = lines.map(({ message }) => message)
    expect(told.filter((message) => message.includes('WORKER_TOKEN'))).toHaveLength(1)
    expect(told).toContain('Connected to the orchestrator again.')
    await worker.stop()
  })
})
