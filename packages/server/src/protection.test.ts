import { request } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { startProtected, TOKENS } from './protection.fixture.ts'
import type { ProtectedApp } from './protection.fixture.ts'
import { SECURE_HEADERS } from './http/secure-headers.ts'
import { createServer } from './server.ts'

let running: ProtectedApp | undefined
afterEach(async () => {
  await running?.app.close()
  running = undefined
})
async function start(settings = {}): Promise<ProtectedApp> {
  running = await startProtected(settings)
  return running
}

describe('headers', () => {
  test('[H-08] every answer has them: good ones, refusals, unknown paths, unreadable ones', async () => {
    const { call } = await start()
    const answers = [
      await call('GET', '/short'),
      await call('GET', '/mine'),
      await call('GET', '/nowhere'),
      await call('DELETE', '/short'),
      await call('POST', '/echo', { 'content-type': 'text/plain' }, 'x'),
      await call('POST', '/echo', { 'content-type': 'application/json' }, '{'),
      await call('GET', '/%zz'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 404, 405, 415, 400, 400])
    for (const { headers } of answers) {
      expect(headers).toMatchObject(SECURE_HEADERS)
      expect(headers['strict-transport-security']).toBeUndefined()
      expect(headers['server']).toBeUndefined()
      expect(headers['x-powered-by']).toBeUndefined()
    }
  })

  test('[H-08] over TLS, also that of a proxy that is named, browsers are told to stay with it', async () => {
    const { call } = await start()
    const { headers } = await call('GET', '/short', { 'x-forwarded-proto': 'https' })
    expect(headers['strict-transport-security']).toBe('max-age=31536000')
    await running?.app.close()
    const strict = await start({ trustProxy: '' })
    const spoofed = await strict.call('GET', '/short', { 'x-forwarded-proto': 'https' })
    expect(spoofed.headers['strict-transport-security']).toBeUndefined()
  })
})

describe('origins', () => {
  const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-client-token' }

  test('[H-08] by default no page may call: nothing is said about origins', async () => {
    const { call } = await start()
    const answer = await call('GET', '/short', { origin: 'https://evil.example' })
    const asked = await call('OPTIONS', '/echo', { origin: 'https://evil.example', ...preflight })
    for (const { headers } of [answer, asked]) {
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
    expect(asked.status).toBeGreaterThanOrEqual(400)
  })

  test('[H-08] pages of the given origins may, also read refusals, and never with cookies', async () => {
    const { call } = await start({ corsOrigins: 'https://app.example, http://localhost:3000' })
    const origin = 'https://app.example'
    const asked = await call('OPTIONS', '/echo', { origin, ...preflight })
    expect(asked.status).toBe(204)
    expect(asked.headers).toMatchObject({ 'access-control-allow-origin': origin, vary: 'Origin' })
    expect(asked.headers['access-control-allow-headers']).toContain('x-client-token')
    const refused = await call('GET', '/mine', { origin })
    expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([401, origin])
    const good = await call('GET', '/mine', { origin, 'x-client-token': TOKENS.alpha })
    expect([good.status, good.headers['access-control-allow-credentials']]).toEqual([200, undefined])
    const long = await call('GET', '/long', { origin, 'accept-encoding': 'gzip' })
    expect(long.headers.vary).toBe('Origin, Accept-Encoding')
    for (const other of ['https://evil.example', 'https://app.example.evil', 'null', 'HTTPS://APP.EXAMPLE']) {
      const { headers } = await call('GET', '/short', { origin: other })
      expect(headers['access-control-allow-origin']).toBeUndefined()
      expect(headers.vary).toBe('Origin')
    }
  })

  test('[H-08] an origin that cannot be one stops the start', () => {
    for (const corsOrigins of [
      'app.example',
      'https://app.example/',
      'https://app.example/path',
      'HTTPS://App.example',
    ]) {
      const refuse = (): unknown =>
        createServer({ settings: { storageUrl: 'memory:', apiHost: '127.0.0.1', corsOrigins } })
      expect(refuse).toThrow(/corsOrigins has/)
    }
  })
})

test('[H-06] whoever leaves in the middle of a compressed body disturbs nobody', async () => {
  const { app, call } = await start()
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  await new Promise<void>((resolve) => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', 'content-length': '1000' }
    const leaving = request({ host: '127.0.0.1', port, method: 'POST', path: '/echo', headers })
    leaving.on('error', () => resolve())
    leaving.write('abc', () => leaving.destroy(new Error('gone')))
  })
  expect((await call('GET', '/short')).status).toBe(200)
})
