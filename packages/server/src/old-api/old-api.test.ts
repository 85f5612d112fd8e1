import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { containing, listIn, SOME_NUMBER, SOME_TEXT, startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'
import { oldClient, TASK, TIME, UUID } from './old-client.fixture.ts'
import type { OldClient } from './old-client.fixture.ts'

/*
 * Clients of the old automation system, as they are: paths at the root with and without a slash at the end, a bearer token, the
 * bodies and answers that they know.
 */

let app: TenantServer
let alpha: OldClient
let admin: OldClient

beforeAll(async () => {
  app = await startTenantServer()
  alpha = oldClient(app, 'alpha')
  admin = oldClient(app, 'admin')
})
afterAll(() => app.close())

const FIELDS = {
  priority: 5,
  dedupe_key: null,
  dedupe_window_seconds: 0,
  max_retries: 3,
  backoff_strategy: 'exponential_jitter',
  concurrency_key: null,
}

describe('tasks', () => {
  test('[K-17] defect 4: a task is created, read, listed and changed in the shape that clients know, with and without the slash', async () => {
    const payload = { ...TASK.payload, note: 'ours' }
    const made = await alpha.call('POST', '/tasks', { ...TASK, payload })
    expect(made).toMatchObject({ status: 201 })
    const id = String(made.body['id'])
    const row = { ...TASK, ...FIELDS, payload, status: 'active' }
    expect(made.body).toEqual({ id: UUID, ...row, created_by: UUID, created_at: TIME })
    expect(made.headers.get('x-request-id')).toMatch(/^req-[\da-f]{8}$/)
    for (const path of [`/tasks/${id}`, `/tasks/${id}/`]) {
      expect((await alpha.call('GET', path)).body).toEqual(made.body)
    }
    const changes = { title: 'Greet all', priority: 1, schedule_kind: 'event', schedule_expr: 'github.push' }
    const changed = await alpha.call('PUT', `/tasks/${id}`, { ...changes, concurrency_key: 'one' })
    expect(changed.body).toEqual({ ...made.body, ...changes, concurrency_key: 'one' })
    expect((await alpha.call('PUT', `/tasks/${id}`, { status: 'paused' })).body).toMatchObject({ status: 'paused' })
    const page = await alpha.call('GET', '/tasks/?status=paused&limit=1')
    expect(page.body).toMatchObject({ items: [{ id }], total: 1, limit: 1, offset: 0, has_more: false })
    const events = await alpha.call('GET', '/tasks?schedule_kind=event')
    expect(events.body).toMatchObject({ items: [{ id }], total: 1 })
    const ours = await app.as('alpha', 'GET', `/api/v1/automations/${id}`)
    expect(ours.body).toMatchObject({ title: 'Greet all', owner: 'alpha', status: 'paused' })
  })

  test('[K-17] lists go by offset, newest first', async () => {
    const ids = [await alpha.create(), await alpha.create(), await alpha.create()]
    const of = async (query: string): Promise<readonly unknown[]> => {
      const { body } = await alpha.call('GET', `/tasks?status=active&${query}`)
      return [(body['items'] as { id: string }[]).map(({ id }) => id), body['has_more']]
    }
    expect(await of('limit=2')).toEqual([[ids[2], ids[1]], true])
    expect(await of('limit=1&offset=2')).toEqual([[ids[0]], false])
    expect((await alpha.call('GET', '/tasks?limit=201')).status).toBe(422)
    expect((await oldClient(app, 'beta').call('GET', '/tasks')).body).toMatchObject({ items: [], total: 0 })
  })

  test('[K-17] a task that names what only an automation has keeps it when an old client changes something else', async () => {
    const triggers = [{ event: 'a.b', filter: 'event.payload.x > 1' }, { cron: '0 9 * * *' }]
    const definition = { title: 'Both', triggers, misfire: 'skip', pipeline: [] }
    const made = await app.as('alpha', 'POST', '/api/v1/automations', definition)
    const id = String(made.body['id'])
    const shown = await alpha.call('GET', `/tasks/${id}`)
    expect(shown.body).toMatchObject({ schedule_kind: 'event', schedule_expr: 'a.b', payload: { pipeline: [] } })
    expect((await alpha.call('PUT', `/tasks/${id}`, { title: 'New', max_retries: 1 })).status).toBe(200)
    const after = await app.as('alpha', 'GET', `/api/v1/automations/${id}`)
    expect(after.body['definition']).toMatchObject({ ...definition, title: 'New', retry: { max_retries: 1 } })
  })

  test('[K-17] one active task of an agent has a dedupe key; it is free again when that one is canceled', async () => {
    const first = await alpha.create({ dedupe_key: 'daily' })
    expect((await alpha.call('GET', `/tasks/${first}`)).body).toMatchObject({ dedupe_key: 'daily' })
    const second = await alpha.call('POST', '/tasks', { ...TASK, dedupe_key: 'daily' })
    expect(second).toMatchObject({ status: 400, body: { error: 'bad_request', message: containing('dedupe_key') } })
    await oldClient(app, 'beta').create({ dedupe_key: 'daily' })
    await alpha.call('POST', `/tasks/${first}/cancel`)
    await alpha.create({ dedupe_key: 'daily' })
  })
})

describe('runs', () => {
  test('[K-17] defect 3: every run is on record, with what the pipeline had and the result of each step', async () => {
    const id = await alpha.create()
    expect((await alpha.call('GET', `/runs/task/${id}/latest`)).text).toBe('null')
    const now = await alpha.call('POST', `/tasks/${id}/run_now/`)
    expect(now).toMatchObject({ status: 200, body: { success: true, message: SOME_TEXT } })
    expect(now.body['details']).toEqual({ task_id: id, due_work_id: SOME_NUMBER, run_id: UUID })
    const run = await alpha.ended(id)
    expect(run).toMatchObject({ task_id: id, success: true, error: null, attempt: 1, started_at: TIME })
    expect(run['output']).toMatchObject({
      now: TIME,
      params: TASK.payload.params,
      steps: { made: { greeting: 'Hello Ada' } },
      _task_id: id,
      _task_title: 'Greet',
      _execution_summary: { success: true, total_steps: 3, executed_steps: 2, skipped_steps: 1 },
      _steps: [
        { id: 'make', status: 'succeeded', output: { greeting: 'Hello Ada' } },
        { id: 'skip', status: 'skipped' },
        { id: 'step_2', status: 'succeeded' },
      ],
    })
    const keys = ['id', 'task_id', 'lease_owner', 'leased_until', 'started_at', 'finished_at', 'success', 'error']
    expect(Object.keys(run)).toEqual([...keys, 'attempt', 'output', 'created_at'])
    expect((await alpha.call('GET', `/runs/${String(run['id'])}/`)).body).toEqual(run)
    const list = await alpha.call('GET', `/runs/?task_id=${id}&success=true`)
    expect(list.body).toEqual({ items: [run], total: 1, limit: 50, offset: 0, has_more: false })
    expect((await alpha.call('GET', `/runs?task_id=${id}&success=false`)).body).toMatchObject({ items: [], total: 0 })
    const later = encodeURIComponent(String(run['finished_at']))
    expect((await alpha.call('GET', `/runs?task_id=${id}&end_time=${later}`)).body).toMatchObject({ total: 1 })
    expect((await oldClient(app, 'beta').call('GET', '/runs')).body).toMatchObject({ items: [], total: 0 })
  })

  test('[K-17] a run that fails says so: its error is shown where it is asked for, and statistics count it', async () => {
    const pipeline = [{ id: 'get', uses: 'http.request', with: { url: 'http://127.0.0.1:1/' } }]
    const id = await alpha.create({ payload: { pipeline }, max_retries: 0 })
    await alpha.call('POST', `/tasks/${id}/run_now`)
    const run = await alpha.ended(id)
    expect(run).toMatchObject({ success: false, error: containing('https://') })
    expect(run['output']).toMatchObject({ _execution_summary: { success: false, failed_step_index: 0 } })
    const hidden = await alpha.call('GET', `/runs?task_id=${id}&success=false`)
    expect(hidden.body).toMatchObject({ total: 1, items: [{ success: false, error: containing('include_errors') }] })
    expect(hidden.text).not.toContain('must begin with https')
    const open = await alpha.call('GET', `/runs?task_id=${id}&include_errors=true`)
    expect(open.body).toMatchObject({ items: [{ error: run['error'] }] })
    const stats = await alpha.call('GET', `/runs/task/${id}/stats?days=1`)
    expect(stats.body).toEqual({
      task_id: id,
      period_days: 1,
      total_runs: 1,
      successful_runs: 0,
      failed_runs: 1,
      success_rate: 0,
      failure_rate: 1,
      avg_execution_time_seconds: SOME_NUMBER,
      last_run: TIME,
      last_success: null,
      last_failure: TIME,
    })
    const summary = await alpha.call('GET', '/runs/stats/summary')
    expect(summary.body).toMatchObject({ period_days: 7, failed_runs: 1, runs_per_day: SOME_NUMBER })
    expect((await oldClient(app, 'beta').call('GET', `/runs/task/${id}/stats`)).status).toBe(404)
  })
})

describe('events', () => {
  test('[K-17] defect 14: an event starts the tasks of its topic, and its payload reaches the pipeline', async () => {
    const pipeline = [{ uses: 'transform', with: { value: '${event.payload.ref}' }, save_as: 'ref' }]
    const id = await alpha.create({ schedule_kind: 'event', schedule_expr: 'github.push', payload: { pipeline } })
    const topics = await alpha.call('GET', '/events/topics')
    const { total_topics: total, topics: listed } = topics.body
    expect(listed).toContainEqual({ topic: 'github.push', active_tasks: 1, task_ids: [id] })
    expect(listed).toHaveLength(Number(total))
    const sent = await alpha.call('POST', '/events/', { topic: 'github.push', payload: { ref: 'main' } })
    expect(sent).toMatchObject({ status: 202, body: { success: true } })
    expect(sent.body['details']).toEqual({
      event_id: UUID,
      stream_id: expect.stringMatching(/^\d+-0$/) as unknown,
      topic: 'github.push',
      triggered_tasks: [id],
      published_at: TIME,
    })
    expect(await alpha.ended(id)).toMatchObject({ success: true, output: { steps: { ref: 'main' } } })
    const recent = await alpha.call('GET', '/events/stream/recent?count=1')
    const { event_id: eventId, stream_id: streamId } = sent.body['details'] as Record<string, string>
    expect(recent.body).toEqual({
      total_events: 1,
      events: [
        {
          event_id: eventId,
          topic: 'github.push',
          payload: { ref: 'main' },
          source_agent_id: UUID,
          published_at: TIME,
          published_by: UUID,
          stream_id: streamId,
        },
      ],
    })
  })

  test('[K-17] events are cleaned up by their age; each agent its own', async () => {
    const beta = oldClient(app, 'beta')
    await beta.call('POST', '/events', { topic: 'a.b', payload: {} })
    const kept = await beta.call('DELETE', '/events/stream/cleanup')
    expect(kept.body).toEqual({ deleted_count: 0, max_age_hours: 24, cutoff_timestamp: TIME })
    await expect
      .poll(async () => (await beta.call('DELETE', '/events/stream/cleanup?max_age_hours=0')).body, { timeout: 60_000 })
      .toMatchObject({ deleted_count: 1 })
    expect((await beta.call('GET', '/events/stream/recent')).body).toEqual({ total_events: 0, events: [] })
    const audit = listIn(await app.as('beta', 'GET', '/api/v1/audit?action=events.removed'))
    expect(audit).toMatchObject([{ actor: 'beta', details: { count: 1 } }])
  })

  test('[K-17] an admin speaks for an agent, and nobody else does', async () => {
    const made = await admin.call('POST', '/agents', { name: 'listener', scopes: ['tasks:read', 'tasks:create'] })
    const agent = String(made.body['id'])
    const body = { ...TASK, schedule_kind: 'event', schedule_expr: 'x.y', created_by: agent }
    const task = await admin.call('POST', '/tasks', body)
    expect(task).toMatchObject({ status: 201, body: { created_by: agent } })
    const said = { topic: 'x.y', payload: {}, source_agent_id: agent }
    expect((await admin.call('POST', '/events', said)).body).toMatchObject({
      details: { triggered_tasks: [task.body['id']] },
    })
    expect((await admin.call('GET', `/tasks?created_by=${agent}`)).body).toMatchObject({ total: 1 })
    for (const path of ['/tasks', '/events']) {
      expect((await alpha.call('POST', path, { ...body, ...said })).status).toBe(403)
      const unknown = '11111111-1111-4111-8111-111111111111'
      const ghost = { ...body, ...said, created_by: unknown, source_agent_id: unknown }
      expect((await admin.call('POST', path, ghost)).status).toBe(400)
    }
    const system = '00000000-0000-0000-0000-000000000001'
    expect((await admin.call('POST', '/tasks', { ...TASK, created_by: system })).status).toBe(201)
    expect((await alpha.call('POST', '/tasks', { ...TASK, created_by: system })).status).toBe(403)
    expect((await app.call('GET', '/tasks', { headers: { authorization: `Bearer ${system}` } })).status).toBe(401)
  })
})

describe('agents', () => {
  test('[K-17] agents are created, listed, changed and deleted in the shape that clients know', async () => {
    const given = {
      name: 'claude-assistant',
      scopes: ['tasks:read', 'notify'],
      webhook_url: 'https://example.com/hook',
    }
    const made = await admin.call('POST', '/agents/', given)
    expect(made).toMatchObject({ status: 201 })
    const id = String(made.body['id'])
    expect(made.body).toEqual({ id: UUID, ...given, created_at: TIME })
    expect((await admin.call('POST', '/agents', given)).status).toBe(400)
    expect(listIn(await admin.call('GET', '/agents/?name_filter=CLAUDE&scope_filter=notify'))).toEqual([made.body])
    expect(listIn(await admin.call('GET', '/agents?scope_filter=other'))).toEqual([])
    const changed = await admin.call('PUT', `/agents/${id}`, { scopes: ['tasks:create'] })
    expect(changed.body).toEqual({ ...made.body, scopes: ['tasks:create'] })
    expect((await admin.call('GET', `/agents/${id}/`)).body).toEqual(changed.body)
    expect((await alpha.call('GET', `/agents/${id}`)).status).toBe(403)
    expect((await admin.call('DELETE', `/agents/${id}`)).body).toMatchObject({
      success: true,
      details: { agent_id: id },
    })
    expect((await admin.call('GET', `/agents/${id}`)).status).toBe(404)
  })
})
