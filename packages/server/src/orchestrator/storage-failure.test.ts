import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startTestServer } from '../server.fixture.ts'

test('[G-01] [I-07] files that are deleted underneath are told by readiness, and nothing is acknowledged any more', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'impresario-gone-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const fatal: Error[] = []
  const app = await startTestServer({
    settings: { storageUrl: `file:${directory}` },
    onFatal: (error) => fatal.push(error),
  })
  // It cannot make durable what it has, and says so.
  onTestFinished(() => expect(app.server.stop()).rejects.toThrow('deleted or replaced'))
  const create = () => app.client('POST', '/api/v1/jobs', { blueprint: 'echo', initial_data: {} })
  expect((await create()).status).toBe(202)
  expect((await app.call('GET', '/_public/ready')).status).toBe(200)
  rmSync(join(directory, 'impresario.db'))
  const refused = await create()
  expect(refused).toMatchObject({ status: 503, body: { code: 'STORAGE_UNAVAILABLE' } })
  expect(refused.text).not.toContain(directory)
  expect(refused.headers.get('retry-after')).not.toBeNull()
  const ready = await vi.waitUntil(
    async () => {
      const answer = await app.call('GET', '/_public/ready')
      return answer.status === 503 ? answer : undefined
    },
    { timeout: 60_000, interval: 50 },
  )
  expect(ready.body['components']).toMatchObject({
    storage: { status: 'failed', reason: 'its files were deleted or replaced' },
  })
  expect((await create()).status).toBe(503)
  // What is left of the files is in the hands of this process alone, so it does not end by itself.
  expect(fatal).toEqual([])
})
