import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { listIn, startTenantServer, TENANTS } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'
import { AUTOMATION, createAutomation, endedRun } from './automations.fixture.ts'

let app: TenantServer

beforeAll(async () => {
  app = await startTenantServer()
})
afterAll(() => app.close())

const create = (more: object = {}): Promise<string> => createAutomation(app, more)
const ended = (runId: string): Promise<Readonly<Record<string, unknown>>> => endedRun(app, runId)

test('[K-10] [K-11] a run calls the tools of this process, and each step is on record', async () => {
  const id = await create()
  const { status, body } = await app.as('alpha', 'POST', `/api/v1/automations/${id}/run`, { params: { name: 'Bob' } })
  expect({ status, body }).toMatchObject({ status: 202, body: { status: 'started' } })
  const run = await ended(String(body['run_id']))
  expect(run).toMatchObject({
    status: 'succeeded',
    automation_id: id,
    trigger: { kind: 'manual', by: 'alpha' },
    output: { message: 'Hello Bob' },
    steps: [
      { id: 'make', status: 'succeeded', output: { greeting: 'Hello Bob' } },
      { id: 'tell', status: 'succeeded', input: { message: 'Hello Bob' } },
    ],
  })
  const runs = listIn(await app.as('alpha', 'GET', `/api/v1/runs?automation_id=${id}`))
  expect(runs.map((one) => one['id'])).toEqual([body['run_id']])
  expect(listIn(await app.as('alpha', 'GET', '/api/v1/runs')).length).toBeGreaterThan(0)
  expect(listIn(await app.as('beta', 'GET', '/api/v1/runs'))).toEqual([])
})

test('[K-10] [K-17] defect 11: a tool refuses an input that does not fit, and a request into the private network', async () => {
  const wrong = { pipeline: [{ id: 'a', uses: 'log', with: { text: 'x' } }] }
  const refused = await app.as('alpha', 'POST', '/api/v1/automations', { ...AUTOMATION, ...wrong })
  expect(refused.status).toBe(422)
  expect(refused.text).toContain('message')
  const id = await create({ pipeline: [{ id: 'get', uses: 'http.request', with: { url: 'http://127.0.0.1:1/' } }] })
  const { body } = await app.as('alpha', 'POST', `/api/v1/automations/${id}/run`)
  expect(await ended(String(body['run_id']))).toMatchObject({ status: 'failed', steps: [{ status: 'failed' }] })
})

test('[K-02] a change for a revision that is not the present one is refused: If-Match', async () => {
  const id = await create()
  const put = (tag: string): Promise<{ readonly status: number; readonly text: string }> =>
    app.call('PUT', `/api/v1/automations/${id}`, {
      body: AUTOMATION,
      headers: { 'x-client-token': TENANTS.alpha, 'if-match': tag },
    })
  expect((await put('"1"')).status).toBe(200)
  expect((await put('"7"')).status).toBe(412)
  expect((await put('"7"')).text).toContain('STALE_REVISION')
  expect((await put('*')).status).toBe(200)
  expect((await put('banana')).status).toBe(400)
  expect((await app.as('alpha', 'PUT', `/api/v1/automations/${id}?revision=0`, AUTOMATION)).status).toBe(400)
})

