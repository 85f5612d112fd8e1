import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { Zstd } from '@hpcc-js/wasm-zstd'
import { afterEach, describe, expect, test } from 'vitest'
import { chooseEncoding, createCompressor } from './codec.ts'
import { LONG, startProtected } from '../protection.fixture.ts'
import type { ProtectedApp } from '../protection.fixture.ts'

let running: ProtectedApp | undefined
afterEach(async () => {
  await running?.app.close()
  running = undefined
})
async function start(settings = {}): Promise<ProtectedApp> {
  running = await startProtected(settings)
  return running
}
const unzstd = async (data: Buffer): Promise<Buffer> => Buffer.from((await Zstd.load()).decompress(data))
const json = (data: Buffer): unknown => JSON.parse(data.toString('utf8'))

describe('answers', () => {
  test('[H-06] zstd goes first, then gzip, and who asks for neither gets the answer as it is', async () => {
    const { call } = await start()
    const zstd = await call('GET', '/long', { 'accept-encoding': 'gzip, deflate, br, zstd' })
    expect(zstd.headers).toMatchObject({ 'content-encoding': 'zstd', vary: 'Accept-Encoding' })
    expect(json(await unzstd(zstd.body))).toEqual(LONG)
    expect(Number(zstd.headers['content-length'])).toBe(zstd.body.length)
    const gzip = await call('GET', '/long', { 'accept-encoding': 'gzip' })
    expect(gzip.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' })
    expect(json(gunzipSync(gzip.body))).toEqual(LONG)
    expect(gzip.body.length).toBeLessThan(JSON.stringify(LONG).length / 2)
    for (const headers of [{}, { 'accept-encoding': 'br' }, { 'accept-encoding': 'zstd;q=0, gzip;q=0' }]) {
      const plain = await call('GET', '/long', headers)
      expect(plain.headers['content-encoding']).toBeUndefined()
      expect(plain.headers.vary).toBe('Accept-Encoding')
      expect(json(plain.body)).toEqual(LONG)
    }
    expect(
      (await call('GET', '/long', { 'accept-encoding': 'zstd;q=0.1, gzip;q=0.9' })).headers['content-encoding'],
    ).toBe('gzip')
  })

  test('[H-06] what is short, packed, binary, an event stream or not to be changed stays as it is', async () => {
    const { call } = await start()
    for (const path of ['/short', '/packed', '/binary', '/events', '/keep']) {
      const { headers } = await call('GET', path, { 'accept-encoding': 'zstd, gzip' })
      expect({ path, encoding: headers['content-encoding'] }).toEqual({
        path,
        encoding: path === '/packed' ? 'br' : undefined,
      })
    }
    const forced = await call('GET', '/short', { 'accept-encoding': 'gzip, identity;q=0' })
    expect(json(gunzipSync(forced.body))).toEqual({ ok: true })
    expect(() => brotliDecompressSync(forced.body)).toThrow(/./)
  })

  test('[H-06] a tag that named the plain bytes is made weak, other headers stay', async () => {
    const { call } = await start()
    const packed = await call('GET', '/tagged', { 'accept-encoding': 'gzip' })
    expect(packed.headers).toMatchObject({ etag: 'W/"abc"', 'x-own': 'kept', 'content-encoding': 'gzip' })
    expect((await call('GET', '/tagged')).headers.etag).toBe('"abc"')
  })

  test('[H-06] a stream is compressed piece by piece', async () => {
    const { call } = await start()
    const { headers, body } = await call('GET', '/stream', { 'accept-encoding': 'gzip' })
    expect(headers).toMatchObject({ 'content-encoding': 'gzip', 'transfer-encoding': 'chunked' })
    expect(gunzipSync(body).toString().split('\n')).toHaveLength(201)
    const both = await call('GET', '/stream', { 'accept-encoding': 'zstd, gzip' })
    expect(both.headers['content-encoding']).toBe(createCompressor(['zstd', 'gzip'])?.encoding)
  })

  test('[H-06] large answers come through whichever way is taken', async () => {
    const { call } = await start()
    const packed = await call('GET', '/large', { 'accept-encoding': 'zstd, gzip' })
    expect(packed.headers['content-encoding']).toBe(chooseEncoding(['zstd', 'gzip'], 360_000))
    const only = await call('GET', '/large', { 'accept-encoding': 'zstd' })
    expect((await unzstd(only.body)).length).toBeGreaterThan(360_000)
  })

  test('[H-06] refusals are compressed like everything else, the limit is a setting, and it can be switched off', async () => {
    const long = { 'accept-encoding': 'gzip', 'x-client-token': 'wrong' }
    const { call } = await start({ compressionMinBytes: 10 })
    const refused = await call('GET', '/mine', long)
    expect(refused.status).toBe(401)
    expect(json(gunzipSync(refused.body))).toMatchObject({ code: 'UNAUTHENTICATED' })
    await running?.app.close()
    const off = await start({ compressionEnabled: false })
    expect((await off.call('GET', '/long', { 'accept-encoding': 'gzip' })).headers['content-encoding']).toBeUndefined()
  })
})

describe('requests', () => {
  const body = { text: 'x'.repeat(5_000) }
  const headers = { 'content-type': 'application/json' }

  test('[H-06] bodies may come as gzip or zstd', async () => {
    const { call } = await start()
    const packed = {
      gzip: gzipSync(JSON.stringify(body)),
      'x-gzip': gzipSync(JSON.stringify(body)),
      zstd: Buffer.from((await Zstd.load()).compress(Buffer.from(JSON.stringify(body)))),
      identity: Buffer.from(JSON.stringify(body)),
    }
    for (const [encoding, data] of Object.entries(packed)) {
      const answer = await call('POST', '/echo', { ...headers, 'content-encoding': encoding }, data)
      expect({ encoding, status: answer.status }).toEqual({ encoding, status: 200 })
      expect(json(answer.body)).toEqual({ got: body })
      const chunked = { ...headers, 'content-encoding': encoding, 'transfer-encoding': 'chunked' }
      expect((await call('POST', '/echo', chunked, data)).status).toBe(200)
    }
  })

  test('[H-06] an unknown encoding is 415, a broken body 400, and the connection stays good', async () => {
    const { call } = await start()
    const send = (encoding: string, data: Buffer): Promise<{ status: number; body: Buffer }> =>
      call('POST', '/echo', { ...headers, 'content-encoding': encoding }, data)
    for (const encoding of ['br', 'deflate', 'gzip, gzip', 'nonsense']) {
      expect((await send(encoding, Buffer.from('{}'))).status).toBe(415)
    }
    for (const encoding of ['gzip', 'zstd']) {
      for (const data of [Buffer.from('{}'), Buffer.from('not packed at all'), gzipSync('{}').subarray(0, 12)]) {
        expect({ encoding, status: (await send(encoding, data)).status }).toEqual({ encoding, status: 400 })
      }
    }
    expect((await call('GET', '/short', { 'content-encoding': 'gzip' })).status).toBe(200)
    expect((await send('gzip', gzipSync('{'))).status).toBe(400)
  })

  test('[H-06] a bomb is refused with 413 and never unpacked beyond the limit', async () => {
    const { call } = await start()
    const zstd = await Zstd.load()
    const zeros = Buffer.alloc(50_000_000, 0x20)
    const bombs = { gzip: gzipSync(zeros), zstd: Buffer.from(zstd.compress(zeros)) }
    for (const [encoding, data] of Object.entries(bombs)) {
      expect(data.length).toBeLessThan(65_536)
      const answer = await call('POST', '/echo', { ...headers, 'content-encoding': encoding }, data)
      expect({ encoding, status: answer.status }).toEqual({ encoding, status: 413 })
    }
    // A frame whose header states a wrong size.
    const liar = Buffer.from(zstd.compress(Buffer.alloc(70_000, 0x20)))
    liar.writeUInt32LE(1_000, 5)
    const lied = await call('POST', '/echo', { ...headers, 'content-encoding': 'zstd' }, liar)
    expect([400, 413]).toContain(lied.status)
    // The codec serves the next request as if nothing had happened.
    const good = Buffer.from(zstd.compress(Buffer.from(JSON.stringify(body))))
    expect((await call('POST', '/echo', { ...headers, 'content-encoding': 'zstd' }, good)).status).toBe(200)
    const cut = good.subarray(0, -4)
    expect((await call('POST', '/echo', { ...headers, 'content-encoding': 'zstd' }, cut)).status).toBe(400)
    const tooLong = await call('POST', '/echo', { ...headers, 'content-encoding': 'gzip' }, Buffer.alloc(65_537))
    expect(tooLong.status).toBe(413)
    const exact = JSON.stringify({ t: 'x'.repeat(65_536 - 8) })
    expect((await call('POST', '/echo', { ...headers, 'content-encoding': 'gzip' }, gzipSync(exact))).status).toBe(200)
    expect(
      (await call('POST', '/echo', { ...headers, 'content-encoding': 'gzip' }, gzipSync(`${exact} `))).status,
    ).toBe(413)
  })
})
