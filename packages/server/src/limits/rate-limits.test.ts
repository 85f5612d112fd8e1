import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { settingsOf } from '../config/config.ts'
import { holdsOf, startProtected, TOKENS } from '../protection.fixture.ts'
import type { ProtectedApp, RawAnswer } from '../protection.fixture.ts'
import { MemoryRateLimiter } from './rate-limiter.ts'
import type { RateLimiter } from './rate-limiter.ts'
import { addressKey } from './address-key.ts'

let running: ProtectedApp | undefined
afterEach(async () => {
  await running?.app.close()
  running = undefined
})
async function start(settings = {}, limiter?: RateLimiter): Promise<ProtectedApp> {
  running = await startProtected(settings, limiter)
  return running
}

const ALPHA = { 'x-client-token': TOKENS.alpha }
const BETA = { 'x-client-token': TOKENS.beta }
const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address })
const statuses = async (times: number, call: () => Promise<RawAnswer>): Promise<number[]> => {
  const found: number[] = []
  for (let time = 0; time < times; time += 1) found.push((await call()).status)
  return found
}

describe('limits of those who are known', () => {
  const few = { rateLimitGeneral: 3, rateLimitHeartbeat: 2, rateLimitPoll: 1, rateLimitPeriodSeconds: 60 }

  test('[H-04] each client has its own, for each kind of request', async () => {
    const { call } = await start(few)
    expect(await statuses(4, () => call('GET', '/mine', ALPHA))).toEqual([200, 200, 200, 429])
    expect(await statuses(3, () => call('GET', '/beat', ALPHA))).toEqual([200, 200, 429])
    expect(await statuses(2, () => call('GET', '/poll', ALPHA))).toEqual([200, 429])
    expect(await statuses(1, () => call('GET', '/mine', BETA))).toEqual([200])
  })

  test('[J-11] the refusal is one JSON object with a Retry-After that really helps', async () => {
    const { call, clock } = await start(few)
    await statuses(3, () => call('GET', '/mine', ALPHA))
    const refused = await call('GET', '/mine', ALPHA)
    expect(JSON.parse(refused.body.toString())).toMatchObject({ error: 'Too Many Requests', code: 'TOO_MANY_REQUESTS' })
    expect(refused.headers['retry-after']).toBe('20')
    clock.ms += 19_000
    const again = await call('GET', '/mine', ALPHA)
    expect([again.status, again.headers['retry-after']]).toEqual([429, '1'])
    clock.ms += 1_000
    expect(await statuses(2, () => call('GET', '/mine', ALPHA))).toEqual([200, 429])
  })

  test('[J-10] hammering while it is refused does not put the end off', async () => {
    const { call, clock } = await start(few)
    await statuses(50, () => call('GET', '/mine', ALPHA))
    clock.ms += 20_000
    expect((await call('GET', '/mine', ALPHA)).status).toBe(200)
  })

  test('[H-04] a limiter that answers later, as one on a shared store does, works the same', async () => {
    const inner = new MemoryRateLimiter()
    const limiter: RateLimiter = {
      take: (...given) => Promise.resolve(inner.take(...given)),
      look: (...given) => Promise.resolve(inner.look(...given)),
    }
    const { call } = await start({ ...few, rateLimitFailedAuth: 1 }, limiter)
    expect(await statuses(4, () => call('GET', '/mine', ALPHA))).toEqual([200, 200, 200, 429])
    const wrong = { 'x-client-token': 'wrong', ...from('203.0.113.9') }
    expect(await statuses(2, () => call('GET', '/mine', wrong))).toEqual([401, 429])
    expect((await call('GET', '/mine', { ...BETA, ...from('203.0.113.9') })).status).toBe(429)
  })

  test('[H-04] it can be switched off; the defaults do not stand in the way of a fast program', async () => {
    const off = await start({ ...few, rateLimitingEnabled: false })
    expect(new Set(await statuses(20, () => off.call('GET', '/poll', ALPHA)))).toEqual(new Set([200]))
    await off.app.close()
    const { call } = await start()
    expect(new Set(await statuses(300, () => call('GET', '/poll', ALPHA)))).toEqual(new Set([200]))
  })
})

