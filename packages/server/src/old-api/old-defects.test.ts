import { createWorker } from '@impresario/worker'
import type { JsonObject } from '@impresario/protocol'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { containing, listIn, SOME_TEXT, startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'
import { oldClient, TASK, TIME } from './old-client.fixture.ts'
import type { OldClient } from './old-client.fixture.ts'
import { WORKER_TOKEN } from '../server.fixture.ts'
import { schedulerCheck } from './scheduler-check.ts'

/* Defects of the old system, by the numbers that they have in its description: we do not have them. */

let app: TenantServer
let alpha: OldClient

beforeAll(async () => {
  app = await startTenantServer()
  alpha = oldClient(app, 'alpha')
})
afterAll(() => app.close())

type Tasks = Readonly<Record<string, (params: { readonly name?: string }) => Promise<JsonObject>>>

/** Runs one worker, which does so many tasks at a time, while `work` does. */
async function withWorker(concurrency: number, tasks: Tasks, work: () => Promise<void>): Promise<void> {
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  const options = { url: app.address, token: WORKER_TOKEN, concurrency, shutdownMs: 0, log }
  const worker = createWorker({ ...options, id: `w-${Object.keys(tasks).join('-')}` })
  for (const [type, act] of Object.entries(tasks)) {
    worker.task(type, (params: { readonly name?: string }) => act(params))
  }
  await worker.start()
  try {
    await work()
  } finally {
    await worker.stop()
  }
}

interface Firing {
  readonly at: number
  readonly local: string
}

/** When a task runs, as our own interface tells it. */
async function firingsOf(more: object, count: number): Promise<{ firings: readonly Firing[]; isComplete: unknown }> {
  const id = await alpha.create(more)
  const { body } = await app.as('alpha', 'GET', `/api/v1/automations/${id}/preview?count=${count}`)
  return { firings: body['firings'] as readonly Firing[], isComplete: body['is_complete'] }
}

const nextRunAt = async (id: string): Promise<number> =>
  Number((await app.as('alpha', 'GET', `/api/v1/automations/${id}`)).body['next_run_at'])
const hourIn = (zone: string, { at }: Firing): string =>
  new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit' }).format(at * 1_000)
const dayIn = (zone: string, { at }: Firing): string =>
  new Intl.DateTimeFormat('en-GB', { timeZone: zone, weekday: 'short' }).format(at * 1_000)

describe('times', () => {
  test('[K-17] defect 2: a task with a time is scheduled while the server runs, and runs when its time has come', async () => {
    for (const [kind, expression] of [
      ['cron', '*/5 * * * *'],
      ['rrule', 'RRULE:FREQ=DAILY;BYHOUR=9'],
    ]) {
      const id = await alpha.create({ schedule_kind: kind, schedule_expr: expression })
      expect(await nextRunAt(id)).toBeGreaterThan(Date.now() / 1_000)
    }
    const at = new Date(Date.now() + 1_500).toISOString()
    const id = await alpha.create({ schedule_kind: 'once', schedule_expr: at })
    expect((await alpha.call('GET', `/tasks/${id}`)).body).toMatchObject({ schedule_expr: at })
    expect(await alpha.ended(id)).toMatchObject({ success: true, output: { event: { scheduled_for: SOME_TEXT } } })
  })

  test('[K-17] defect 6: snooze moves the run that stands in the queue, and says how many it moved', async () => {
    const id = await alpha.create()
    const before = await nextRunAt(id)
    const snoozed = await alpha.call('POST', `/tasks/${id}/snooze`, { delay_seconds: 600, reason: 'holiday' })
    expect(snoozed).toMatchObject({ status: 200, body: { success: true } })
    expect(snoozed.body['details']).toEqual({ task_id: id, delay_seconds: 600, affected_work_items: 1 })
    expect(await nextRunAt(id)).toBe(before + 600)
    const audit = listIn(await app.as('alpha', 'GET', `/api/v1/audit?subject=${id}&action=automation.snoozed`))
    expect(audit).toMatchObject([{ actor: 'alpha', details: { reason: 'holiday' } }])
    const event = await alpha.create({ schedule_kind: 'event', schedule_expr: 'a.b' })
    const nothing = await alpha.call('POST', `/tasks/${event}/snooze`, { delay_seconds: 1 })
    expect(nothing).toMatchObject({ status: 200, body: { details: { affected_work_items: 0 } } })
    expect((await alpha.call('POST', `/tasks/${id}/snooze`, { delay_seconds: 604_801 })).status).toBe(422)
    await alpha.call('POST', `/tasks/${id}/pause`)
    expect((await alpha.call('POST', `/tasks/${id}/snooze`, { delay_seconds: 1 })).status).toBe(400)
  })

  test('[K-17] defect 7: 1-5 of cron is Monday to Friday', async () => {
    const { firings } = await firingsOf({ schedule_expr: '0 9 * * 1-5' }, 10)
    const days = new Set(firings.map((one) => dayIn('Europe/Chisinau', one)))
    expect([...days].toSorted()).toEqual(['Fri', 'Mon', 'Thu', 'Tue', 'Wed'])
  })

  test('[K-17] defect 8: a rule at nine is at nine on both sides of a clock change', async () => {
    const rule = { schedule_kind: 'rrule', schedule_expr: 'FREQ=WEEKLY;BYHOUR=9', timezone: 'Europe/Berlin' }
    const { firings } = await firingsOf(rule, 100)
    expect(firings).toHaveLength(100)
    expect(new Set(firings.map((one) => hourIn('Europe/Berlin', one)))).toEqual(new Set(['09:00']))
    expect(new Set(firings.map((one) => hourIn('UTC', one)))).toEqual(new Set(['07:00', '08:00']))
  })

  test('[K-17] defect 9: COUNT comes to its end, and INTERVAL keeps its phase', async () => {
    const rule = (schedule_expr: string): object => ({ schedule_kind: 'rrule', schedule_expr, timezone: 'UTC' })
    const counted = await firingsOf(rule('FREQ=DAILY;COUNT=2;BYHOUR=9'), 10)
    expect(counted.isComplete).toBe(true)
    expect(counted.firings.length).toBeLessThanOrEqual(2)
    const id = await alpha.create(rule('FREQ=DAILY;INTERVAL=2;BYHOUR=9'))
    const first = await nextRunAt(id)
    await alpha.call('PUT', `/tasks/${id}`, { title: 'Another title' })
    await alpha.call('POST', `/tasks/${id}/pause`)
    await alpha.call('POST', `/tasks/${id}/resume`)
    expect(await nextRunAt(id)).toBe(first)
    const { firings } = await firingsOf(rule('FREQ=DAILY;INTERVAL=2;BYHOUR=9'), 5)
    const gaps = firings.slice(1).map(({ at }, index) => at - (firings[index]?.at ?? 0))
    expect(new Set(gaps)).toEqual(new Set([2 * 86_400]))
  })

  test('[K-17] defect 20: every zone that exists is taken, UTC too, and the default is the one that is documented', async () => {
    for (const timezone of ['UTC', 'America/Argentina/Buenos_Aires', 'Etc/GMT+2']) {
      const id = await alpha.create({ timezone })
      expect((await alpha.call('GET', `/tasks/${id}`)).body).toMatchObject({ timezone })
    }
    const { timezone: _, ...task } = TASK
    expect((await alpha.call('POST', '/tasks', task)).body).toMatchObject({ timezone: 'Europe/Chisinau' })
    const wrong = await alpha.call('POST', '/tasks', { ...TASK, timezone: 'Mars/Base' })
    expect(wrong).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'timezone'] }] } })
  })
})

