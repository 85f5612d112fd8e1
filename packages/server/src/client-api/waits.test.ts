import { blueprint } from '@impresario/core'
import { afterEach, expect, test } from 'vitest'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

const napping = blueprint('napping', { start: 'rest' }, (state) => ({
  rest: state.handler((_context, actions) => actions.sleep('3d', { to: 'done' })),
  done: state.end(),
}))

let app: TestServer
afterEach(() => app.server.stop())

async function jobIn(name: string, status: string): Promise<string> {
  const jobId = await app.createJob(name)
  let { body } = await app.client('GET', `/api/v1/jobs/${jobId}`)
  while (body['status'] !== status) {
    ;({ body } = await app.client('GET', `/api/v1/jobs/${jobId}?wait=20&version=${String(body['version'])}`))
  }
  return jobId
}

test('[B-11] a job that sleeps says until when, in its body, in lists and in its explanation', async () => {
  app = await startTestServer({ blueprints: [napping] })
  const startedAt = Date.now() / 1_000
  const jobId = await jobIn('napping', 'waiting_for_time')
  const { body } = await app.client('GET', `/api/v1/jobs/${jobId}`)
  const { until } = body['waits_for'] as { readonly until: number }
  expect(until - startedAt).toBeGreaterThan(3 * 86_400 - 60)
  expect(body['waits_for']).toEqual({ kind: 'time', until })
  const listed = await app.client('GET', '/api/v1/jobs?status=waiting_for_time')
  expect(JSON.parse(listed.text)).toMatchObject([{ id: jobId, waits_for: { kind: 'time' } }])
  const explained = await app.client('GET', `/api/v1/jobs/${jobId}/explain`)
  expect(explained.body).toMatchObject({ waits_for: { kind: 'time', until }, tasks: [] })
  expect(explained.body['summary']).toMatch(/^It sleeps until .*Z, then goes on to "done"\.$/)
  const states = await app.client('GET', '/api/v1/blueprints')
  expect(JSON.parse(states.text)).toMatchObject([{ states: [{ name: 'rest', waits: ['after 3d'] }, { waits: [] }] }])
  await app.client('POST', `/api/v1/jobs/${jobId}/cancel`)
  const ended = await app.ended(jobId)
  expect(ended.body['status']).toBe('cancelled')
  expect(ended.body).not.toHaveProperty('waits_for')
})
