import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import type { Json } from '@impresario/protocol'
import { answered, Bench, deriveSecret, HOOK, LOCAL_POLICY, startReceiver } from './bench.fixture.ts'
import { endpointAddress } from './endpoint.ts'
import { createHttpDeliver } from './http-deliver.ts'
import { RETRY_DELAYS_MS } from './schedule.ts'
import { webhookSecret } from './signature.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

test('[H-07] a message of the outbox reaches a real receiver, which verifies it with the package of the standard', async () => {
  const receiver = await startReceiver()
  try {
    const bench = new Bench({ deliver: createHttpDeliver({ policy: LOCAL_POLICY }) })
    bench.clock.time = Date.now()
    const url = `http://127.0.0.1:${receiver.port}/hook?job=1`
    const message = bench.message('msg_1', { url })
    await bench.post(message)
    await bench.pass()
    const [taken] = receiver.taken
    const secret = webhookSecret(deriveSecret, { clientId: 'acme', address: endpointAddress(url) }, 0)
    expect(new Webhook(secret).verify(taken?.body ?? '', taken?.headers ?? {})).toEqual(message.body)
    expect(taken?.headers['webhook-id']).toBe('msg_1')
    expect(await bench.delivery('msg_1')).toMatchObject({
      status: 'delivered',
      clientId: 'acme',
      jobId: 'job-msg_1',
      event: 'job_finished',
      attempts: [{ status: 204, error: null }],
      nextAttemptAt: null,
      endedAt: bench.clock.now(),
    })
    expect(await bench.endpoint(url)).toMatchObject({
      failures: 0,
      lastSuccessAt: bench.clock.now(),
      circuit: 'closed',
    })
    expect(await bench.storage.peek('outbox', ['msg_1'])).toEqual([undefined])
  } finally {
    await receiver.close()
  }
})

test('[I-04] a message goes with the trace of its job, also when it is tried again', async () => {
  const bench = new Bench()
  const tracing = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'rojo=1' }
  bench.deliver.answer = () => answered(bench.deliver.parcels.length === 1 ? 500 : 204)
  await bench.post(bench.message('m', { tracing }))
  await bench.post(bench.message('odd', { tracing: { traceparent: 'x\r\ny: z', 'webhook-id': 'mine' } }))
  await bench.pass()
  await bench.pass(RETRY_DELAYS_MS[0] ?? 0)
  const traced = bench.deliver.parcels.filter(({ headers }) => headers['webhook-id'] === 'm')
  expect(traced.map(({ headers }) => [headers['traceparent'], headers['tracestate']])).toEqual([
    [tracing.traceparent, tracing.tracestate],
    [tracing.traceparent, tracing.tracestate],
  ])
  const odd = bench.deliver.parcels.filter(({ headers }) => headers['webhook-id'] === 'odd')
  expect(odd.every(({ headers }) => headers['traceparent'] === undefined)).toBe(true)
})

