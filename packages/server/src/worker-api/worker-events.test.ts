import { blueprint, newWorkerRecord } from '@impresario/core'
import { LIMITS, readJson } from '@impresario/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { storageGround } from '../../../../test/servers/storage-ground.ts'
import { EventSchemas } from '../worker-protocol/event-schemas.ts'
import { startTestServer } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'

const watch = blueprint('watch', { start: 'look' }, (state) => ({
  look: state.handler((_context, actions) =>
    actions.dispatchTask({
      type: 'watch',
      transitions: { success: 'done' },
      eventTransitions: { alarm: 'done' },
    }),
  ),
  done: state.end(),
}))

let app: TestServer

beforeAll(async () => {
  app = await startTestServer({ blueprints: [watch], settings: { rateLimitingEnabled: false, instanceId: 'here' } })
  await app.register('w1', {
    supported_skills: [
      {
        name: 'watch',
        events_schema: {
          alarm: { type: 'object', required: ['level'], properties: { level: { type: 'integer', maximum: 5 } } },
          remote: { $ref: 'https://example.com/schema.json' },
        },
      },
    ],
  })
})
afterAll(async () => {
  await app.server.stop()
})

async function take(): Promise<Answer['body']> {
  await app.createJob('watch')
  return (await app.poll('w1')).body
}

function send(task: Answer['body'], more: object): Promise<Answer> {
  return app.worker('POST', '/_worker/events', { worker_id: 'w1', target_task_id: task.task_id, ...more })
}

describe('events of a task', () => {
  test.each(['progress', 'odd', 'alarm'])(
    '[E-01] [E-04] %s of a worker that does not hold the task is not accepted',
    async (type) => {
      const task = await take()
      await app.register('w2', { supported_skills: [] })
      const event = { event_type: type, payload: { progress: 0.9 } }
      const foreign = await send(task, { ...event, worker_id: 'w2' })
      expect(foreign).toMatchObject({ status: 200, body: { status: 'error', code: 'WORKER_MISMATCH' } })
      expect((await app.client('GET', `/api/v1/jobs/${task.job_id}`)).body).not.toHaveProperty('progress')
      await app.client('POST', `/api/v1/jobs/${task.job_id}/cancel`)
      const late = await send(task, { ...event, payload: { progress: 0.9, level: 1 } })
      expect(late.body).toMatchObject({ status: 'error', code: 'JOB_CANCELLED' })
      // Hears what to stop, so that the next test does not.
      await app.worker('PATCH', '/_worker/workers/w1', {})
    },
  )

  test('[E-01] an event that the blueprint waits for makes the job leave the task, and its worker is told', async () => {
    const task = await take()
    const answer = await send(task, { event_id: 'e1', event_type: 'alarm', payload: { level: 3 } })
    expect(answer).toMatchObject({ status: 200, body: { status: 'event_accepted' } })
    expect((await app.ended(task.job_id)).body).toMatchObject({ status: 'finished', state_history: { level: 3 } })
    const beat = await app.worker('PATCH', '/_worker/workers/w1', { status: 'busy', current_tasks: [task.task_id] })
    expect(beat.body).toMatchObject({ cancel_task_ids: [task.task_id] })
    const late = await app.worker('POST', '/_worker/tasks/result', {
      job_id: task.job_id,
      task_id: task.task_id,
      worker_id: 'w1',
    })
    expect(late.body).toMatchObject({ status: 'ignored' })
  })

  test('[E-01] an event that nobody waits for is noted, and told once under the same id', async () => {
    const task = await take()
    const event = { event_id: 'e2', event_type: 'curious', payload: { what: 'a bird' } }
    for (let times = 0; times < 2; times += 1) {
      expect((await send(task, event)).body).toEqual({ status: 'event_accepted' })
    }
    const { body } = await app.client('GET', `/api/v1/jobs/${task.job_id}/history`)
    expect(JSON.stringify(body).match(/worker_event:curious/g)).toHaveLength(1)
    await app.client('POST', `/api/v1/jobs/${task.job_id}/cancel`)
    expect((await send(task, { ...event, event_id: 'e3' })).body).toMatchObject({ status: 'error' })
  })

  test('[E-01] what is wrong with an event is said with status 200', async () => {
    const task = await take()
    const wrong = [
      { event_type: 5 },
      {},
      { event_type: 'progress' },
      { event_type: 'progress', payload: { progress: 'half' } },
      { event_type: 'x'.repeat(LIMITS.identifierCharsMax) },
      { event_type: 'alarm', payload: {} },
      { event_type: 'alarm', payload: { level: 6 } },
      { event_type: 'remote', payload: {} },
    ]
    for (const event of wrong) {
      const { status, body } = await send(task, event)
      expect({ status, said: body['status'] }).toEqual({ status: 200, said: 'error' })
      expect(body['message']).toBeTypeOf('string')
    }
    expect((await send(task, { event_type: 'alarm', payload: { level: 6 } })).body).toEqual({
      status: 'error',
      code: 'CONTRACT_VIOLATION_ERROR',
      message: 'payload/level must be <= 5',
    })
    await app.client('POST', `/api/v1/jobs/${task.job_id}/cancel`)
  })

  test('[E-01] an event that came through others is marked, and does not go in circles', async () => {
    const task = await take()
    const event = { event_type: 'curious', bubbling_chain: ['there'] }
    expect((await send(task, event)).body).toEqual({ status: 'event_accepted', bubbling_chain: ['there', 'here'] })
    const circle = await send(task, { ...event, bubbling_chain: ['there', 'here'] })
    expect(circle.body).toMatchObject({ status: 'error' })
    await app.client('POST', `/api/v1/jobs/${task.job_id}/cancel`)
  })

  test('[E-01] an event about no task is taken; it concerns no job', async () => {
    const answer = await app.worker('POST', '/_worker/events', { worker_id: 'w1', event_type: 'awake' })
    expect(answer.body).toEqual({ status: 'event_accepted' })
  })
})

