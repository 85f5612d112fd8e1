import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from './run-cli.fixture.ts'

const TOKEN = 'token-of-the-only-client'

let server: Server
let env: Readonly<Record<string, string>> = {}

beforeAll(async () => {
  server = createServer({
    settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl: 'memory:', logLevel: 'silent', clientToken: TOKEN },
  })
  const { address } = await server.start()
  env = { IMPRESARIO_URL: address, IMPRESARIO_TOKEN: TOKEN }
})
afterAll(() => server.stop())

test('[M-02] the link of "open" signs in, once', async () => {
  const { code, stdout } = await runCli(['open', '--json'], { env })
  expect(code).toBe(0)
  const { url } = JSON.parse(stdout) as { readonly url: string }
  expect(url).toMatch(new RegExp(`^${env['IMPRESARIO_URL']}/dashboard/#code=\\S+$`))
  const signIn = (): Promise<Response> =>
    fetch(`${env['IMPRESARIO_URL']}/dashboard/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-impresario': '1', origin: env['IMPRESARIO_URL'] ?? '' },
      body: JSON.stringify({ code: url.split('#code=')[1] }),
    })
  const first = await signIn()
  expect({ status: first.status, cookie: first.headers.get('set-cookie') }).toMatchObject({
    status: 200,
    cookie: expect.stringContaining('HttpOnly') as unknown,
  })
  expect((await signIn()).status).not.toBe(200)
})

test('[M-02] a job that does not exist, and a token that is wrong, are said', async () => {
  const missing = await runCli(['open', '01a1ea52-44d8-74fd-ace0-697bc4a2b9be'], { env })
  expect(missing.code).not.toBe(0)
  expect(missing.stderr).toContain('impresario jobs list')
  const stranger = await runCli(['open'], { env: { ...env, IMPRESARIO_TOKEN: 'of somebody else' } })
  expect(stranger.code).not.toBe(0)
  expect(stranger.stdout).toBe('')
})