test('[H-07] a message is tried ten times by the schedule, and then stays in the log as failed', async () => {
  const bench = new Bench()
  bench.deliver.answer = () => answered(500)
  await bench.post(bench.message('m'))
  await bench.pass()
  const start = bench.clock.now()
  for (const [index, delay] of RETRY_DELAYS_MS.entries()) {
    expect(await bench.delivery('m')).toMatchObject({ status: 'pending', tries: index + 1, endedAt: null })
    expect((await bench.delivery('m')).nextAttemptAt).toBe(bench.clock.now() + delay)
    await bench.pass(delay - 1)
    expect(bench.deliver.parcels).toHaveLength(index + 1)
    await bench.pass(1)
    expect(bench.deliver.parcels).toHaveLength(index + 2)
  }
  const { status, attempts, note } = await bench.delivery('m')
  expect([status, attempts.length]).toEqual(['failed', 10])
  expect(note).toContain('Given up')
  expect((attempts.at(-1)?.at ?? 0) - start).toBe(RETRY_DELAYS_MS.reduce((sum, ms) => sum + ms, 0))
  expect(attempts.every(({ error }) => error === 'The receiver answered 500.')).toBe(true)
  expect(new Set(bench.deliver.parcels.map(({ headers }) => headers['webhook-id']))).toEqual(new Set(['m']))
  // Each attempt is signed at its own time, or receivers would refuse it as too old.
  expect(new Set(bench.deliver.parcels.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(10)
  await bench.pass(30 * DAY)
  expect(bench.deliver.parcels).toHaveLength(10)
})

test.each([400, 401, 404, 409, 422, 429, 500, 503, 301, 100])('[H-07] %d is tried again', async (status) => {
  const bench = new Bench()
  bench.deliver.answer = () => answered(status, { excerpt: 'no' })
  await bench.post(bench.message('m'))
  await bench.pass()
  expect(await bench.dueInMs('m')).toBe(5_000)
  bench.deliver.answer = () => answered(202)
  await bench.pass(5_000)
  const delivery = await bench.delivery('m')
  expect(delivery.status).toBe('delivered')
  expect(delivery.attempts.map((attempt) => attempt.status)).toEqual([status, 202])
  expect(delivery.attempts[0]?.error).toContain(
    status === 301 ? 'redirects are not followed' : `answered ${status}: no`,
  )
  expect(await bench.endpoint()).toMatchObject({ failures: 0, failingSince: null })
})

test('[H-07] Retry-After holds up this message, and all others to the endpoint without using up their attempts', async () => {
  const bench = new Bench()
  bench.deliver.answer = () => answered(429, { retryAfter: '600' })
  await bench.post(bench.message('a'))
  await bench.pass()
  expect(await bench.dueInMs('a')).toBe(600_000)
  await bench.post(bench.message('b'))
  await bench.pass()
  expect(bench.deliver.parcels).toHaveLength(1)
  expect(await bench.delivery('b')).toMatchObject({ status: 'pending', tries: 0, note: 'the endpoint has a pause' })
  bench.deliver.answer = () => answered(200)
  await bench.pass(601_000)
  expect([(await bench.delivery('a')).status, (await bench.delivery('b')).status]).toEqual(['delivered', 'delivered'])
})

test('[H-07] 410 ends it at once and disables the endpoint; later messages fail without being sent, and stay in the log', async () => {
  const bench = new Bench()
  bench.deliver.answer = () => answered(410)
  await bench.post(bench.message('a'))
  await bench.pass()
  expect(await bench.delivery('a')).toMatchObject({ status: 'failed', tries: 1 })
  expect((await bench.endpoint()).disabled).toEqual({ at: bench.clock.now(), reason: 'gone' })
  await bench.post(bench.message('b'), bench.message('other', { clientId: 'other' }))
  bench.deliver.answer = () => answered(200)
  await bench.pass()
  expect(await bench.delivery('b')).toMatchObject({ status: 'failed', tries: 0, attempts: [] })
  expect((await bench.delivery('b')).note).toContain('410')
  expect((await bench.delivery('other')).status).toBe('delivered')
})

test('[H-07] an address that is not allowed fails for good, with the reason', async () => {
  const bench = new Bench({ deliver: createHttpDeliver({ policy: { ...LOCAL_POLICY, allowPrivate: false } }) })
  await bench.post(bench.message('m', { url: 'http://169.254.169.254/latest' }))
  await bench.pass()
  expect(await bench.delivery('m')).toMatchObject({
    status: 'failed',
    note: 'The address points to an address that nothing may be sent to.',
  })
})

describe('[H-07] the circuit of an endpoint', () => {
  /** An endpoint whose circuit has just opened. */
  async function opened(): Promise<Bench> {
    const bench = new Bench()
    bench.deliver.answer = () => answered(500)
    await bench.post(...['1', '2', '3', '4', '5'].map((id) => bench.message(id)))
    await bench.pass()
    expect(await bench.endpoint()).toMatchObject({ circuit: 'open', failures: 5 })
    return bench
  }

  test('[H-07] after five failures in a row, messages wait without using up attempts', async () => {
    const bench = await opened()
    await bench.post(bench.message('6'), bench.message('7'))
    await bench.pass(6_000)
    expect(bench.deliver.parcels).toHaveLength(5)
    expect(await bench.delivery('6')).toMatchObject({ status: 'pending', tries: 0 })
    expect(await bench.delivery('1')).toMatchObject({ status: 'pending', tries: 1 })
  })

  test('[H-07] one message is the probe; when it arrives, the others follow', async () => {
    const bench = await opened()
    await bench.pass(10_000)
    let release = (): void => {}
    bench.deliver.answer = () =>
      new Promise((resolve) => {
        release = () => resolve(answered(200))
      })
    bench.clock.time += 60_000
    const round = bench.sender.tick()
    const others = bench.another()
    await others.start()
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (bench.deliver.parcels.length === 6) resolve()
        else setImmediate(look)
      }
      look()
    })
    expect(bench.deliver.parcels).toHaveLength(6)
    expect((await bench.endpoint()).probe).not.toBeNull()
    // One that was looking at the endpoint meanwhile may follow at once.
    bench.deliver.answer = () => answered(200)
    release()
    await round
    await others.stop()
    expect(await bench.endpoint()).toMatchObject({ circuit: 'closed', failures: 0, probe: null })
    await bench.pass(MINUTE)
    for (const id of ['1', '2', '3', '4', '5']) expect((await bench.delivery(id)).status).toBe('delivered')
    expect(bench.deliver.parcels).toHaveLength(10)
  })

  test('[H-07] each probe that fails doubles the wait, up to an hour', async () => {
    const bench = await opened()
    const waits: number[] = []
    for (let probes = 0; probes < 10; probes += 1) {
      const { waitUntil } = await bench.endpoint()
      waits.push((waitUntil ?? 0) - bench.clock.now())
      bench.clock.time = waitUntil ?? 0
      // A message of its own for each probe: the old ones have waits of their own.
      await bench.post(bench.message(`p${probes}`))
      await bench.pass()
    }
    expect(waits.map((ms) => ms / 1_000)).toEqual([30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600])
  })

  test('[H-07] a probe whose sender died is taken over by another message', async () => {
    const bench = await opened()
    bench.clock.time += MINUTE
    bench.deliver.answer = () => new Promise(() => {})
    // It holds one message for ever, so that nothing else of it is under way when the clock moves.
    const dying = bench.another({ inFlightMax: 1 })
    await dying.start()
    while (bench.deliver.parcels.length < 6) await new Promise(setImmediate)
    expect((await bench.endpoint()).probe).not.toBeNull()
    bench.deliver.answer = () => answered(200)
    await bench.pass()
    expect(bench.deliver.parcels).toHaveLength(6)
    await bench.pass(2 * MINUTE)
    expect((await bench.endpoint()).circuit).toBe('closed')
  })

  test('[H-07] after three days of nothing but failures the endpoint is disabled', async () => {
    const bench = new Bench()
    bench.deliver.answer = () => answered(500)
    for (let day = 0; day < 3; day += 1) {
      await bench.post(bench.message(`day-${day}`))
      await bench.pass()
      expect((await bench.endpoint()).disabled).toBeNull()
      await bench.pass(DAY)
    }
    await bench.post(bench.message('last'))
    await bench.pass(2 * HOUR)
    expect((await bench.endpoint()).disabled?.reason).toBe('failing')
  })
})

