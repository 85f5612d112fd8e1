import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { afterEach, expect, test } from 'vitest'
import { CERTIFICATE, deriveSecret, LOCAL_POLICY, startReceiver } from './bench.fixture.ts'
import type { Receiver } from './bench.fixture.ts'
import { createHttpDeliver, excerptOf } from './http-deliver.ts'
import { STRICT_POLICY } from './outbound.ts'
import { webhookHeaders, webhookSecret } from './signature.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()))
})

async function receive(...given: Parameters<typeof startReceiver>): Promise<Receiver> {
  const receiver = await startReceiver(...given)
  closing.push(() => receiver.close())
  return receiver
}

const deliver = createHttpDeliver({ policy: LOCAL_POLICY })
const PARCEL = { headers: { 'webhook-id': 'm' }, body: '{}' }

test('[H-07] a message arrives over http as it was signed', async () => {
  const receiver = await receive()
  const secret = webhookSecret(deriveSecret, { clientId: 'acme', address: 'a' }, 0)
  const body = JSON.stringify({ event: 'job_finished', text: 'über → 🎭' })
  const headers = webhookHeaders({ id: 'msg_1', timestamp: Math.floor(Date.now() / 1_000), body }, [secret])
  const sent = await deliver.send({ url: `http://127.0.0.1:${receiver.port}/a/b?c=d#e`, headers, body })
  expect(sent).toEqual({ type: 'answered', status: 204, retryAfter: undefined, excerpt: undefined })
  const [taken] = receiver.taken
  expect(taken?.url).toBe('/a/b?c=d')
  expect(taken?.headers).toMatchObject({
    host: `127.0.0.1:${receiver.port}`,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'webhook-id': 'msg_1',
  })
  expect(new Webhook(secret).verify(taken?.body ?? '', taken?.headers ?? {})).toEqual(JSON.parse(body))
})

test('[H-07] over https the name is kept for the certificate and the host, while the connection goes to the checked address', async () => {
  const receiver = await receive(undefined, { secure: true })
  const lookups: string[] = []
  const resolve = async (host: string): Promise<readonly string[]> => {
    lookups.push(host)
    return ['127.0.0.1']
  }
  const secure = createHttpDeliver({ policy: LOCAL_POLICY, resolve, ca: CERTIFICATE })
  const sent = await secure.send({ ...PARCEL, url: `https://receiver.test:${receiver.port}/` })
  expect(sent).toMatchObject({ type: 'answered', status: 204 })
  expect(receiver.taken[0]?.headers['host']).toBe(`receiver.test:${receiver.port}`)
  expect(lookups).toEqual(['receiver.test'])
  const otherName = await secure.send({ ...PARCEL, url: `https://other.test:${receiver.port}/` })
  expect(otherName).toMatchObject({ type: 'failed', error: 'The certificate is for another name.' })
  const stranger = createHttpDeliver({ policy: LOCAL_POLICY, resolve })
  const untrusted = await stranger.send({ ...PARCEL, url: `https://receiver.test:${receiver.port}/` })
  expect(untrusted).toMatchObject({ type: 'failed', error: 'The certificate is self-signed.' })
  expect(receiver.taken).toHaveLength(1)
})

test('[H-07] a name that points to a public address first and to this machine afterwards is looked up once and leads nowhere', async () => {
  const receiver = await receive()
  // Nobody has been given this address, so nobody answers there.
  const answers = [['3ffe:dead::1'], ['127.0.0.1'], ['127.0.0.1']]
  let lookups = 0
  const rebinding = createHttpDeliver({
    policy: { ...LOCAL_POLICY, allowPrivate: false },
    timeoutMs: 300,
    resolve: async () => {
      lookups += 1
      return answers[lookups - 1] ?? []
    },
  })
  const sent = await rebinding.send({ ...PARCEL, url: `http://rebind.test:${receiver.port}/` })
  expect(sent).toMatchObject({ type: 'failed', isPermanent: false })
  expect(lookups).toBe(1)
  expect(receiver.connections()).toBe(0)
})

test('[H-07] a name that changes between two private addresses is connected where it was checked', async () => {
  const receiver = await receive()
  const answers = [['127.0.0.1'], ['127.0.0.2']]
  let lookups = 0
  const changing = createHttpDeliver({
    policy: LOCAL_POLICY,
    resolve: async () => {
      lookups += 1
      return answers[lookups - 1] ?? []
    },
  })
  expect(await changing.send({ ...PARCEL, url: `http://inside.test:${receiver.port}/` })).toMatchObject({ status: 204 })
  expect([lookups, receiver.connections()]).toEqual([1, 1])
})

test.each([
  ['an address inside', 'http://127.0.0.1'],
  ['the name of this machine', 'http://localhost'],
])('[H-07] without the switch nothing is sent to %s', async (_case, origin) => {
  const receiver = await receive()
  const strict = createHttpDeliver({
    policy: { ...LOCAL_POLICY, allowPrivate: false },
    resolve: async () => ['127.0.0.1'],
  })
  const sent = await strict.send({ ...PARCEL, url: `${origin}:${receiver.port}/` })
  expect(sent).toEqual({
    type: 'failed',
    error:
      'The address points to this machine or a private network, which is not allowed here (WEBHOOK_ALLOW_PRIVATE).',
    isPermanent: true,
  })
  expect(receiver.connections()).toBe(0)
})