describe('limits of those who are not known', () => {
  test('[H-04] without a token an address is limited, also on paths that do not exist; the own machine is not', async () => {
    const { call } = await start({ rateLimitPublic: 2 })
    const there = from('203.0.113.7')
    expect(await statuses(3, () => call('GET', '/short', there))).toEqual([200, 200, 429])
    expect((await call('GET', '/nowhere', there)).status).toBe(429)
    expect((await call('GET', '/short', from('203.0.113.8'))).status).toBe(200)
    expect(await statuses(4, () => call('GET', '/short'))).toEqual([200, 200, 200, 200])
  })

  test('[H-04] wrong tokens: after ten in a minute the address waits, and a right guess looks like a wrong one', async () => {
    const { call, clock } = await start({ rateLimitingEnabled: false })
    const there = from('203.0.113.7')
    const wrong = { ...there, 'x-client-token': 'wrong' }
    expect((await call('GET', '/mine', { ...BETA, ...there })).status).toBe(200)
    expect(await statuses(12, () => call('GET', '/mine', wrong))).toEqual([
      ...Array.from({ length: 10 }, () => 401),
      429,
      429,
    ])
    const refused = await call('GET', '/mine', wrong)
    const guessed = await call('GET', '/mine', { ...ALPHA, ...there })
    expect([guessed.status, guessed.body.toString()]).toEqual([429, refused.body.toString()])
    expect(guessed.headers['retry-after']).toBe(refused.headers['retry-after'])
    // Who has come in from there before goes on being served, and so does everybody elsewhere.
    expect((await call('GET', '/mine', { ...BETA, ...there })).status).toBe(200)
    expect((await call('GET', '/mine', { ...ALPHA, ...from('203.0.113.8') })).status).toBe(200)
    clock.ms += Number(refused.headers['retry-after']) * 1_000
    expect((await call('GET', '/mine', { ...ALPHA, ...there })).status).toBe(200)
  })

  test('[H-04] X-Forwarded-For is believed from named proxies only, and only its last part', async () => {
    const strict = await start({ trustProxy: '10.0.0.0/8', rateLimitPublic: 1 })
    expect(await statuses(3, () => strict.call('GET', '/short', from('203.0.113.7')))).toEqual([200, 200, 200])
    await strict.app.close()
    const { call } = await start({ trustProxy: 'true', rateLimitPublic: 1 })
    const spoofed = (first: string): Promise<RawAnswer> => call('GET', '/short', from(`${first}, 203.0.113.7`))
    expect((await spoofed('198.51.100.1')).status).toBe(200)
    expect((await spoofed('198.51.100.2')).status).toBe(429)
  })

  test('[H-04] an IPv6 network of 64 bits counts as one address', () => {
    const key = (remoteAddress: string): string | undefined =>
      addressKey({ ip: remoteAddress, socket: { remoteAddress } })
    expect(key('2001:db8:1:2::1')).toBe(key('2001:0db8:0001:0002:ffff:ffff:ffff:ffff'))
    expect(key('2001:db8:1:2::1')).not.toBe(key('2001:db8:1:3::1'))
    expect(key('2001:db8::1')).toBe('2001:db8:0:0')
    expect(key('::ffff:203.0.113.7')).toBe('203.0.113.7')
    expect(key('fe80::1%eth0')).toBe('fe80:0:0:0')
    for (const own of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) expect(key(own)).toBeUndefined()
  })

  test('[H-04] [H-08] what is no address in X-Forwarded-For counts as one caller, and so does one who has hung up', async () => {
    const { call } = await start({ rateLimitPublic: 2 })
    const garbage = ['x', 'unknown', '_hidden', '999.1.1.1', '1.2.3', '::g', 'a'.repeat(900)]
    const found: number[] = []
    for (const text of garbage) found.push((await call('GET', '/short', from(text))).status)
    expect(found).toEqual([200, 200, 429, 429, 429, 429, 429])
    const gone = { socket: { remoteAddress: undefined } }
    expect(addressKey({ ...gone, ip: undefined })).toBe(addressKey({ ip: 'x', socket: { remoteAddress: '127.0.0.1' } }))
  })

  test('[H-04] a port behind the address does not make another caller, nor does a header that says localhost', async () => {
    const { call } = await start({ rateLimitPublic: 2 })
    const ports = ['203.0.113.7:1', '203.0.113.7:2', '203.0.113.7', '[2001:db8::1]:5', '2001:db8::2', '[2001:db8::3]']
    const found: number[] = []
    for (const text of ports) found.push((await call('GET', '/short', from(text))).status)
    expect(found).toEqual([200, 200, 429, 200, 200, 429])
    expect(await statuses(3, () => call('GET', '/short', from('127.0.0.1, ::1')))).toEqual([200, 200, 429])
  })
})