describe('[H-07] at least once', () => {
  test('[H-07] a crash between the sending and the commit sends the message again, under the same id', async () => {
    const bench = new Bench()
    let isDead = false
    const { storage } = bench
    const dying = bench.another({
      storage: {
        ...bench.storage,
        read: (kind, id) => storage.read(kind, id),
        lanes: (queue) => storage.lanes(queue),
        oldest: (queue, lane) => storage.oldest(queue, lane),
        claim: (queue, options) => storage.claim(queue, options),
        sync: () => storage.sync(),
        commit: () => {
          isDead = true
          return Promise.reject(new Error('the process died'))
        },
      },
    })
    await bench.post(bench.message('m'))
    await dying.tick()
    expect([isDead, bench.deliver.parcels.length]).toEqual([true, 1])
    expect(await bench.storage.read('delivery', 'm')).toBeUndefined()
    await bench.pass()
    expect(bench.deliver.parcels).toHaveLength(1)
    await bench.pass(MINUTE)
    expect(bench.deliver.parcels.map(({ headers }) => headers['webhook-id'])).toEqual(['m', 'm'])
    expect(bench.deliver.parcels[1]?.body).toBe(bench.deliver.parcels[0]?.body)
    expect((await bench.delivery('m')).status).toBe('delivered')
  })

  test('[H-07] two senders on one storage never have the same message under way at a time', async () => {
    const bench = new Bench({ perEndpointMax: 100, perClientMax: 20, inFlightMax: 20 })
    const underWay = new Set<string>()
    bench.deliver.answer = async ({ headers }) => {
      const id = headers['webhook-id'] ?? ''
      expect(underWay.has(id)).toBe(false)
      underWay.add(id)
      await new Promise(setImmediate)
      await new Promise(setImmediate)
      underWay.delete(id)
      return answered(200)
    }
    const ids = Array.from({ length: 100 }, (_, n) => `m${n}`)
    await bench.post(...ids.map((id) => bench.message(id)))
    const other = bench.another()
    const drain = async (tick: () => Promise<{ worked: number }>): Promise<void> => {
      while ((await tick()).worked > 0);
    }
    await Promise.all([drain(() => bench.sender.tick()), drain(() => other.tick())])
    expect(bench.deliver.parcels).toHaveLength(100)
    for (const id of ids) expect((await bench.delivery(id)).status).toBe('delivered')
    expect(await bench.endpoint()).toMatchObject({ failures: 0 })
  })

  test('[H-07] a sender that slept through its lease writes nothing', async () => {
    const bench = new Bench()
    await bench.post(bench.message('m'))
    bench.deliver.answer = async () => {
      bench.clock.time += 2 * MINUTE
      bench.deliver.answer = () => answered(200)
      await bench.another().tick()
      return answered(500)
    }
    await bench.sender.tick()
    expect(await bench.delivery('m')).toMatchObject({ status: 'delivered', attempts: [{ status: 200 }] })
    expect(bench.log.lines.join('\n')).toContain('claimed by another sender meanwhile')
  })

  test('[H-07] nothing is sent before what it tells is durable', async () => {
    const bench = new Bench()
    const order: string[] = []
    const { storage } = bench
    const careful = bench.another({
      storage: {
        ...bench.storage,
        read: (kind, id) => storage.read(kind, id),
        lanes: (queue) => storage.lanes(queue),
        oldest: (queue, lane) => storage.oldest(queue, lane),
        claim: (queue, options) => storage.claim(queue, options),
        commit: (batch) => storage.commit(batch),
        sync: async () => {
          order.push('sync')
        },
      },
    })
    bench.deliver.answer = () => {
      order.push('send')
      return answered(200)
    }
    await bench.post(bench.message('m'))
    await careful.tick()
    expect(order).toEqual(['sync', 'send'])
  })
})

