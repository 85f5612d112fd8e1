import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import { Agent, request as httpsRequest } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import type { Settings } from '../config/config.ts'
import { createServer } from '../server.ts'
import { startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

const file = (name: string): string => fileURLToPath(new URL(`../../test-certificates/${name}`, import.meta.url))
const CA = readFileSync(file('authority.pem'))

const TLS: Partial<Settings> = {
  tlsEnabled: true,
  tlsCertPath: file('server.pem'),
  tlsKeyPath: file('server.key.pem'),
  tlsCaPath: file('authority.pem'),
}

let app: TestServer | undefined

afterEach(async () => {
  await app?.server.stop()
  app = undefined
})

async function start(more: Partial<Settings> = {}): Promise<TestServer> {
  app = await startTestServer({ settings: { ...TLS, ...more } })
  return app
}

interface Ask {
  /** The certificate that the worker shows. */
  readonly as?: string
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  readonly agent?: Agent
}

interface Answered {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

function ask(server: TestServer, method: string, path: string, { as, token, headers, body, agent }: Ask = {}) {
  const shown =
    as === undefined ? {} : { cert: readFileSync(file(`${as}.pem`)), key: readFileSync(file(`${as}.key.pem`)) }
  return new Promise<Answered>((resolve, reject) => {
    const request = httpsRequest(
      `${server.address}${path}`,
      {
        method,
        ca: CA,
        ...shown,
        agent: agent ?? false,
        headers: {
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(token === undefined ? {} : { 'x-worker-token': token }),
          ...headers,
        },
      },
      (response) => {
        read(response).then(resolve, reject)
      },
    )
    request.on('error', reject)
    request.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

async function read(response: IncomingMessage): Promise<Answered> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(Buffer.from(chunk as Uint8Array))
  const text = Buffer.concat(chunks).toString('utf8')
  return { status: response.statusCode ?? 0, body: text === '' ? {} : (JSON.parse(text) as Answered['body']) }
}

const register = (server: TestServer, how: Ask, workerId = 'w1'): Promise<Answered> =>
  ask(server, 'POST', '/_worker/workers/register', {
    ...how,
    body: { worker_id: workerId, supported_skills: ['echo'] },
  })

describe('who a certificate makes its bearer', () => {
  test('[H-03] a worker with a certificate needs no token, and is the one that it names', async () => {
    const server = await start()
    expect(server.address).toMatch(/^https:/)
    for (const as of ['w1', 'named-by-uri', 'named-by-dns']) {
      expect(await register(server, { as })).toMatchObject({ status: 200, body: { status: 'registered' } })
    }
    expect((await ask(server, 'GET', '/_worker/workers/w1/tasks/next?timeout=0', { as: 'w1' })).status).toBe(204)
    // Who names itself nowhere is still known.
    expect((await ask(server, 'POST', '/_worker/auth/token', { as: 'w1' })).body).toMatchObject({ worker_id: 'w1' })
  })

  test('[H-03] a certificate of another worker is refused with 403, also beside a good token', async () => {
    const server = await start()
    for (const how of [{ as: 'w2' }, { as: 'w2', token: WORKER_TOKEN }]) {
      const answer = await register(server, how)
      expect(answer).toMatchObject({ status: 403, body: { error: 'The certificate belongs to another worker.' } })
    }
    // Its alternative name says w1, so that its common name does not count.
    expect((await register(server, { as: 'named-by-dns' }, 'w2')).status).toBe(403)
  })

  test.each(['of-a-stranger', 'expired', 'not-yet-valid', 'nameless'])(
    '[H-03] a certificate that is %s is refused with 401, also beside a good token',
    async (as) => {
      const server = await start()
      for (const how of [{ as }, { as, token: WORKER_TOKEN }]) {
        const { status, body } = await register(server, how)
        expect(status).toBe(401)
        expect(body['error']).toMatch(/^Unauthorized: the certificate/)
      }
    },
  )

  test('[H-03] without a certificate a token is needed', async () => {
    const server = await start()
    expect((await register(server, {})).status).toBe(401)
    expect((await register(server, { token: WORKER_TOKEN })).status).toBe(200)
  })

  test.each([undefined, 'of-a-stranger', 'expired', 'not-yet-valid'])(
    '[H-03] where a certificate is required, a connection with %s does not come about',
    async (as) => {
      const server = await start({ tlsRequireClientCert: true })
      await expect(register(server, as === undefined ? { token: WORKER_TOKEN } : { as })).rejects.toThrow(
        /ECONNRESET|socket hang up|alert|certificate|EPIPE/,
      )
      expect((await register(server, { as: 'w1' })).status).toBe(200)
    },
  )
})

describe('WORKER_AUTH_MODE', () => {
  test('[H-03] token-only: certificates do not count', async () => {
    const server = await start({ workerAuthMode: 'token-only' })
    expect((await register(server, { as: 'w1' })).status).toBe(401)
    expect((await register(server, { as: 'w2', token: WORKER_TOKEN })).status).toBe(200)
  })

  test('[H-03] mtls-only: tokens do not count, but for those that a certificate was given', async () => {
    const server = await start({ workerAuthMode: 'mtls-only' })
    expect((await register(server, { token: WORKER_TOKEN })).status).toBe(401)
    expect((await register(server, {})).body).toMatchObject({ error: 'A client certificate is required' })
    const { body } = await ask(server, 'POST', '/_worker/auth/token', { as: 'w1' })
    const token = String(body['access_token'])
    expect((await register(server, { token })).status).toBe(200)
    expect((await register(server, { token }, 'w2')).status).toBe(403)
  })
})

test('[H-03] TLS below 1.2 is refused', async () => {
  const server = await start()
  const { port } = new URL(server.address)
  const failure = await new Promise<Error | undefined>((resolve) => {
    const socket = connect({
      port: Number(port),
      host: '127.0.0.1',
      ca: CA,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
    })
    socket.once('secureConnect', () => resolve(undefined))
    socket.once('error', resolve)
  })
  expect(failure).toBeInstanceOf(Error)
})

test('[H-03] a certificate is changed without dropping connections, and a bad one changes nothing', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-'))
  try {
    const cert = join(directory, 'server.pem')
    const key = join(directory, 'server.key.pem')
    await copyFile(file('server.pem'), cert)
    await copyFile(file('server.key.pem'), key)
    const server = await start({ tlsCertPath: cert, tlsKeyPath: key })
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: CA })
    const path = '/_public/status'
    expect((await ask(server, 'GET', path, { agent })).status).toBe(200)
    const before = await fingerprint(server)
    await writeFile(cert, 'nonsense')
    expect(server.server.reloadTls()).toMatchObject({ status: 'refused' })
    expect(await fingerprint(server)).toBe(before)
    await copyFile(file('server-renewed.pem'), cert)
    await copyFile(file('server-renewed.key.pem'), key)
    expect(server.server.reloadTls()).toMatchObject({ status: 'reloaded' })
    expect(await fingerprint(server)).not.toBe(before)
    const [socket] = Object.values(agent.freeSockets).flat()
    expect((await ask(server, 'GET', path, { agent })).status).toBe(200)
    expect(Object.values(agent.freeSockets).flat()[0]).toBe(socket)
    agent.destroy()
  } finally {
    await rm(directory, { recursive: true })
  }
})

function fingerprint(server: TestServer): Promise<string> {
  const { port } = new URL(server.address)
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(port), host: '127.0.0.1', ca: CA, servername: 'localhost' }, () => {
      resolve(socket.getPeerCertificate().fingerprint256)
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

test.each<[string, Partial<Settings>, RegExp]>([
  ['no certificate', { tlsEnabled: true }, /TLS_CERT_PATH is missing/],
  ['a file that is not there', { ...TLS, tlsCertPath: '/nowhere.pem' }, /TLS_CERT_PATH: \/nowhere\.pem cannot be read/],
  ['a key of another certificate', { ...TLS, tlsKeyPath: file('w1.key.pem') }, /do not go together/],
  [
    'required certificates and no root',
    { ...TLS, tlsCaPath: '', tlsRequireClientCert: true },
    /TLS_CA_PATH is missing/,
  ],
  ['only certificates, without TLS', { workerAuthMode: 'mtls-only' }, /TLS_ENABLED is not set/],
])('[H-03] a start with %s is refused', (_title, settings, why) => {
  expect(() => createServer({ settings: { storageUrl: 'memory:', apiHost: '127.0.0.1', ...settings } })).toThrow(why)
})
