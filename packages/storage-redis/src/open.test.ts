import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LogFields, Storage } from '@impresario/core'
import { Redis } from 'ioredis'
import { afterEach, expect, test } from 'vitest'
import { tagsOf } from './client/address.ts'
import { slotOf } from './client/slots.ts'
import { openRedisStorage } from './open.ts'
import type { OpenOptions } from './open.ts'
import { startCluster } from './redis-cluster.fixture.ts'
import { startRedis } from './redis-server.fixture.ts'
import type { TestServer } from './redis-server.fixture.ts'

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function server(extra: readonly string[] = []): Promise<TestServer> {
  const started = await startRedis(extra)
  open.push({ close: () => started.remove() })
  return started
}

async function opened(options: OpenOptions): Promise<Awaited<ReturnType<typeof openRedisStorage>>> {
  const storage = await openRedisStorage({ waitMs: 10_000, ...options })
  open.unshift(storage)
  return storage
}

/** One commit, one claim and one list, which must work over every kind of connection. */
async function proveWorks(storage: Storage): Promise<void> {
  const value = { jobId: 'j1', fingerprint: 'f', createdAt: 1 }
  const enqueue = [{ queue: 'turns', id: 'i1', lane: 'a', priority: 0, delayMs: 0, payload: 'ü' }] as const
  expect(await storage.commit({ put: [{ kind: 'key', id: 'k1', version: 1, value }], enqueue })).toBe('committed')
  const [lease] = (await storage.claim('turns', { limit: 1, leaseMs: 1_000 })).leases
  expect(lease?.payload).toBe('ü')
  expect(await storage.list('key', { limit: 9 })).toEqual([{ id: 'k1', version: 1, value }])
}

/** A log that keeps its messages. */
function recording(): { readonly told: unknown[]; readonly log: NonNullable<OpenOptions['log']> } {
  const told: unknown[] = []
  const tell =
    (level: string) =>
    (message: string, fields?: LogFields): void => {
      told.push([level, message, fields])
    }
  return { told, log: { debug: tell('debug'), info: tell('info'), warn: tell('warn'), error: tell('error') } }
}

test('[G-02] a server that writes before it answers keeps every promise, and the log says so', async () => {
  const { url } = await server()
  const { told, log } = recording()
  const storage = await opened({ url: `${url}?strict=true`, log })
  expect(storage.durability).toEqual({ promise: 'always', doubts: [] })
  expect(told).toMatchObject([['info', 'acknowledged writes are safe on disk', { promise: 'always' }]])
  await proveWorks(storage)
})

test('[G-02] a server that promises less is told of, and refused in strict mode', async () => {
  const { url } = await server([
    '--appendfsync',
    'everysec',
    '--maxmemory',
    '100mb',
    '--maxmemory-policy',
    'allkeys-lru',
  ])
  const { told, log } = recording()
  const storage = await opened({ url, log })
  expect(storage.durability.promise).toBe('everysec')
  expect(storage.durability.doubts.join('; ')).toMatch(/everysec.*allkeys-lru/)
  expect(told).toMatchObject([['warn', 'acknowledged writes can be lost', { promise: 'everysec' }]])
  await expect(opened({ url: `${url}?strict=true` })).rejects.toThrow('appendfsync is everysec')
})

test('[G-02] a server without a log promises nothing', async () => {
  const { url } = await server(['--appendonly', 'no'])
  expect((await opened({ url })).durability.promise).toBe('none')
})

test('[G-02] a user with a password works; one that may not read the settings is told that the promise is unknown', async () => {
  const redis = await server()
  const operator = new Redis(redis.port)
  open.unshift({ close: () => operator.disconnect() })
  await operator.acl('SETUSER', 'impresario', 'on', '>p@ss:w/rd', '~app:*', '&app:*', '+@all', '-config')
  const address = `redis://impresario:p%40ss%3Aw%2Frd@127.0.0.1:${redis.port}/2?prefix=app:`
  const storage = await opened({ url: address })
  expect(storage.durability).toMatchObject({ promise: 'unknown' })
  await proveWorks(storage)
  await expect(opened({ url: `${address}&strict=true` })).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' })
  await operator.select(2)
  const keys = await operator.keys('*')
  expect(keys.length).toBeGreaterThan(5)
  expect(keys.every((key) => key.startsWith('app:{main}:'))).toBe(true)
})

test('[G-02] a wrong password is refused at once, and the refusal does not repeat it', async () => {
  const redis = await server(['--requirepass', 'right'])
  const wrong = opened({ url: `redis://:verywrong@127.0.0.1:${redis.port}`, waitMs: 60_000 })
  const refusal = await wrong.catch((error: unknown) => error)
  expect(refusal).toMatchObject({ code: 'INVALID_CONFIGURATION' })
  expect(String(refusal)).not.toContain('verywrong')
  await proveWorks(await opened({ url: `redis://:right@127.0.0.1:${redis.port}` }))
})

test('[G-02] an address where nobody listens is refused after a while', async () => {
  const redis = await server()
  await redis.kill()
  await expect(opened({ url: redis.url, waitMs: 200 })).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
})

test('[G-02] data of a newer layout is refused and left as it is', async () => {
  const redis = await server()
  const operator = new Redis(redis.port)
  await operator.set('impresario:{main}:format', '2')
  await expect(opened({ url: redis.url })).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' })
  expect(await operator.keys('*')).toEqual(['impresario:{main}:format'])
  operator.disconnect()
})