describe('[H-07] bounds', () => {
  test('[H-07] no more than the bounds are under way, and everything arrives', async () => {
    const bench = new Bench({ inFlightMax: 6, perClientMax: 4, perEndpointMax: 2 })
    bench.deliver.answer = async () => {
      await new Promise(setImmediate)
      return answered(200)
    }
    const messages = Array.from({ length: 40 }, (_, n) =>
      bench.message(`m${n}`, { clientId: `c${n % 2}`, url: `https://hooks.example/${n % 4}` }),
    )
    await bench.post(...messages)
    for (let rounds = 0; rounds < 100; rounds += 1) await bench.pass(1_000)
    for (const { messageId } of messages) expect((await bench.delivery(messageId)).status).toBe('delivered')
    expect(bench.deliver.parcels).toHaveLength(40)
    expect(bench.deliver.inFlightMost).toBeLessThanOrEqual(6)
  })

  test('[H-07] a client with many slow receivers does not keep those of others waiting', async () => {
    const bench = new Bench({ inFlightMax: 8, perClientMax: 4 })
    const releases: (() => void)[] = []
    bench.deliver.answer = ({ url }) =>
      url.includes('slow')
        ? new Promise((resolve) => {
            releases.push(() => resolve(answered(200)))
          })
        : answered(200)
    const slow = Array.from({ length: 50 }, (_, n) => bench.message(`s${n}`, { url: `https://slow.example/${n}` }))
    await bench.post(...slow)
    await bench.sender.start()
    while (releases.length < 4) await new Promise(setImmediate)
    await bench.post(bench.message('quick', { clientId: 'zeta' }))
    while ((await bench.storage.read('delivery', 'quick')) === undefined) await new Promise(setImmediate)
    expect((await bench.delivery('quick')).status).toBe('delivered')
    expect(releases).toHaveLength(4)
    bench.deliver.answer = () => answered(200)
    for (const release of releases.splice(0)) release()
    while ((await bench.storage.read('delivery', 's49'))?.value['status'] !== 'delivered') {
      await new Promise(setImmediate)
    }
    await bench.sender.stop()
  })

  test('[H-07] a burst for one endpoint comes back one after the other, none lost and none counted as an attempt', async () => {
    const bench = new Bench({ perEndpointMax: 1, perClientMax: 5 })
    await bench.post(...Array.from({ length: 5 }, (_, n) => bench.message(`m${n}`)))
    await bench.sender.tick()
    expect(bench.deliver.parcels).toHaveLength(1)
    const due = await Promise.all([1, 2, 3, 4].map((n) => bench.dueInMs(`m${n}`)))
    expect([...due].sort((a, b) => Number(a) - Number(b))).toEqual([500, 1_000, 1_500, 2_000])
    for (let rounds = 0; rounds < 10; rounds += 1) await bench.pass(500)
    for (const n of [0, 1, 2, 3, 4]) {
      expect(await bench.delivery(`m${n}`)).toMatchObject({ status: 'delivered', tries: 1 })
    }
  })
})

