import { startFauxqs } from 'fauxqs'
import type { FauxqsServer } from 'fauxqs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { echo } from '../server.fixture.ts'
import { startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

let s3: FauxqsServer
let app: TenantServer
beforeEach(async () => {
  s3 = await startFauxqs({ port: 0, logger: false, host: '127.0.0.1' })
  s3.createBucket('impresario-files')
  const store = { s3EndpointUrl: s3.address, s3AccessKey: 'test', s3SecretKey: 'test' }
  const limits = { jobFilesMax: 3, clientFilesBytesMax: 100 }
  app = await startTenantServer({ settings: { ...store, ...limits }, blueprints: [echo] })
})
afterEach(async () => {
  await app.close()
  await s3.stop()
})

async function newJob(): Promise<string> {
  const { body } = await app.as('alpha', 'POST', '/api/v1/jobs', { blueprint: 'echo', initial_data: {} })
  return body.job_id
}

async function ask(jobId: string, query: string): Promise<readonly [number, string]> {
  const { status, body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}/files/upload?${query}`)
  return [status, String(body['url'] ?? body['code'])]
}

test('[J-06] [J-02] who asks for many addresses of S3 gets as many as there is room for in the job and for the client', async () => {
  const [first, second] = [await newJob(), await newJob()]
  const urls: string[] = []
  for (const name of ['a', 'b', 'c']) {
    const [status, url] = await ask(first, `filename=${name}&bytes=20`)
    expect([status, url.startsWith(s3.address)]).toEqual([200, true])
    urls.push(url)
  }
  expect(await ask(first, 'filename=d&bytes=20')).toEqual([422, 'LIMIT_EXCEEDED'])
  expect(await ask(second, 'filename=d&bytes=41')).toEqual([422, 'LIMIT_EXCEEDED'])
  for (const url of urls) {
    expect((await fetch(url, { method: 'PUT', body: 'x'.repeat(20) })).status).toBe(200)
  }
  expect(await ask(second, 'filename=d&bytes=41')).toEqual([422, 'LIMIT_EXCEEDED'])
  expect((await ask(second, 'filename=d&bytes=40'))[0]).toBe(200)
  // Without a size there is nothing to book before the upload: it comes through this server.
  const [status, own] = await ask(second, 'filename=e')
  expect([status, own.startsWith(app.address)]).toEqual([200, true])
  expect((await fetch(own, { method: 'PUT', body: 'x' })).status).toBe(422)
})