test('[H-04] the defaults: heartbeats above polls, and a general limit below what one process can serve', async () => {
  const { rateLimitGeneral, rateLimitHeartbeat, rateLimitPoll, rateLimitPeriodSeconds } = settingsOf({})
  expect(rateLimitHeartbeat).toBeGreaterThan(rateLimitPoll)
  expect(rateLimitGeneral / rateLimitPeriodSeconds).toBeLessThanOrEqual(1_000)
  const { call } = await start({ rateLimitGeneral: 50 })
  expect((await statuses(52, () => call('GET', '/mine', ALPHA))).slice(-3)).toEqual([200, 429, 429])
})

test('[H-04] a poll that brought a task is not counted', async () => {
  const { call } = await start({ rateLimitPoll: 2 })
  expect(await statuses(5, () => call('GET', '/poll?brings=1', ALPHA))).toEqual([200, 200, 200, 200, 200])
  expect(await statuses(3, () => call('GET', '/poll', ALPHA))).toEqual([200, 200, 429])
})

describe('[H-04] [C-10] requests that are under way at the same time', () => {
  test('are bounded for each client and each address; what is answered or hangs up makes room', async () => {
    const { call, app } = await start({ requestsAtOnceMax: 2 })
    const hold = (headers: Record<string, string>): Promise<RawAnswer> =>
      call('GET', headers === ALPHA ? '/hold' : '/open-hold', headers)
    const far = from('203.0.113.7')
    const waiting = [hold(ALPHA), hold(ALPHA), hold(far), hold(far)]
    while (holdsOf(app).size < 4) await new Promise(setImmediate)
    const refused = await hold(ALPHA)
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1'])
    expect(JSON.parse(refused.body.toString())).toMatchObject({ code: 'TOO_MANY_REQUESTS' })
    expect((await hold(far)).status).toBe(429)
    expect((await call('GET', '/mine', BETA)).status).toBe(200)
    expect((await call('GET', '/short', from('203.0.113.8'))).status).toBe(200)
    for (const release of holdsOf(app)) release()
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect((await call('GET', '/mine', ALPHA)).status).toBe(200)
  })

  test('a caller that hangs up makes room', async () => {
    const { call, app } = await start({ requestsAtOnceMax: 1 })
    const address = app.server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET /hold HTTP/1.1\r\nhost: x\r\nx-client-token: ${TOKENS.alpha}\r\n\r\n`)
    while (holdsOf(app).size === 0) await new Promise(setImmediate)
    expect((await call('GET', '/mine', ALPHA)).status).toBe(429)
    socket.destroy()
    let status = 429
    while (status === 429) ({ status } = await call('GET', '/mine', ALPHA))
    expect(status).toBe(200)
    for (const release of holdsOf(app)) release()
  })
})