describe('answers', () => {
  test('[K-17] defect 5: every refusal has its own status, and an envelope that says why', async () => {
    const id = await alpha.create()
    await alpha.call('POST', `/tasks/${id}/pause`)
    const refusals = [
      [await app.call('GET', '/tasks'), 401, 'unauthorized'],
      [await oldClient(app, { token: 'wrong' }).call('GET', '/tasks/'), 401, 'unauthorized'],
      [await oldClient(app, 'viewer').call('POST', '/tasks', TASK), 403, 'forbidden'],
      [await alpha.call('GET', '/tasks/no-such-task'), 404, 'not_found'],
      [await alpha.call('GET', '/runs/no-such-run'), 404, 'not_found'],
      [await oldClient(app, 'beta').call('GET', `/tasks/${id}`), 404, 'not_found'],
      [await alpha.call('POST', `/tasks/${id}/run_now`), 400, 'bad_request'],
    ] as const
    expect(refusals[0][0].body['message']).toContain('Authorization: Bearer')
    for (const [answer, status, error] of refusals) {
      expect({ ...answer.body, status: answer.status }).toEqual({
        status,
        error,
        message: SOME_TEXT,
        details: { code: SOME_TEXT },
        request_id: answer.headers.get('x-request-id'),
        timestamp: TIME,
      })
      expect(answer.headers.get('x-request-id')).toMatch(/^req-[\da-f]{8}$/)
    }
  })

  test.each<readonly [string, object, readonly (string | number)[]]>([
    ['no title', { title: undefined }, ['body', 'title']],
    ['a kind that is none', { schedule_kind: 'banana' }, ['body', 'schedule_kind']],
    ['no expression', { schedule_expr: null }, ['body', 'schedule_expr']],
    ['a wrong cron', { schedule_expr: 'banana' }, ['body', 'schedule_expr']],
    ['a wrong rule', { schedule_kind: 'rrule', schedule_expr: 'FREQ=NEVER' }, ['body', 'schedule_expr']],
    ['a wrong time', { schedule_kind: 'once', schedule_expr: 'tomorrow' }, ['body', 'schedule_expr']],
    ['a wrong topic', { schedule_kind: 'event', schedule_expr: 'a b' }, ['body', 'schedule_expr']],
    ['no pipeline', { payload: {} }, ['body', 'payload', 'pipeline']],
    ['a step without a tool', { payload: { pipeline: [{ id: 'x' }] } }, ['body', 'payload', 'pipeline', 0, 'uses']],
    [
      'a tool that is not there',
      { payload: { pipeline: [{ id: 'x', uses: 'telegram.send' }] } },
      ['body', 'payload', 'pipeline', 0, 'uses'],
    ],
    ['a priority of ten', { priority: 10 }, ['body', 'priority']],
  ])('[K-17] defect 5: %s is refused with 422 and its place, and nothing is stored', async (_name, more, loc) => {
    const refused = await alpha.call('POST', '/tasks', { ...TASK, title: 'Refused', ...more })
    expect(refused).toMatchObject({ status: 422 })
    expect(refused.body['detail']).toContainEqual({ loc, msg: SOME_TEXT, type: SOME_TEXT })
    expect(listIn(await app.as('alpha', 'GET', '/api/v1/automations?search=Refused'))).toEqual([])
  })

  test('[K-17] defect 5: a body that is no JSON, and a query that is wrong, are refused with 422', async () => {
    const broken = await alpha.call('POST', '/tasks', '{"title": ')
    expect(broken).toMatchObject({ status: 422, body: { detail: [{ type: 'json_invalid' }] } })
    for (const path of [
      '/tasks?schedule_kind=banana',
      '/runs?limit=0',
      '/runs?start_time=x',
      '/runs/stats/summary?days=0',
    ]) {
      const refused = await alpha.call('GET', path)
      expect(refused).toMatchObject({ status: 422, body: { detail: [{ loc: ['query', SOME_TEXT] }] } })
    }
  })

  test('[K-17] defect 19: health tells when the scheduler has stopped', async () => {
    const { status, body } = await app.call('GET', '/health')
    expect({ status, body }).toMatchObject({ status: 200, body: { status: 'healthy', timestamp: TIME } })
    const checks = body['checks'] as readonly { name: string; status: string }[]
    expect(checks.map(({ name }) => name)).toEqual(['api', 'database', 'redis', 'workers', 'scheduler'])
    expect(body['summary']).toMatchObject({ overall_status: 'healthy', total_checks: 5, healthy_checks: 5 })
    expect((await app.call('GET', '/health/ready')).body).toMatchObject({ status: 'ready', database: 'healthy' })
    const live = (await app.call('GET', '/health/live')).body
    expect(live).toMatchObject({ status: 'alive', timestamp: TIME })
    expect(Number(live['uptime_seconds'])).toBeLessThan(10_000)
    const clock = { now: () => 1_000_000, sleep: () => Promise.resolve() }
    const at = async (lookedAt: number | undefined, ready: number): Promise<string> => {
      const storage = { lanes: () => Promise.resolve([{ lane: 'a', ready }]) }
      return (await schedulerCheck({ clock, storage, automations: { lookedAt } })).status
    }
    expect(await at(999_000, 0)).toBe('healthy')
    expect(await at(999_000, 51)).toBe('degraded')
    expect(await at(930_000, 0)).toBe('degraded')
    expect(await at(600_000, 0)).toBe('unhealthy')
    expect(await at(undefined, 0)).toBe('unhealthy')
  })
})

