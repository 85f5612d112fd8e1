import { once } from 'node:events'
import { createServer as createReceiver } from 'node:http'
import { blueprint } from '@impresario/core'
import { objectText } from '../../../../test/odd-json.ts'
import { readJson, writeJson } from '@impresario/protocol'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { echo, startTestServer, WORKER_TOKEN } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'

/** Hands its data to a worker, keeps what comes back, and ends with all of it; the handlers see every value. */
const through = blueprint('through', { start: 'ask' }, (state) => ({
  ask: state.handler((context, actions) => {
    const { initialData: seen } = context
    Object.assign(context.stateHistory, { seen })
    return actions.dispatchTask({ type: 'echo', params: seen, transitions: { success: 'done' } })
  }),
  done: state.end({ result: ({ initialData: given }) => ({ given }) }),
}))

const fall = blueprint('fall', { start: 'fall', handlerAttemptsMax: 1 }, (state) => ({
  fall: state.handler((context, actions) => {
    if (context.initialData['mended'] !== 9_007_199_254_740_995n) throw new Error('It fell over.')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

const quick = blueprint('quick', { start: 'done' }, (state) => ({ done: state.end() }))

/** Asks for more than any worker has. */
const choosy = blueprint('choosy', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.dispatchTask({
      type: 'rare',
      resourceRequirements: { properties: { id: 2 ** 60 } },
      transitions: { success: 'done' },
    }),
  ),
  done: state.end(),
}))

let app: TestServer

beforeAll(async () => {
  app = await startTestServer({
    blueprints: [echo, through, fall, quick, choosy],
    settings: {
      webhookAllowHttp: true,
      webhookAllowPrivate: true,
      webhookAllowedPorts: '1024-65535',
      historyDatabaseUri: 'memory:',
    },
  })
  await app.register('w1')
})
afterAll(() => app.server.stop())

/** The part of a JSON text from its first `"name":` on, as long as `like` is. */
function partOf(text: string, name: string, like: string): string {
  const at = text.indexOf(`"${name}":`) + name.length + 3
  return text.slice(at, at + like.length)
}

/** Sends data through everything, and gives the places where they are shown otherwise. */
async function shownAlike(data: string): Promise<readonly string[]> {
  // In our own spelling, so that texts can be compared: what the codec makes of spellings is tested with it.
  const given = writeJson(readJson(data))
  const created = await app.client(
    'POST',
    '/api/v1/jobs',
    `{"blueprint":"through","initial_data":${data},"metadata":${data}}`,
  )
  expect(created.status).toBe(202)
  const task = await app.poll('w1')
  expect(partOf(task.text, 'params', given)).toBe(given)
  const { job_id, task_id } = task.body
  const result = `{"worker_id":"w1","job_id":"${job_id}","task_id":"${task_id}","status":"success","data":{"answer":${given}}}`
  expect((await app.worker('POST', '/_worker/tasks/result', result)).status).toBe(200)
  const { text } = await app.ended(job_id)
  const names = ['initial_data', 'seen', 'answer', 'given', 'metadata']
  return names.filter((name) => partOf(text, name, given) !== given)
}

describe('[H-01] [G-01] numbers and texts come from client to worker and back as they are', () => {
  test('64-bit ids, long decimals and minus zero', async () => {
    const data =
      '{"id":9007199254740993,"max":18446744073709551615,"many":123456789012345678901234567890,' +
      '"zero":-0,"tiny":1e-400,"price":0.30000000000000001,"list":[-9223372036854775808,{"x":-0.0}],"plain":1.5}'
    expect(await shownAlike(data)).toEqual([])
  })

  test('anything', async () => {
    const alike = fc.asyncProperty(objectText, async (data) => {
      expect(await shownAlike(data)).toEqual([])
    })
    await fc.assert(alike, { numRuns: 40 })
  })

  test('a batch, and a batch of results', async () => {
    const data = '{"id":9007199254740993}'
    const { body } = await app.client(
      'POST',
      '/api/v1/jobs/batch',
      `{"jobs":[{"blueprint":"through","initial_data":${data}}]}`,
    )
    const [{ job_id: jobId }] = body['results'] as [{ job_id: string }]
    const polled = await app.worker('POST', '/_worker/workers/w1/tasks/batch', { limit: 5, timeout: 10 })
    expect(polled.text).toContain('"params":{"id":9007199254740993}')
    const [task] = polled.body['tasks'] as [{ task_id: string }]
    await app.worker(
      'POST',
      '/_worker/tasks/results',
      `{"worker_id":"w1","results":[{"job_id":"${jobId}","task_id":"${task.task_id}","data":{"back":9007199254740995}}]}`,
    )
    expect((await app.ended(jobId)).text).toContain('"back":9007199254740995')
  })

  test('what differs below a double is another request', async () => {
    const send = (id: string): ReturnType<TestServer['client']> =>
      app.client('POST', '/api/v1/jobs', `{"blueprint":"echo","idempotency_key":"exact","initial_data":{"id":${id}}}`)
    expect((await send('9007199254740993')).status).toBe(202)
    expect((await send('9007199254740993')).status).toBe(202)
    expect((await send('9007199254740992')).status).toBe(422)
    expect((await send('"9007199254740993"')).status).toBe(422)
  })
})

describe('[H-01] every view shows them as they are', () => {
  const DATA = '{"id":9007199254740993,"text":"\uFDD05"}'

  test('lists, the quarantine and its edit, the history', async () => {
    const { body } = await app.client(
      'POST',
      '/api/v1/jobs',
      `{"blueprint":"fall","initial_data":${DATA},"metadata":${DATA}}`,
    )
    await app.ended(body.job_id)
    const paths = ['jobs', 'jobs?fields=initial_data', `quarantine/${body.job_id}`, `jobs/${body.job_id}/history`]
    for (const path of paths) expect.soft((await app.client('GET', `/api/v1/${path}`)).text, path).toContain(DATA)
    const edit = '{"initial_data":{"mended":9007199254740995,"minus":-0}}'
    expect((await app.client('POST', `/api/v1/jobs/${body.job_id}/retry`, edit)).status).toBe(200)
    expect((await app.ended(body.job_id)).text).toContain('"initial_data":{"mended":9007199254740995,"minus":-0}')
    const found = await app.client('GET', '/api/v1/jobs?q=9007199254740993')
    expect(found.text).not.toContain(body.job_id)
  })

  test('workers, the catalogue and explanations', async () => {
    const worker = `{"worker_id":"w2","supported_skills":[{"name":"rare","properties":${DATA}}],"resources":{"properties":${DATA}}}`
    expect((await app.worker('POST', '/_worker/workers/register', worker)).status).toBe(200)
    for (const path of ['workers', 'workers/w2']) {
      expect.soft((await app.client('GET', `/api/v1/${path}`)).text, path).toContain(`"properties":${DATA}`)
    }
    expect((await app.client('GET', '/api/v1/workers/catalog')).text).toContain(`"properties":${DATA}`)
    const { body } = await app.client('POST', '/api/v1/jobs', { blueprint: 'choosy' })
    await app.client('GET', `/api/v1/jobs/${body.job_id}?wait=10&version=1`)
    const { text } = await app.client('GET', `/api/v1/jobs/${body.job_id}/explain`)
    expect(text).toContain('9007199254740993')
    expect(text).not.toContain('\uFDD0')
  })

  test('webhooks', async () => {
    const bodies: string[] = []
    const receiver = createReceiver((request, reply) => {
      let text = ''
      request.setEncoding('utf8').on('data', (part: string) => (text += part))
      request.on('end', () => {
        bodies.push(text)
        reply.end()
      })
    })
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const address = receiver.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const told = once(receiver, 'request')
    const webhook = `"webhook_url":"http://127.0.0.1:${port}/"`
    const { body } = await app.client(
      'POST',
      '/api/v1/jobs',
      `{"blueprint":"quick","initial_data":${DATA},${webhook},"metadata":${DATA}}`,
    )
    await told
    await expect.poll(() => bodies[0]).toContain(`"metadata":${DATA}`)
    expect(bodies[0]).toContain(body.job_id)
    receiver.close()
  })

  test('events over a socket', async () => {
    await app.register('w3')
    const { body } = await app.client('POST', '/api/v1/jobs', { blueprint: 'echo' })
    const task = (await app.poll('w3')).body
    const socket = new WebSocket(`${app.address.replace('http', 'ws')}/_worker/ws/w3`, {
      headers: { 'x-worker-token': WORKER_TOKEN },
    })
    await once(socket, 'open')
    socket.send(`{"event_type":"seen","worker_id":"w3","target_task_id":"${task.task_id}","payload":${DATA}}`)
    await expect
      .poll(async () => (await app.client('GET', `/api/v1/jobs/${body.job_id}?fields=trail`)).text)
      .toContain('9007199254740993')
    socket.send('{"event_type":"seen","payload":{"a":[NaN]}}')
    const [answer] = (await once(socket, 'message')) as [Buffer]
    expect(answer.toString()).toContain('payload.a[0] is NaN')
    socket.close()
  })
})

describe('[H-01] numbers that cannot be kept are refused at the door, with their place', () => {
  const fields: readonly [string, (value: string) => string, string][] = [
    ['data', (value) => `"initial_data":{"a":[1,${value}]}`, 'initial_data.a[1]'],
    ['metadata', (value) => `"metadata":{"m":${value}}`, 'metadata.m'],
    ['priority', (value) => `"priority":${value}`, 'priority'],
    ['timeouts', (value) => `"result_timeout":${value}`, 'result_timeout'],
  ]
  test.each(fields)('%s', async (_title, field, path) => {
    for (const [value, status] of [
      ['1e400', 422],
      ['-1e400', 422],
      ['NaN', 400],
      ['Infinity', 400],
      ['-Infinity', 400],
    ] as const) {
      const answer = await app.client('POST', '/api/v1/jobs', `{"blueprint":"echo",${field(value)}}`)
      expect(answer).toMatchObject({ status })
      expect(String(answer.body['error'])).toContain(`${path} is ${value}`)
    }
  })

  test('results and events', async () => {
    for (const value of ['NaN', '1e400']) {
      const body = `{"worker_id":"w1","job_id":"a","task_id":"b","data":{"x":${value}}}`
      const answer = await app.worker('POST', '/_worker/tasks/result', body)
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(String(answer.body['error'])).toContain(`data.x is ${value}`)
      const event = await app.worker(
        'POST',
        '/_worker/events',
        `{"worker_id":"w1","event_type":"x","payload":{"y":${value}}}`,
      )
      expect(String(event.body['error'])).toContain(`payload.y is ${value}`)
    }
  })

  test('a number of many digits is a number where the protocol asks for one, and no text where it asks for that', async () => {
    const good = '"priority":-0,"dispatch_timeout":60.00000000000000001,"execution_timeout":1e-400'
    const { body } = await app.client('POST', '/api/v1/jobs', `{"blueprint":"echo",${good}}`)
    expect(body).toMatchObject({ status: 'accepted' })
    for (const field of [
      '"webhook_url":9007199254740993',
      '"idempotency_key":1e-400',
      '"initial_data":9007199254740993',
    ]) {
      expect((await app.client('POST', '/api/v1/jobs', `{"blueprint":"echo",${field}}`)).status).toBe(400)
    }
    const named = await app.client('POST', '/api/v1/jobs/batch', '{"jobs":[{"blueprint":9007199254740993}]}')
    expect(named.body).toMatchObject({ results: [{ code: 'INVALID_REQUEST' }] })
    const beat = await app.worker('PATCH', '/_worker/workers/w1', '{"load":0.10000000000000000001,"status":"idle"}')
    expect(beat.body).toMatchObject({ status: 'ok' })
  })
})