test('[H-07] the log does not tell whether a name exists inside: unknown, broken and forbidden names look the same', async () => {
  const receiver = await receive()
  const failed = (code: string): Promise<never> => Promise.reject(Object.assign(new Error(code), { code }))
  const found: unknown[] = []
  for (const resolve of [
    async () => ['127.0.0.1'],
    async () => ['10.1.2.3', '93.184.215.14'],
    async () => ['169.254.169.254'],
    async () => [],
    () => failed('ENOTFOUND'),
    () => failed('EAI_AGAIN'),
    () => failed('ENODATA'),
    () => Promise.reject(new Error('10.0.0.1')),
  ]) {
    const strict = createHttpDeliver({ policy: { ...LOCAL_POLICY, allowPrivate: false }, resolve })
    found.push(await strict.send({ ...PARCEL, url: `http://inside.test:${receiver.port}/` }))
  }
  const error = 'The address has a name that leads to no address that messages may be sent to.'
  expect(found).toEqual(found.map(() => ({ type: 'failed', error, isPermanent: false })))
  expect(receiver.connections()).toBe(0)
})

test('[H-07] an address that breaks the rules is refused for good', async () => {
  const strict = createHttpDeliver({ policy: STRICT_POLICY })
  for (const url of ['http://example.com/', 'https://example.com:22/', 'https://a:b@example.com/', 'nonsense']) {
    expect(await strict.send({ ...PARCEL, url })).toMatchObject({ type: 'failed', isPermanent: true })
  }
})

test.each([301, 302, 303, 307, 308])('[H-07] a redirect (%d) is not followed', async (status) => {
  const inner = await receive()
  const receiver = await receive((_taken, reply) => {
    reply.writeHead(status, { location: `http://127.0.0.1:${inner.port}/` }).end()
  })
  const sent = await deliver.send({ ...PARCEL, url: `http://127.0.0.1:${receiver.port}/` })
  expect(sent).toMatchObject({ type: 'answered', status })
  expect(inner.connections()).toBe(0)
})

test('[H-07] the time limit holds for a receiver that never answers, and for a name that nobody looks up', async () => {
  const silent = createServer((socket) => socket.resume())
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  closing.push(() => new Promise((resolve) => silent.close(resolve)))
  const { port } = silent.address() as AddressInfo
  const hasty = createHttpDeliver({ policy: LOCAL_POLICY, timeoutMs: 50, resolve: () => new Promise(() => {}) })
  const error = 'There was no answer within 0.05 s.'
  expect(await hasty.send({ ...PARCEL, url: `http://127.0.0.1:${port}/` })).toMatchObject({ type: 'failed', error })
  expect(await hasty.send({ ...PARCEL, url: 'http://slow.test/' })).toMatchObject({ type: 'failed', error })
})

test('[H-07] the status counts, also when the answer never ends or is longer than what is read', async () => {
  let written = 0
  const endless = await receive((_taken, reply) => {
    reply.writeHead(200)
    const more = (): void => {
      while (!reply.destroyed && written < 64_000_000) {
        written += 65_536
        if (!reply.write(Buffer.alloc(65_536))) break
      }
    }
    reply.on('drain', more)
    more()
  })
  expect(await deliver.send({ ...PARCEL, url: `http://127.0.0.1:${endless.port}/` })).toMatchObject({ status: 200 })
  expect(written).toBeLessThan(64_000_000)
  const stalled = await receive((_taken, reply) => {
    reply.writeHead(200, { 'content-length': '10' }).write('abc')
  })
  const hasty = createHttpDeliver({ policy: LOCAL_POLICY, timeoutMs: 10_000 })
  expect(await hasty.send({ ...PARCEL, url: `http://127.0.0.1:${stalled.port}/` })).toMatchObject({ status: 200 })
})

test('[H-07] what a receiver inside a private network answers is not passed on', async () => {
  const receiver = await receive((_taken, reply) => {
    reply.writeHead(500, { 'content-type': 'text/plain', 'retry-after': '7' }).end('root:x:0:0')
  })
  const sent = await deliver.send({ ...PARCEL, url: `http://127.0.0.1:${receiver.port}/` })
  expect(sent).toEqual({ type: 'answered', status: 500, retryAfter: '7', excerpt: undefined })
})

test('[H-07] failures are told in our own words, without addresses', async () => {
  const receiver = await receive()
  const { port } = receiver
  await receiver.close()
  expect(await deliver.send({ ...PARCEL, url: `http://127.0.0.1:${port}/` })).toMatchObject({
    error: 'The receiver refused the connection.',
  })
  const breaking = createServer((socket) => socket.resetAndDestroy())
  breaking.listen(0, '127.0.0.1')
  await once(breaking, 'listening')
  closing.push(() => new Promise((resolve) => breaking.close(resolve)))
  const url = `http://127.0.0.1:${(breaking.address() as AddressInfo).port}/`
  expect(await deliver.send({ ...PARCEL, url })).toMatchObject({ error: 'The receiver broke the connection off.' })
})

test('[H-07] an excerpt is one short line of visible characters', () => {
  expect(excerptOf('bad\r\n\trequest ')).toBe('bad request')
  expect(excerptOf('\u001B[31mred\u0007\u0000\u202Egnp.exe\u200B\u2028x')).toBe('[31mred gnp.exe x')
  expect(excerptOf(' \n\u0000 ')).toBeUndefined()
  expect(excerptOf('x'.repeat(10_000))).toHaveLength(200)
  expect(excerptOf(`${'x'.repeat(199)}🎭`)).toBe('x'.repeat(199))
})