describe('pipelines and policies', () => {
  test('[K-17] defect 11: tools are called and not simulated, and the list of them is not empty', async () => {
    const { body } = await alpha.call('GET', '/tools')
    expect(body['http.request']).toEqual({ description: SOME_TEXT })
    const id = await alpha.create()
    await alpha.call('POST', `/tasks/${id}/run_now`)
    const run = await alpha.ended(id)
    expect(run['output']).toMatchObject({ steps: { made: { greeting: 'Hello Ada' } } })
    expect(JSON.stringify(run)).not.toContain('simulated')
  })

  test('[K-17] defect 12: the expressions of the old documentation work', async () => {
    const pipeline = [
      { uses: 'transform', with: { value: { temperature: 30, status: 'approved' } }, save_as: 'weather' },
      { uses: 'transform', with: { value: '${now+24h}' }, save_as: 'tomorrow', if: 'steps.weather.temperature > 25' },
      {
        uses: 'transform',
        with: { value: 'yes' },
        save_as: 'approved',
        if: "${steps.weather.status == 'approved'}",
      },
      { uses: 'transform', with: { value: 'no' }, save_as: 'never', if: 'steps.weather.temperature > 35' },
    ]
    const id = await alpha.create({ payload: { pipeline } })
    await alpha.call('POST', `/tasks/${id}/run_now`)
    const { output } = (await alpha.ended(id)) as { output?: { now: string; steps: Record<string, string> } }
    expect(output?.steps).toMatchObject({ approved: 'yes' })
    expect(output?.steps).not.toHaveProperty('never')
    const ahead = Date.parse(output?.steps['tomorrow'] ?? '') - Date.parse(output?.now ?? '')
    expect(Math.abs(ahead - 86_400_000)).toBeLessThan(1_000)
  })

  test('[K-17] defect 13: priority, concurrency key, dedupe window, backoff and the retries of a step count', async () => {
    const dedupe = { dedupe_key: 'once ${x}', dedupe_window_seconds: 600, priority: 1, backoff_strategy: 'linear' }
    const step = { id: 'a', uses: 'log', with: { message: 'x' }, timeout_seconds: 5, max_retries: 2 }
    const id = await alpha.create({ ...dedupe, payload: { pipeline: [step] } })
    expect((await alpha.call('GET', `/tasks/${id}`)).body).toMatchObject({ ...dedupe, payload: { pipeline: [step] } })
    const ours = (await app.as('alpha', 'GET', `/api/v1/automations/${id}`)).body['definition']
    const { max_retries: _, ...rest } = step
    expect(ours).toMatchObject({
      priority: 1,
      retry: { backoff: 'linear', max_retries: 3 },
      pipeline: [{ ...rest, retry: { max_attempts: 3 } }],
    })
    const [first, second] = [
      await alpha.call('POST', `/tasks/${id}/run_now`),
      await alpha.call('POST', `/tasks/${id}/run_now`),
    ]
    expect(second.body).toMatchObject({ message: containing('deduplicated'), details: first.body['details'] })
    const waits = { concurrency_key: 'gate', payload: { pipeline: [{ id: 'ask', approval: { message: 'Go?' } }] } }
    const [one, two] = [await alpha.create(waits), await alpha.create(waits)]
    for (const task of [one, two]) await alpha.call('POST', `/tasks/${task}/run_now`)
    const latest = async (task: string): Promise<unknown> => {
      const { body } = await alpha.call('GET', `/runs?task_id=${task}`)
      return (body['items'] as readonly { id: string }[])[0]?.id
    }
    expect([await latest(one), await latest(two)]).toEqual([SOME_TEXT, undefined])
    await app.as('alpha', 'POST', `/api/v1/runs/${String(await latest(one))}/cancel`)
    await vi.waitFor(async () => expect(await latest(two)).toEqual(SOME_TEXT), 60_000)
  })

  test('[K-17] defect 13: in runs too: a step is tried as often as it says, and cut at its timeout', async () => {
    const tries = new Map<string, number>()
    await withWorker(
      10,
      {
        flaky: async ({ name = '' }) => {
          const count = (tries.get(name) ?? 0) + 1
          tries.set(name, count)
          if (count < 3) throw new Error('Not yet.')
          return { count }
        },
        hang: () => new Promise<never>(() => undefined),
      },
      async () => {
        const step = (more: object): object => ({ max_retries: 0, payload: { pipeline: [{ id: 'a', ...more }] } })
        const flaky = (name: string, retries: number): object =>
          step({ uses: 'task.flaky', with: { name }, max_retries: retries })
        const [enough, tooFew, slow] = [
          await alpha.create(flaky('enough', 2)),
          await alpha.create(flaky('too few', 1)),
          await alpha.create(step({ uses: 'task.hang', with: {}, timeout_seconds: 1, max_retries: 0 })),
        ]
        for (const id of [enough, tooFew, slow]) await alpha.call('POST', `/tasks/${id}/run_now`)
        expect(await alpha.ended(enough)).toMatchObject({ success: true })
        expect(await alpha.ended(tooFew)).toMatchObject({ success: false })
        expect(Object.fromEntries(tries)).toEqual({ enough: 3, 'too few': 2 })
        const cut = await alpha.ended(slow)
        expect(cut).toMatchObject({ success: false })
        expect(JSON.stringify(cut['error'])).toMatch(/time/i)
      },
    )
  })

  test('[K-17] defect 13: of what waits for a busy worker the most important comes first, whatever came first', async () => {
    const begun: string[] = []
    const order: string[] = []
    let open = (): void => undefined
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    await withWorker(
      1,
      {
        turn: async ({ name = '' }) => {
          begun.push(name)
          if (name === 'first') await opened
          order.push(name)
          return {}
        },
      },
      async () => {
        const make = (name: string, priority: number): Promise<string> =>
          alpha.create({ priority, payload: { pipeline: [{ id: 'a', uses: 'task.turn', with: { name } }] } })
        const first = await make('first', 5)
        await alpha.call('POST', `/tasks/${first}/run_now`)
        await vi.waitFor(() => expect(begun).toEqual(['first']), 60_000)
        const waiting = [await make('least', 9), await make('middle', 5), await make('most', 1)]
        for (const id of waiting) await alpha.call('POST', `/tasks/${id}/run_now`)
        const hasBegun = async (id: string): Promise<boolean> => {
          const [run] = listIn(await app.as('alpha', 'GET', `/api/v1/runs?automation_id=${id}`))
          return (await app.as('alpha', 'GET', `/api/v1/runs/${String(run?.['id'])}`)).text.includes('"id":"a"')
        }
        for (const id of waiting) await vi.waitFor(async () => expect(await hasBegun(id)).toBe(true), 60_000)
        open()
        for (const id of [first, ...waiting]) await alpha.ended(id)
        expect(order).toEqual(['first', 'most', 'middle', 'least'])
      },
    )
  })

  test('[K-17] defect 13: after the dedupe window the same key runs again', async () => {
    const id = await alpha.create({ dedupe_key: 'same', dedupe_window_seconds: 1 })
    const run = async (): Promise<Readonly<Record<string, unknown>>> =>
      (await alpha.call('POST', `/tasks/${id}/run_now`)).body
    await run()
    expect(await run()).toMatchObject({ message: containing('deduplicated') })
    await vi.waitFor(async () => expect((await run())['message']).not.toContain('deduplicated'), {
      timeout: 60_000,
      interval: 300,
    })
  })

  test('[K-17] defect 21: a condition runs its task when a reported value crosses it; without one, who observes it runs the task', async () => {
    const id = await alpha.create({ schedule_kind: 'condition', schedule_expr: 'output.free_percent < 10' })
    const observe = (value: number): Promise<unknown> =>
      app.as('alpha', 'POST', `/api/v1/automations/${id}/observe`, { values: { free_percent: value } })
    await observe(50)
    expect((await alpha.call('GET', `/runs/task/${id}/latest`)).text).toBe('null')
    await observe(5)
    expect(await alpha.ended(id)).toMatchObject({ success: true })
    const outside = await alpha.create({ schedule_kind: 'condition', schedule_expr: null })
    expect((await alpha.call('GET', `/tasks/${outside}`)).body).toMatchObject({ schedule_expr: null })
    await alpha.call('POST', `/tasks/${outside}/run_now`)
    expect(await alpha.ended(outside)).toMatchObject({ success: true })
  })

  test('[K-17] defect 22: what old clients change is in the audit log, which can be read', async () => {
    const id = await alpha.create()
    await alpha.call('POST', `/tasks/${id}/pause`)
    await alpha.call('PUT', `/tasks/${id}`, { priority: 2 })
    const entries = listIn(await app.as('alpha', 'GET', `/api/v1/audit?subject=${id}`))
    const actions = ['automation.updated', 'automation.paused', 'automation.created']
    expect(entries.map(({ actor, action }) => [actor, action])).toEqual(actions.map((action) => ['alpha', action]))
  })

  test('[K-17] defect 23: canceled is for good', async () => {
    const id = await alpha.create()
    const canceled = await alpha.call('POST', `/tasks/${id}/cancel`)
    expect(canceled.body).toMatchObject({ success: true, details: { task_id: id, removed_work_items: 1 } })
    const again = await alpha.call('POST', `/tasks/${id}/cancel`)
    expect(again.body).toMatchObject({ success: true, details: { removed_work_items: 0 } })
    for (const verb of ['resume', 'pause', 'run_now']) {
      expect((await alpha.call('POST', `/tasks/${id}/${verb}`)).status).toBe(400)
    }
    for (const body of [{ status: 'active' }, { title: 'Back again' }]) {
      expect((await alpha.call('PUT', `/tasks/${id}`, body)).status).toBe(400)
    }
    expect((await alpha.call('GET', `/tasks/${id}`)).body).toMatchObject({ status: 'canceled', title: TASK.title })
    const paused = await alpha.create()
    const [first, second] = [
      await alpha.call('POST', `/tasks/${paused}/pause`),
      await alpha.call('POST', `/tasks/${paused}/pause`),
    ]
    expect(first.body['details']).toEqual({ task_id: paused, old_status: 'active', new_status: 'paused' })
    expect(second.body).toMatchObject({ message: containing('already has status'), details: { old_status: 'paused' } })
  })
})