describe('what workers declare about their events', () => {
  const declaring = (schema: object) =>
    newWorkerRecord({ id: 'w', skillInfo: [{ name: 'a', events_schema: { e: schema as never } }] }, 1)
  const verdict = (schema: object, payload: object) =>
    new EventSchemas().check(declaring(schema), 'e', payload as never).isValid

  test('[E-01] a schema that is too long, has too many references or refers outside accepts nothing', () => {
    expect(verdict({ description: 'x'.repeat(LIMITS.eventSchemaCharsMax) }, {})).toBe(false)
    const many = Array.from({ length: LIMITS.eventSchemaRefsMax + 1 }, () => ({ $ref: '#/$defs/a' }))
    expect(verdict({ $defs: { a: {} }, allOf: many }, {})).toBe(false)
    expect(verdict({ $ref: 'https://example.com/x.json' }, {})).toBe(false)
    expect(verdict({ type: 'nonsense' }, {})).toBe(false)
  })

  test('[E-01] a number of many digits is a number, and a whole one is an integer', () => {
    const payload = readJson(String.raw`{"id":9007199254740993,"price":0.30000000000000001,"text":"\ufdd05"}`) as object
    const schema = (id: object, price: object, text: object): object => ({ properties: { id, price, text } })
    const text = { type: 'string', maxLength: 2 }
    expect(verdict(schema({ type: 'integer', minimum: 5 }, { type: 'number', maximum: 1 }, text), payload)).toBe(true)
    expect(verdict(schema({ type: 'string' }, {}, {}), payload)).toBe(false)
    expect(verdict(schema({}, { type: 'integer' }, {}), payload)).toBe(false)
    expect(verdict(schema({ maximum: 5 }, {}, {}), payload)).toBe(false)
  })

  test('[E-01] a schema that refers to itself without end is a wrong one', () => {
    expect(verdict({ $ref: '#' }, {})).toBe(false)
    expect(verdict({ allOf: [{ $ref: '#' }] }, {})).toBe(false)
  })

  test('[E-01] [H-08] a schema that goes in circles, or is asynchronous, can neither block nor end the process', () => {
    const twice = { required: ['a'], properties: { a: { anyOf: [{ $ref: '#' }, { $ref: '#' }] } } }
    let deep = {}
    for (let level = 0; level < 60; level += 1) deep = { a: deep }
    expect(verdict(twice, deep)).toBe(false)
    const around = {
      $ref: '#/$defs/a~1b',
      $defs: { 'a/b': { items: { $ref: '#/$defs/c' } }, c: { $ref: '#/$defs/a~1b' } },
    }
    expect(verdict(around, {})).toBe(false)
    expect(verdict({ $defs: { a: { $id: '#a', not: { $ref: '#a' } } }, $ref: '#a' }, {})).toBe(false)
    expect(
      verdict({ $defs: { a: { type: 'object' } }, allOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }] }, {}),
    ).toBe(true)
    // Were it compiled as it is, the refusal would be a promise that nobody waits for: the end of the process.
    expect(verdict({ $async: true, required: ['x'] }, {})).toBe(false)
    expect(verdict({ $async: true, required: ['x'] }, { x: 1 })).toBe(true)
    expect(verdict({ properties: { a: { $async: true, required: ['x'] } } }, { a: {} })).toBe(false)
  })

  test('[E-01] [H-08] a long event is not held against a long schema', () => {
    const allOf = Array.from({ length: 100 }, () => ({ properties: { list: { items: { type: 'number' } } } }))
    const list = Array.from({ length: 100_000 }, () => 0)
    expect(verdict({ allOf }, { list: list.slice(0, 100) })).toBe(true)
    expect(verdict({ allOf }, { list })).toBe(false)
    expect(verdict({ properties: { list: { items: { type: 'number' } } } }, { list })).toBe(true)
  })

  test('[E-01] keywords whose cost could explode are left out', () => {
    expect(verdict({ properties: { a: { pattern: '^(a+)+$' } } }, { a: `${'a'.repeat(40)}!` })).toBe(true)
    expect(verdict({ properties: { a: { uniqueItems: true } } }, { a: [1, 1] })).toBe(true)
  })

  test('[E-01] schemas mean what they mean in the SDK, and those of older drafts what they meant there', () => {
    const pair = { properties: { at: { prefixItems: [{ type: 'number' }], items: false } } }
    expect([verdict(pair, { at: [1] }), verdict(pair, { at: [1, 2] }), verdict(pair, { at: ['x'] })]).toEqual([
      true,
      false,
      false,
    ])
    const older = { properties: { at: { items: [{ type: 'number' }], additionalItems: false } } }
    expect([verdict(older, { at: [1] }), verdict(older, { at: [1, 2] })]).toEqual([true, false])
  })

  test('[E-01] of several skills with the same event, one that fits is enough', () => {
    const skillInfo = [
      { name: 'a', events_schema: { e: { required: ['x'] } } },
      { name: 'b', events_schema: { e: { required: ['y'] } } },
    ]
    const worker = newWorkerRecord({ id: 'w', skillInfo }, 1)
    const schemas = new EventSchemas()
    expect(schemas.check(worker, 'e', { y: 1 }).isValid).toBe(true)
    expect(schemas.check(worker, 'e', { z: 1 }).isValid).toBe(false)
    expect(schemas.check(worker, 'constructor', {}).isValid).toBe(true)
    expect(schemas.check(undefined, 'e', {}).isValid).toBe(true)
  })

  test('[E-01] [H-08] an event that skills declare in many different ways is refused; the same way counts once', () => {
    const info = (count: number, isSame: boolean) =>
      Array.from({ length: count }, (_, at) => ({
        name: `s${at}`,
        events_schema: { e: { minProperties: isSame ? 0 : at } },
      }))
    const schemas = new EventSchemas()
    const most = LIMITS.eventSchemasOfTypeMax
    const check = (skillInfo: never) => schemas.check(newWorkerRecord({ id: 'w', skillInfo }, 1), 'e', {}).isValid
    expect(check(info(most, false) as never)).toBe(true)
    expect(check(info(most + 1, false) as never)).toBe(false)
    expect(check(info(most + 1, true) as never)).toBe(true)
  })

  // Four seconds in which no storage takes part: all of them once, and a few elsewhere.
  test('[E-01] only so many are kept', () => {
    const schemas = new EventSchemas()
    const most = storageGround().backend === 'memory' ? LIMITS.eventSchemasMax + 20 : 20
    for (let count = 0; count < most; count += 1) {
      expect(schemas.check(declaring({ maxProperties: count }), 'e', {}).isValid).toBe(true)
    }
  })
})
