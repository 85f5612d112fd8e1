import { blueprint } from '@impresario/core'
import { createClient } from '@impresario/client'
import { eventType } from '@impresario/protocol'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { CLIENT_TOKEN, startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

const napping = blueprint('napping', { start: 'rest' }, (state) => ({
  rest: state.handler((_context, actions) => actions.sleep('3d', { to: 'done' })),
  done: state.end(),
}))

let app: TestServer
afterEach(() => app.server.stop())

async function jobIn(name: string, status: string, more: object = {}): Promise<string> {
  const jobId = await app.createJob(name, more)
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

const paid = eventType('order.paid', z.object({ sum: z.number() }))
const orderInput = z.object({ order: z.string().default('none') })
const order = blueprint('order', { input: orderInput, start: 'wait', events: [paid] }, (state) => ({
  wait: state.handler((context, actions) =>
    actions.waitForEvent(paid, {
      transitions: { received: 'done' },
      timeout: '1h',
      match: context.initialData.order,
    }),
  ),
  done: state.end({ result: (context) => context.eventOf(paid) }),
}))
const ofOrder = { initial_data: { order: 'o1' } }

test('[B-12] [H-01] an event is sent to a job, typed, once for its id', async () => {
  app = await startTestServer({ blueprints: [order] })
  const jobId = await jobIn('order', 'waiting_for_event', ofOrder)
  const { body } = await app.client('GET', `/api/v1/jobs/${jobId}`)
  expect(body['waits_for']).toMatchObject({ kind: 'event', topic: 'order.paid', key: 'o1' })
  const explained = await app.client('GET', `/api/v1/jobs/${jobId}/explain`)
  expect(explained.body['summary']).toMatch(/^It waits for the event "order\.paid" for the key "o1", until .*Z\.$/)
  const path = `/api/v1/jobs/${jobId}/events`
  const bad = await app.client('POST', path, { topic: 'order.paid', payload: { sum: 'much' } })
  expect(bad).toMatchObject({ status: 422, body: { code: 'INPUT_REFUSED' } })
  expect(await app.client('POST', path, {})).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
  expect(await app.client('POST', '/api/v1/jobs/nobody/events', { topic: 'order.paid' })).toMatchObject({ status: 404 })
  const event = { topic: 'order.paid', payload: { sum: 7 } }
  const sent = await app.client('POST', path, event, { 'idempotency-key': 'e1' })
  expect(sent).toMatchObject({
    status: 200,
    body: { status: 'event_accepted', event_id: 'e1', is_new: true, job_id: jobId },
  })
  expect((await app.ended(jobId)).body).toMatchObject({ status: 'finished', result: { sum: 7 } })
  expect(await app.client('POST', path, { ...event, event_id: 'e1' })).toMatchObject({
    status: 200,
    body: { is_new: false, job_status: 'finished' },
  })
  expect(await app.client('POST', path, event)).toMatchObject({ status: 409, body: { code: 'NOT_WAITING' } })
})

test('[B-12] [H-01] by key, over the API, the SDK and the same process', async () => {
  app = await startTestServer({ blueprints: [order] })
  const client = createClient({ url: app.address, token: CLIENT_TOKEN })
  const start = (id: string) => client.start(order, { order: id })
  const [first, second, third] = [await start('o1'), await start('o2'), await start('o3')]
  const sent = await app.client('POST', '/api/v1/events', { topic: 'order.paid', key: 'o1', payload: { sum: 1 } })
  expect(sent).toMatchObject({ status: 202, body: { status: 'event_accepted', is_new: true } })
  const wrong = await app.client('POST', '/api/v1/events', { topic: 'order.paid', key: 'o2', payload: { sum: 'two' } })
  expect(wrong).toMatchObject({ status: 422, body: { code: 'INPUT_REFUSED' } })
  await client.send(paid, { sum: 2 }, { key: 'o2' })
  await client.job(third.id).send(paid, { sum: 3 })
  expect(await Promise.all([first, second, third].map((job) => job.result()))).toEqual([
    { sum: 1 },
    { sum: 2 },
    { sum: 3 },
  ])
})