describe('who may', () => {
  const SYSTEM = '00000000-0000-0000-0000-000000000001'
  let admin: OldClient

  beforeAll(() => {
    admin = oldClient(app, 'admin')
  })

  async function agentWith(name: string, scopes: readonly string[], more: object = {}): Promise<[string, string]> {
    const id = String((await admin.call('POST', '/agents', { name, scopes })).body['id'])
    const made = await admin.call('POST', `/agents/${id}/credentials`, more)
    expect(made.body).toEqual({ agent_id: id, agent_secret: SOME_TEXT, message: SOME_TEXT })
    return [id, String(made.body['agent_secret'])]
  }
  const signIn = (body: object): ReturnType<OldClient['call']> => app.call('POST', '/agents/auth/token', { body })
  const statusAs = async (token: string, method: string, path: string, body?: unknown): Promise<number> =>
    (await oldClient(app, { token }).call(method, path, body)).status

  test('[K-17] defect 15: an id opens nothing; a secret gives a session, whose scopes and owner are enforced', async () => {
    const [id, secret] = await agentWith('reader', ['tasks:read', 'notify'])
    for (const token of [id, SYSTEM, `${id}.x.y`]) expect(await statusAs(token, 'GET', '/tasks')).toBe(401)
    for (const wrong of [{}, { agent_secret: 'wrong' }, { agent_secret: id }]) {
      expect((await signIn({ agent_id: id, ...wrong })).status).toBe(401)
    }
    const [other] = await agentWith('other', ['admin'])
    expect((await signIn({ agent_id: other, agent_secret: secret })).status).toBe(401)
    const session = await signIn({ agent_id: id, agent_secret: secret })
    expect(session.body).toEqual({
      access_token: SOME_TEXT,
      refresh_token: SOME_TEXT,
      token_type: 'bearer',
      expires_in: 3_600,
      scope: 'tasks:read notify',
    })
    expect(session.headers.get('cache-control')).toBe('no-store')
    const [access, refresh] = [String(session.body['access_token']), String(session.body['refresh_token'])]
    const [, claims = ''] = access.split('.')
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
      sub: id,
      type: 'access',
      name: 'reader',
      scopes: ['tasks:read', 'notify'],
    })
    expect(await statusAs(access, 'GET', '/tasks/')).toBe(200)
    expect(await statusAs(access, 'POST', '/tasks', TASK)).toBe(403)
    expect(await statusAs(access, 'GET', '/agents')).toBe(403)
    expect(await statusAs(access, 'GET', `/tasks/${await alpha.create()}`)).toBe(404)
    expect(await statusAs(refresh, 'GET', '/tasks')).toBe(401)
  })

  test('[K-17] defect 15: knowing an id, a client can try few secrets: wrong ones are counted, and then refused', async () => {
    const strict = await startTenantServer({
      settings: { trustProxy: 'loopback', rateLimitFailedAuth: 5, rateLimitPeriodSeconds: 600 },
    })
    try {
      const guess = async (): Promise<number> => {
        const body = { agent_id: SYSTEM, agent_secret: 'guess' }
        const headers = { 'x-forwarded-for': '203.0.113.9' }
        return (await strict.call('POST', '/agents/auth/token', { body, headers })).status
      }
      const statuses: number[] = []
      for (let round = 0; round < 12; round += 1) statuses.push(await guess())
      expect(statuses[0]).toBe(401)
      expect(statuses.at(-1)).toBe(429)
      expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(5)
    } finally {
      await strict.close()
    }
  })

  test('[K-17] defect 15: a token that is forged or changed opens nothing', async () => {
    const [id, secret] = await agentWith('signed', ['tasks:read'])
    const access = String((await signIn({ agent_id: id, agent_secret: secret })).body['access_token'])
    const [header = '', claims = '', signature = ''] = access.split('.')
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const said = JSON.parse(Buffer.from(claims, 'base64url').toString()) as object
    const forged = [
      `${part({ alg: 'none', typ: 'JWT' })}.${claims}.`,
      `${part({ alg: 'none', typ: 'JWT' })}.${claims}.${signature}`,
      `${header}.${part({ ...said, sub: SYSTEM })}.${signature}`,
      `${header}.${part({ ...said, scopes: ['admin'] })}.${signature}`,
      `${header}.${claims}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
      `${header}.${claims}`,
    ]
    for (const token of forged) expect(await statusAs(token, 'GET', '/tasks')).toBe(401)
    expect(await statusAs(access, 'GET', '/tasks')).toBe(200)
  })

  test('[K-17] defect 15: a session is renewed while the agent is as it was, and a revoked one ends with all its tokens', async () => {
    const [id, secret] = await agentWith('renewed', ['tasks:read'])
    const refresh = (token: unknown): ReturnType<OldClient['call']> =>
      app.call('POST', '/agents/auth/refresh', { body: { refresh_token: token } })
    const session = (await signIn({ agent_id: id, agent_secret: secret })).body
    const renewed = await refresh(session['refresh_token'])
    expect(renewed).toMatchObject({ status: 200, body: { token_type: 'bearer', scope: 'tasks:read' } })
    for (const token of ['rubbish', 'a.b.c', session['access_token']]) expect((await refresh(token)).status).toBe(401)
    const revoke = (token: unknown): ReturnType<OldClient['call']> =>
      app.call('POST', '/agents/auth/revoke', { body: { refresh_token: token } })
    expect((await revoke('rubbish')).status).toBe(401)
    expect((await revoke(session['refresh_token'])).body).toMatchObject({ success: true })
    const audit = listIn(await app.as('admin', 'GET', `/api/v1/audit?subject=${id}&action=agent.session_revoked`))
    expect(audit).toMatchObject([{ actor: id }])
    for (const { refresh_token: token } of [session, renewed.body]) expect((await refresh(token)).status).toBe(401)
    for (const { access_token: token } of [session, renewed.body]) {
      expect(await statusAs(String(token), 'GET', '/tasks')).toBe(401)
    }
    const second = (await signIn({ agent_id: id, agent_secret: secret })).body
    await admin.call('PUT', `/agents/${id}`, { scopes: ['tasks:read', 'runs:read'] })
    expect((await refresh(second['refresh_token'])).status).toBe(401)
    expect(await statusAs(String(second['access_token']), 'GET', '/runs')).toBe(200)
    await admin.call('POST', `/agents/${id}/credentials`)
    expect(await statusAs(String(second['access_token']), 'GET', '/runs')).toBe(401)
    expect((await signIn({ agent_id: id, agent_secret: secret })).status).toBe(401)
    await admin.call('DELETE', `/agents/${id}`)
  })

  test('[K-17] defect 15: a password that an admin chose gives a session, and is no token by itself', async () => {
    const password = 'Kx7-bright-otter-42'
    const [id, secret] = await agentWith('chosen', ['tasks:read'], { password })
    expect(secret).toBe(password)
    expect(await statusAs(password, 'GET', '/tasks')).toBe(401)
    expect((await signIn({ agent_id: id, agent_secret: password })).status).toBe(200)
    expect((await signIn({ agent_id: id, agent_secret: `${password}x` })).status).toBe(401)
    for (const weak of ['password', 'my-secret-password', 'aaaaaaaaaaaaaaaa', 'short']) {
      expect((await admin.call('POST', `/agents/${id}/credentials`, { password: weak })).status).toBe(422)
    }
    const shown = await app.as('admin', 'GET', `/api/v1/agents/${id}`)
    expect(shown.text).not.toContain(password)
    expect(shown.text).not.toContain('salt')
  })
})