test('[G-02] two namespaces on one server do not see each other', async () => {
  const { url } = await server()
  const [one, two] = [await opened({ url: `${url}?namespace=one` }), await opened({ url: `${url}?namespace=two` })]
  await proveWorks(one)
  expect(await two.list('key', { limit: 9 })).toEqual([])
  expect(await two.peek('turns', ['i1'])).toEqual([undefined])
  await proveWorks(two)
})

test('[G-02] another number of shards than the data has is refused, and the refusal says what to do', async () => {
  const { url } = await server()
  await proveWorks(await opened({ url: `${url}?namespace=four&shards=4` }))
  await proveWorks(await opened({ url }))
  for (const shards of [1, 3, 5]) {
    const refused = opened({ url: `${url}?namespace=four&shards=${shards}` })
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' })
    await expect(refused).rejects.toThrow(/4 shards.*shards=4.*impresario migrate/)
  }
  await expect(opened({ url: `${url}?shards=2` })).rejects.toThrow(/1 shards.*says 2/)
  // Names that stand for the same keys.
  const nameOf = (namespace: string, shards: number, shard: number): string =>
    tagsOf({ namespace, shards })[shard]?.slice(1, -1) ?? ''
  const third = nameOf('four', 4, 2)
  await expect(opened({ url: `${url}?namespace=${third}` })).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' })
  const second = nameOf('five', 2, 1)
  await opened({ url: `${url}?namespace=${second}` })
  await expect(opened({ url: `${url}?namespace=five&shards=2` })).rejects.toThrow(second)
  const again = await opened({ url: `${url}?namespace=four&shards=4` })
  expect(await again.list('key', { limit: 9 })).toHaveLength(1)
})

test('[G-02] a namespace whose shards were numbered keeps their names', async () => {
  const { url } = await server()
  const operator = new Redis(url)
  await operator.set('impresario:{old}:format', '1 shards=3')
  const storage = await opened({ url: `${url}?namespace=old&shards=3` })
  await proveWorks(storage)
  const tags = new Set((await operator.keys('impresario:{old*')).map((key) => key.slice(0, key.indexOf('}') + 1)))
  expect([...tags].toSorted()).toEqual(
    ['impresario:{old', 'impresario:{old/0', 'impresario:{old/1', 'impresario:{old/2']
      .map((tag) => `${tag}}`)
      .toSorted(),
  )
  operator.disconnect()
})

test('[G-02] a Cluster carries everything of a namespace in one slot', { timeout: 60_000 }, async () => {
  const cluster = await startCluster(2)
  open.push({ close: () => cluster.remove() })
  const { operators } = cluster
  // Their tags are in the second and in the first half of the slots.
  for (const namespace of ['main', 'other', 'third']) {
    const storage = await opened({ url: `${cluster.url}&namespace=${namespace}` })
    await proveWorks(storage)
    const heard = new Promise((resolve) => storage.watch('turns', resolve))
    await storage.commit({ enqueue: [{ queue: 'turns', id: 'i2', lane: 'x', priority: 0, delayMs: 0, payload: 1 }] })
    expect(await heard).toBe('x')
    for (const operator of operators) await operator.function('FLUSH')
    expect(await storage.read('key', 'k1')).toMatchObject({ version: 1 })
  }
  const keys = (await Promise.all(operators.map((operator) => operator.keys('*')))).flat()
  const [first] = operators
  if (first === undefined) throw new Error('There are two')
  for (const text of ['main', 'main/3.17', 'ключ', '']) {
    expect(slotOf(text)).toBe(await first.cluster('KEYSLOT', text))
  }
  const slots = await Promise.all(keys.map((key) => first.cluster('KEYSLOT', key)))
  expect(new Set(slots).size).toBe(3)
})

test('[G-02] Sentinels tell where the primary is', { timeout: 60_000 }, async () => {
  const primary = await server()
  const directory = mkdtempSync(join(tmpdir(), 'impresario-sentinel-'))
  open.push({ close: () => rmSync(directory, { recursive: true }) })
  const file = join(directory, 'sentinel.conf')
  writeFileSync(file, `sentinel monitor house 127.0.0.1 ${primary.port} 1\n`)
  const sentinel = await startRedis([], { configuration: file, isSentinel: true })
  open.unshift({ close: () => sentinel.remove() })
  const storage = await opened({ url: `redis://127.0.0.1:${sentinel.port}?sentinel=house` })
  expect(storage.durability.doubts.join('; ')).toContain('failover')
  await proveWorks(storage)
})

test('[G-02] TLS carries everything, and a stranger is not trusted', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'impresario-tls-'))
  open.push({ close: () => rmSync(directory, { recursive: true }) })
  const [key, certificate] = [join(directory, 'key.pem'), join(directory, 'certificate.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2']
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-keyout', key, '-out', certificate]
  execFileSync('openssl', ['req', '-x509', '-nodes', ...made, ...subject], { stdio: 'ignore' })
  const files = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-ca-cert-file', certificate]
  const redis = await startRedis([...files, '--tls-auth-clients', 'no'], { tlsPort: true })
  open.unshift({ close: () => redis.remove() })
  const url = `rediss://127.0.0.1:${redis.tlsPort}`
  await proveWorks(await opened({ url, tls: { ca: readFileSync(certificate) } }))
  await expect(opened({ url, waitMs: 1_000 })).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
})
