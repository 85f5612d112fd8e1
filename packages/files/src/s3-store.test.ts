import { startFauxqs } from 'fauxqs'
import { Readable } from 'node:stream'
import { LIMITS } from '@impresario/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bytesOf, describeStore } from './describe-store.fixture.ts'
import type { StoreOnTest } from './describe-store.fixture.ts'
import type { FileStore } from './file-store.ts'
import { openStore } from './open-store.ts'
import { connectS3 } from './s3-client.ts'
import type { S3Options } from './s3-options.ts'
import { missingSwift, startSwift } from './swift-server.fixture.ts'
import type { SwiftServer } from './swift-server.fixture.ts'

const BUCKET = 'impresario-files'

async function storeAt(s3: Omit<S3Options, 'bucket' | 'concurrencyMax'>, concurrencyMax = 100): Promise<FileStore> {
  return openStore({ concurrencyMax, bucket: BUCKET, s3, directory: '/nowhere' })
}

async function storeOnTest(
  options: Omit<S3Options, 'bucket' | 'concurrencyMax'>,
  stop: () => Promise<void>,
  traits: Pick<StoreOnTest, 'isInByteOrder' | 'hostileNames'>,
): Promise<StoreOnTest> {
  const { module, client } = await connectS3({ ...options, bucket: BUCKET, concurrencyMax: 10 })
  await client.send(new module.CreateBucketCommand({ Bucket: BUCKET }))
  const store = await storeAt(options)
  return {
    store,
    open: async (concurrencyMax) => storeAt(options, concurrencyMax),
    ...traits,
    leftovers: async () => {
      const { Uploads = [] } = await client.send(new module.ListMultipartUploadsCommand({ Bucket: BUCKET }))
      return Uploads.length
    },
    close: async () => {
      await store.close()
      client.destroy()
      await stop()
    },
  }
}

describeStore('S3: fauxqs', async () => {
  const server = await startFauxqs({ port: 0, logger: false, host: '127.0.0.1' })
  const keys = { accessKey: 'test', secretKey: 'test', region: 'us-east-1' }
  return storeOnTest({ endpoint: server.address, ...keys }, async () => server.stop(), {
    isInByteOrder: false,
    hostileNames: 300,
  })
})

describe.skipIf(missingSwift !== undefined && process.env['CI'] !== 'true')('with OpenStack Swift', () => {
  let swift: SwiftServer
  let store: FileStore
  beforeAll(async () => {
    swift = await startSwift()
    store = await storeAt(swift)
  })
  afterAll(async () => {
    await store?.close()
    await swift?.remove()
  })

  describeStore('S3: OpenStack Swift', async () =>
    storeOnTest(swift, async () => undefined, { isInByteOrder: true, hostileNames: 40 }),
  )

  test('[J-06] a signed address reads one file for its time, and nothing else', async () => {
    await store.put('signed/ä b.txt', Readable.from([Buffer.from('signed')]))
    const url = await store.presign('signed/ä b.txt', {
      method: 'GET',
      expiresMs: 60_000,
      attachment: 'attachment; filename="b"',
    })
    const answer = await fetch(url ?? '')
    expect(await answer.text()).toBe('signed')
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="b"')
    const other = new URL(url ?? '')
    other.pathname = other.pathname.replace('b.txt', 'c.txt')
    expect((await fetch(other)).status).toBe(403)
  })

  test('[J-06] a signed address takes a file of the announced size only', async () => {
    const url = (await store.presign('signed/up', { method: 'PUT', expiresMs: 60_000, bytes: 5 })) ?? ''
    expect((await fetch(url, { method: 'PUT', body: 'too long for it' })).status).toBe(403)
    expect(await store.head('signed/up')).toBeUndefined()
    expect((await fetch(url, { method: 'PUT', body: '12345' })).status).toBe(200)
    expect(String(await bytesOf((await store.get('signed/up'))?.body))).toBe('12345')
  })

  test('[J-01] a wrong key is told as such, without the key', async () => {
    const stranger = await storeAt({ ...swift, secretKey: 'a-wrong-secret' })
    const refusal = await stranger.check().catch((error: unknown) => error)
    expect(refusal).toMatchObject({ code: 'FILES_UNAVAILABLE', message: expect.stringContaining('403') as unknown })
    expect(String(refusal)).not.toContain('a-wrong-secret')
    await stranger.close()
  })

  test('[J-02] the sweep gives up what a killed upload has left', async () => {
    const { module, client } = await connectS3({ ...swift, bucket: BUCKET, concurrencyMax: 10 })
    const place = { Bucket: BUCKET, Key: 'jobs/1/killed' }
    const { UploadId } = await client.send(new module.CreateMultipartUploadCommand(place))
    const Body = Buffer.alloc(LIMITS.filePartBytes)
    await client.send(new module.UploadPartCommand({ ...place, UploadId, PartNumber: 1, Body }))
    expect(await store.sweep(3_600_000)).toBe(0)
    expect(await store.sweep(-3_600_000)).toBe(1)
    const { Uploads = [] } = await client.send(new module.ListMultipartUploadsCommand({ Bucket: BUCKET }))
    expect(Uploads).toEqual([])
    client.destroy()
  })
})

test('[J-06] there is no signed address for a file that S3 does not take in one request', async () => {
  const store = await storeAt({ endpoint: 'http://127.0.0.1:1', region: 'us-east-1', accessKey: 'a', secretKey: 'b' })
  const address = async (bytes: number): Promise<string | undefined> =>
    store.presign('up', { method: 'PUT', expiresMs: 60_000, bytes })
  expect(await address(5 * 2 ** 30)).toContain('X-Amz-SignedHeaders=content-length%3Bhost')
  expect(await address(5 * 2 ** 30 + 1)).toBeUndefined()
  await store.close()
})

test('[J-01] a store that is not there is told as such', async () => {
  const store = await storeAt({ endpoint: 'http://127.0.0.1:1', region: 'us-east-1', accessKey: 'a', secretKey: 'b' })
  await expect(store.check()).rejects.toMatchObject({ code: 'FILES_UNAVAILABLE' })
  await expect(store.put('a', Readable.from([Buffer.from('x')]))).rejects.toMatchObject({ code: 'FILES_UNAVAILABLE' })
  await store.close()
})
