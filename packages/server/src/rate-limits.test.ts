import { afterEach, describe, expect, test } from 'vitest'
import { startProtected, TOKENS } from './protection.fixture.ts'
import type { ProtectedApp, RawAnswer } from './protection.fixture.ts'
import { MemoryRateLimiter } from './rate-limiter.ts'
import type { RateLimiter } from './rate-limiter.ts'
import { addressKey } from './rate-limits.ts'

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
    const key = (ip: string): string | undefined => addressKey({ ip })
    expect(key('2001:db8:1:2::1')).toBe(key('2001:0db8:0001:0002:ffff:ffff:ffff:ffff'))
    expect(key('2001:db8:1:2::1')).not.toBe(key('2001:db8:1:3::1'))
    expect(key('2001:db8::1')).toBe('2001:db8:0:0')
    expect(key('::ffff:203.0.113.7')).toBe('203.0.113.7')
    expect(key('fe80::1%eth0')).toBe('fe80:0:0:0')
    for (const own of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) expect(key(own)).toBeUndefined()
  })
})