test('[K-02] [K-03] an automation says at once when it runs next, in words too; every problem of a wrong one is named', async () => {
  const triggers = [{ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' }]
  const id = await create({ triggers })
  const { body } = await app.as('alpha', 'GET', `/api/v1/automations/${id}`)
  expect(body['next_run_at']).toBeGreaterThan(Date.now() / 1_000)
  expect(JSON.stringify(body['when'])).toContain('Berlin')
  expect(body['definition']).toEqual({ ...AUTOMATION, triggers })
  const preview = await app.as('alpha', 'GET', `/api/v1/automations/${id}/preview?count=3`)
  expect(preview.body['firings']).toHaveLength(3)
  const wrong = { title: 'x', triggers: [{ cron: 'banana' }], pipeline: [{ id: 'a' }], timezone: 'Mars/Base' }
  const refused = await app.as('alpha', 'POST', '/api/v1/automations', wrong)
  expect(refused.status).toBe(422)
  for (const field of ['timezone', 'triggers[0]', 'pipeline[0]']) expect(refused.text).toContain(field)
  const checked = await app.as('alpha', 'POST', '/api/v1/automations/preview', { ...AUTOMATION, triggers })
  expect(checked.body['firings']).toHaveLength(10)
})

test('[K-02] the tag of what was read is what a change is made for', async () => {
  const id = await create({})
  const path = `/api/v1/automations/${id}`
  const read = await app.as('alpha', 'GET', path)
  const tag = read.headers.get('etag') ?? ''
  // A compressed answer has a weak tag.
  expect(tag).toMatch(/^(?:W\/)?"1"$/)
  const changed = await app.as('alpha', 'PUT', path, { ...AUTOMATION, title: 'two' }, { 'if-match': tag })
  expect([changed.status, changed.headers.get('etag')]).toEqual([200, expect.stringContaining('"2"')])
  const late = await app.as('alpha', 'PUT', path, { ...AUTOMATION, title: 'three' }, { 'if-match': tag })
  expect(late.body['code']).toBe('STALE_REVISION')
})

test('[K-02] an owner has one automation for a key, however often and in how many ways at once it is asked for', async () => {
  const body = { ...AUTOMATION, key: 'weekday-briefing' }
  const made = await Promise.all(Array.from({ length: 5 }, () => app.as('alpha', 'POST', '/api/v1/automations', body)))
  expect(made.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201])
  const [id, ...others] = new Set(made.map((one) => one.body['id']))
  expect(others).toEqual([])
  const other = await app.as('alpha', 'POST', '/api/v1/automations', { ...body, title: 'another' })
  expect([other.status, other.text]).toEqual([409, expect.stringContaining(String(id))])
  // Keys of others are others.
  expect((await app.as('beta', 'POST', '/api/v1/automations', body)).status).toBe(201)
  // A key that was given up is free: by another key, by the end, by deletion.
  const path = `/api/v1/automations/${String(id)}`
  expect((await app.as('alpha', 'PUT', path, { ...body, key: 'briefing' })).status).toBe(200)
  const second = await app.as('alpha', 'POST', '/api/v1/automations', body)
  expect(second.status).toBe(201)
  expect((await app.as('alpha', 'PUT', path, body)).status).toBe(409)
  expect((await app.as('alpha', 'POST', `/api/v1/automations/${String(second.body['id'])}/cancel`)).status).toBe(200)
  expect((await app.as('alpha', 'PUT', path, body)).status).toBe(200)
  expect((await app.as('alpha', 'DELETE', path)).status).toBe(204)
  expect((await app.as('alpha', 'POST', '/api/v1/automations', body)).status).toBe(201)
})

test('[K-05] [K-13] snooze, pause, resume and cancel are answered with the automation, and are in the audit log', async () => {
  const id = await create({ triggers: [{ cron: '0 9 * * *' }] })
  const path = `/api/v1/automations/${id}`
  const before = (await app.as('alpha', 'GET', path)).body
  const snoozed = (await app.as('alpha', 'POST', `${path}/snooze`, { seconds: 600, reason: 'later' })).body
  expect(snoozed['next_run_at']).toBe(Number(before['next_run_at']) + 600)
  expect(snoozed['snoozed']).toMatchObject({ by: 'alpha', reason: 'later' })
  expect((await app.as('alpha', 'POST', `${path}/pause`)).body).toMatchObject({ status: 'paused', next_run_at: null })
  expect((await app.as('alpha', 'POST', `${path}/resume`)).body).toMatchObject({ status: 'active' })
  expect((await app.as('alpha', 'POST', `${path}/cancel`)).body).toMatchObject({ status: 'canceled' })
  expect((await app.as('alpha', 'POST', `${path}/resume`)).status).toBe(409)
  const entries = listIn(await app.as('alpha', 'GET', `/api/v1/audit?subject=${id}`))
  expect(entries.map((entry) => entry['action'])).toEqual([
    'automation.canceled',
    'automation.resumed',
    'automation.paused',
    'automation.snoozed',
    'automation.created',
  ])
  const [last] = entries
  const entry = `/api/v1/audit/${String(last?.['id'])}`
  expect((await app.as('alpha', 'GET', entry)).body).toEqual(last)
  expect((await app.as('admin', 'GET', entry)).body).toEqual(last)
  expect((await app.as('beta', 'GET', entry)).body).toMatchObject({ code: 'NOT_FOUND' })
  expect(await app.server.client({ role: 'admin' }).audit.get(String(last?.['id']))).toMatchObject({ subject: id })
  expect((await app.as('alpha', 'DELETE', path)).status).toBe(204)
  expect((await app.as('alpha', 'GET', path)).status).toBe(404)
})

test('[K-04] an event is published once for its key, and starts the automations that listen', async () => {
  const pipeline = [{ id: 'keep', uses: 'transform', with: { value: '${event.payload.ref}' } }]
  const id = await create({ triggers: [{ event: 'github.*' }], pipeline })
  const body = { topic: 'github.push', payload: { ref: 9_007_199_254_740_991 } }
  const headers = { 'idempotency-key': 'delivery-1' }
  const first = await app.as('alpha', 'POST', '/api/v1/automations/events', body, headers)
  const second = await app.as('alpha', 'POST', '/api/v1/automations/events', body, headers)
  expect([first.status, second.body['id']]).toEqual([202, first.body['id']])
  const run = await vi.waitFor(async () => {
    const runs = listIn(await app.as('alpha', 'GET', `/api/v1/runs?automation_id=${id}&status=succeeded`))
    expect(runs).toHaveLength(1)
    return runs[0]
  }, 60_000)
  expect(run).toMatchObject({ output: 9_007_199_254_740_991, trigger: { kind: 'event', event_id: first.body['id'] } })
  const event = await vi.waitFor(async () => {
    const found = (await app.as('alpha', 'GET', `/api/v1/automations/events/${String(first.body['id'])}`)).body
    expect(found['runs']).toHaveLength(1)
    return found
  }, 60_000)
  expect(event['runs']).toMatchObject([{ automation_id: id, outcome: 'started' }])
})

test('[K-11] a run that waits for a person is cancelled, and one that waits for its place too', async () => {
  const id = await create({ pipeline: [{ id: 'ask', approval: { message: 'Go?' } }] })
  const [first, second] = [
    (await app.as('alpha', 'POST', `/api/v1/automations/${id}/run`)).body,
    (await app.as('alpha', 'POST', `/api/v1/automations/${id}/run`)).body,
  ]
  expect([first['status'], second['status']]).toEqual(['started', 'waiting'])
  for (const { run_id: runId } of [second, first]) {
    expect((await app.as('beta', 'POST', `/api/v1/runs/${String(runId)}/cancel`)).status).toBe(404)
    expect((await app.as('alpha', 'POST', `/api/v1/runs/${String(runId)}/cancel`)).status).toBe(204)
  }
  expect(await ended(String(first['run_id']))).toMatchObject({ status: 'canceled' })
  expect((await app.as('alpha', 'GET', `/api/v1/runs/${String(second['run_id'])}`)).status).toBe(404)
})

test('[K-01] clients cannot start the blueprint of runs by themselves', async () => {
  const id = await create()
  for (const blueprint of [`automation/${id}`, 'automation-part']) {
    const { status } = await app.as('alpha', 'POST', '/api/v1/jobs', { blueprint, initial_data: {} })
    expect(status).toBe(404)
  }
})

test('[K-10] the tools and their schemas are listed', async () => {
  const tools = listIn(await app.as('viewer', 'GET', '/api/v1/tools'))
  expect(tools.map((tool) => tool['name'])).toEqual([
    'delay',
    'email.send',
    'event.publish',
    'http.request',
    'job.start',
    'log',
    'transform',
  ])
})

test('[K-02] [K-17] defect 17: every automation of the guide is accepted', async () => {
  const guide = await readFile(new URL('../../../../docs/guide/automations.md', import.meta.url), 'utf8')
  const blocks = [...guide.matchAll(/```json\n(\{[\s\S]*?)```/g)].map(([, text = '']) => text)
  const definitions = blocks.filter((text) => text.includes('"pipeline"'))
  expect(definitions.length).toBeGreaterThan(6)
  for (const text of definitions) {
    const { status, text: answer } = await app.as('alpha', 'POST', '/api/v1/automations/preview', JSON.parse(text))
    expect({ text, status, answer }).toMatchObject({ text, status: 200 })
  }
})

test('[K-06] values are reported over HTTP, and the state of a condition is read there', async () => {
  const id = await create({ triggers: [{ condition: 'output.error_rate > 5', reset: 'output.error_rate < 3' }] })
  const before = listIn(await app.as('alpha', 'GET', `/api/v1/automations/${id}/conditions`))
  expect(before).toMatchObject([{ trigger: 0, state: 'clear', since: null, values: {}, run_id: null }])
  const path = `/api/v1/automations/${id}/observe`
  const raised = listIn(await app.as('alpha', 'POST', path, { values: { error_rate: 7.5 } }))
  expect(raised).toMatchObject([{ state: 'raised', holds: true, values: { 'output.error_rate': 7.5 } }])
  const [{ run_id: runId } = {}] = raised
  expect(await ended(String(runId))).toMatchObject({ status: 'succeeded', trigger: { kind: 'condition', by: 'alpha' } })
  expect(listIn(await app.as('alpha', 'POST', path, { values: { error_rate: 4 } }))).toMatchObject([
    { state: 'raised', holds: false, run_id: runId },
  ])
  expect((await app.as('beta', 'POST', path, { values: {} })).status).toBe(404)
})

test('[K-06] a condition calls a tool of this process', async () => {
  const trigger = { condition: 'output.free < params.least', uses: 'transform', with: { value: { free: 7 } } }
  const id = await create({ triggers: [trigger], params: { name: 'Ada', least: 10 } })
  const state = await vi.waitFor(async () => {
    const [condition] = listIn(await app.as('alpha', 'GET', `/api/v1/automations/${id}/conditions`))
    expect(condition).toMatchObject({ state: 'raised' })
    return condition
  }, 60_000)
  await ended(String(state?.['run_id']))
  const wrong = { condition: 'output.a > 1', uses: 'log', with: { text: 'x' } }
  const refused = await app.as('alpha', 'POST', '/api/v1/automations', { ...AUTOMATION, triggers: [wrong] })
  expect({ status: refused.status, text: refused.text }).toMatchObject({ status: 422 })
  expect(refused.text).toContain('triggers[0].with')
})

test('[K-14] an iCalendar file of many years comes in one request', async () => {
  const more = `DESCRIPTION:${'All hands. '.repeat(25)}`
  const event = (_: unknown, at: number): string =>
    ['BEGIN:VEVENT', `UID:${at}`, `DTSTART;VALUE=DATE:20${10 + (at % 90)}0111`, more, 'END:VEVENT', ''].join('\r\n')
  const ics = `BEGIN:VCALENDAR\r\n${Array.from({ length: 2_000 }, event).join('')}END:VCALENDAR\r\n`
  expect(ics.length).toBeGreaterThan(600_000)
  const put = await app.as('alpha', 'PUT', '/api/v1/calendars/years', { ics })
  expect({ status: put.status, entries: put.body['entries'] }).toMatchObject({
    status: 200,
    entries: { length: 2_000 },
  })
  expect((await app.as('alpha', 'DELETE', '/api/v1/calendars/years')).status).toBe(204)
  const description = 'x'.repeat(300_000)
  const other = await app.as('alpha', 'POST', '/api/v1/automations', { ...AUTOMATION, description })
  expect(other.body['error']).toMatch(/string of more than 262144 bytes/)
})

test('[K-14] calendars over HTTP: kept for their owner, used by automations, shown by the preview', async () => {
  const entries = [{ date: '2099-12-25', label: 'Christmas' }, { weekdays: ['sat', 'sun'] }]
  const put = await app.as('alpha', 'PUT', '/api/v1/calendars/closed', { timezone: 'Europe/Berlin', entries })
  expect(put).toMatchObject({ status: 200, body: { name: 'closed', owner: 'alpha', timezone: 'Europe/Berlin' } })
  expect(put.body['entries']).toEqual([entries[0], { weekdays: [6, 7] }])
  const triggers = [{ rrule: 'FREQ=DAILY;BYHOUR=9', dtstart: '2099-12-23T09:00:00', timezone: 'Europe/Berlin' }]
  const id = await create({ triggers, calendars: { exclude: ['closed'] } })
  const { body } = await app.as('alpha', 'GET', `/api/v1/automations/${id}/preview?count=3`)
  expect(body['firings']).toMatchObject([
    { local: '2099-12-23T09:00:00+01:00' },
    {},
    { local: '2099-12-28T09:00:00+01:00' },
  ])
  expect(body['left_out']).toMatchObject([{ reason: expect.stringContaining('Christmas') as unknown }, {}, {}])
  expect((await app.as('alpha', 'DELETE', '/api/v1/calendars/closed')).status).toBe(409)
  expect((await app.as('beta', 'GET', '/api/v1/calendars/closed')).status).toBe(404)
  expect(listIn(await app.as('beta', 'GET', '/api/v1/calendars'))).toEqual([])
  expect(listIn(await app.as('alpha', 'GET', '/api/v1/calendars'))).toHaveLength(1)
  const missing = { ...AUTOMATION, triggers, calendars: { only: ['nope'] } }
  expect((await app.as('alpha', 'POST', '/api/v1/automations/preview', missing)).status).toBe(422)
})

test('[K-04] one event reaches the jobs that wait for its key and the automations that listen, and is in one log', async () => {
  const id = await create({
    triggers: [{ event: 'order.*', filter: 'event.payload.sum > `5`' }],
    params: { name: 'x' },
  })
  const sent = { topic: 'order.paid', key: 'o1', payload: { sum: 7 }, event_id: 'pay-1' }
  const first = await app.as('alpha', 'POST', '/api/v1/events', sent)
  expect(first).toMatchObject({ status: 202, body: { event_id: 'pay-1', is_new: true } })
  const again = await app.as('alpha', 'POST', '/api/v1/events', sent)
  expect(again.body).toEqual({ status: 'event_accepted', event_id: 'pay-1', is_new: false })
  expect((await app.as('alpha', 'POST', '/api/v1/events', { ...sent, payload: { sum: 8 } })).status).toBe(422)
  // The same id under another key is another event, as ever.
  expect((await app.as('alpha', 'POST', '/api/v1/events', { ...sent, key: 'o2' })).body['is_new']).toBe(true)
  await vi.waitFor(async () => {
    const runs = listIn(await app.as('alpha', 'GET', `/api/v1/runs?automation_id=${id}`))
    expect(runs.map((run) => run['status'])).toEqual(['succeeded', 'succeeded'])
  }, 60_000)
  const log = listIn(await app.as('alpha', 'GET', '/api/v1/automations/events?topic=order.paid'))
  expect(log).toMatchObject([{ payload: { sum: 7 } }, { payload: { sum: 7 } }])
  const open = await app.as('alpha', 'POST', '/api/v1/events', { topic: 'order.sent', payload: {} })
  expect(open).toMatchObject({ status: 202, body: { is_new: true } })
})