describe('[H-07] odd items', () => {
  const odd: readonly Json[] = [null, 'x', [], {}, { messageId: 'm' }, { messageId: '', url: HOOK }]
  test.each(odd.map((payload) => [JSON.stringify(payload), payload] as const))(
    '[H-07] an item that is no message (%s) does not stop the others',
    async (_text, payload) => {
      const bench = new Bench()
      await bench.enqueue('odd', payload)
      await bench.post(bench.message('m'))
      await bench.pass()
      expect((await bench.delivery('m')).status).toBe('delivered')
      expect(await bench.storage.peek('outbox', ['odd'])).toEqual([undefined])
      expect(bench.log.lines.join('\n')).toContain('is no message')
    },
  )

  test('[H-07] ids with full stops are sent under another, always the same', async () => {
    const bench = new Bench()
    bench.deliver.answer = () => answered(500)
    await bench.post(bench.message('a.b'))
    await bench.pass()
    await bench.pass(5_000)
    const ids = bench.deliver.parcels.map(({ headers }) => headers['webhook-id'])
    expect(ids[0]).toMatch(/^msg_[\w-]{43}$/)
    expect(ids[1]).toBe(ids[0])
  })
})

test('[H-07] start and stop can be called twice, and stop waits for what is under way', async () => {
  const bench = new Bench()
  await bench.sender.stop()
  let release = (): void => {}
  bench.deliver.answer = () =>
    new Promise((resolve) => {
      release = () => resolve(answered(200))
    })
  await bench.sender.start()
  await bench.sender.start()
  await bench.post(bench.message('m'))
  while (bench.deliver.inFlight === 0) await new Promise(setImmediate)
  const stopping = bench.sender.stop()
  release()
  await stopping
  await bench.sender.stop()
  expect((await bench.delivery('m')).status).toBe('delivered')
})
