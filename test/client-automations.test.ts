import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import type { AuditQuery, Client, Run } from '@impresario/client'
import { createServer } from '@impresario/server'
import { createWorker } from '@impresario/worker'
import type { Server } from '@impresario/server'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newStorageUrl } from './servers/storage-ground.ts'

/* Automations, runs, events, agents, tools and audit log through the client: over HTTP and in the server's own process. */

const CLIENTS = `
[acme]
token = "token-of-acme-77c1"
[root]
token = "token-of-root-90d2"
role = "admin"
`

const PIPELINE = [
  { id: 'make', uses: 'transform', with: { value: { userName: '${params.userName}' } }, saveAs: 'made' },
  { id: 'tell', uses: 'log', with: { message: 'Hello ${steps.made.userName}' }, timeoutSeconds: 5 },
]

const QUIET = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

let directory = ''
let server: Server
let url = ''

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-client-automations-'))
  await writeFile(join(directory, 'clients.toml'), CLIENTS)
  server = createServer({
    settings: {
      apiHost: '127.0.0.1',
      apiPort: 0,
      storageUrl: newStorageUrl(),
      logLevel: 'silent',
      clientsConfigPath: join(directory, 'clients.toml'),
    },
  })
  url = (await server.start()).address
})

afterAll(async () => {
  await server.stop()
  await rm(directory, { recursive: true, force: true })
})

const WAYS: readonly (readonly [string, (id: 'acme' | 'root') => Client])[] = [
  ['over HTTP', (id) => createClient({ url, token: id === 'acme' ? 'token-of-acme-77c1' : 'token-of-root-90d2' })],
  ['in the same process', (id) => server.client(id === 'acme' ? { id } : { id, role: 'admin' })],
]

describe.each(WAYS)('automations through the client %s', (way, clientOf) => {
  const ended = (client: Client, runId: string | null): Promise<Run> =>
    vi.waitFor(async () => {
      const run = await client.runs.get(runId ?? '')
      expect(run.endedAt).not.toBeNull()
      return run
    }, 60_000)

  test('[M-02] views of the job list are saved under names', async () => {
    const { views } = clientOf('acme')
    const search = { show: 'failed', some_name: 'x' }
    expect(await views.save(`Mine ${way}`, search)).toMatchObject({ search, updatedAt: expect.any(Number) as unknown })
    expect((await views.list()).filter(({ name }) => name === `Mine ${way}`)).toMatchObject([{ search }])
    expect((await clientOf('root').views.list()).map(({ name }) => name)).not.toContain(`Mine ${way}`)
    await views.delete(`Mine ${way}`)
    await expect(views.delete(`Mine ${way}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(views.save('x'.repeat(101), {})).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  })

  test('[K-09] a preview of a run fills in templates and calls nothing; a refusal names every field and step', async () => {
    const { automations } = clientOf('acme')
    const definition = { title: 'Preview', params: { userName: 'Ada' }, pipeline: PIPELINE }
    const { steps } = await automations.previewRun(definition, { steps: { made: { userName: 'Grace' } } })
    expect(steps.map(({ id, input, open }) => ({ id, input, open }))).toEqual([
      { id: 'make', input: { value: { userName: 'Ada' } }, open: [] },
      { id: 'tell', input: { message: 'Hello Grace' }, open: [] },
    ])
    const broken = { ...definition, triggers: [{ cron: '99 * * * *' }], pipeline: [{ id: 'a', uses: 'logg' }] }
    const refusal = await automations.previewRun(broken).catch((error: unknown) => error)
    expect(refusal).toMatchObject({
      code: 'INPUT_REFUSED',
      problems: expect.arrayContaining([
        expect.objectContaining({ field: 'pipeline[0].uses', step: 'a' }),
        expect.objectContaining({ field: expect.stringMatching(/^triggers\[0\]/) as unknown }),
      ]) as unknown,
    })
  })

  test('[K-02] [K-05] an automation is created, changed, steered, run and deleted', async () => {
    const client = clientOf('acme')
    const { automations } = client
    const made = await automations.create({
      title: `Greet ${way}`,
      params: { userName: 'Ada' },
      triggers: [{ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' }],
      pipeline: PIPELINE,
      retry: { maxRetries: 1, initialSeconds: 1 },
    })
    expect(made).toMatchObject({
      status: 'active',
      revision: 1,
      owner: 'acme',
      nextRunAt: expect.any(Number) as unknown,
    })
    expect(made.definition).toMatchObject({ retry: { max_retries: 1 }, params: { userName: 'Ada' } })
    expect((await automations.preview(made.id, 3)).firings).toHaveLength(3)
    expect(
      (await automations.preview({ title: 'x', pipeline: PIPELINE, triggers: [{ every: 60 }] }, 2)).firings,
    ).toHaveLength(2)
    const snoozed = await automations.snooze(made.id, 60, 'a holiday')
    expect(snoozed.snoozed).toMatchObject({ by: 'acme', reason: 'a holiday' })
    expect((await automations.pause(made.id)).status).toBe('paused')
    expect((await automations.resume(made.id)).status).toBe('active')
    const changed = await automations.update(made.id, { ...made.definition, title: `Greet ${way}`, pipeline: PIPELINE })
    expect(changed.revision).toBe(2)
    const launched = await automations.run(made.id, { userName: 'Bob' })
    const run = await ended(client, launched.runId)
    expect(run).toMatchObject({ status: 'succeeded', automationId: made.id, output: { message: 'Hello Bob' } })
    const again = await client.runs.rerun(run.id, { from: 'tell' })
    expect(await ended(client, again.runId)).toMatchObject({ trigger: { kind: 'rerun', rerunOf: run.id } })
    expect(await client.runs.list({ automationId: made.id, trigger: 'manual' }).all()).toHaveLength(1)
    expect(await client.runs.statistics({ automationId: made.id })).toMatchObject({ total: 2, successRate: 1 })
    const audit = await client.audit.list({ subject: made.id }).all()
    expect(audit.map(({ action }) => action)).toContain('automation.snoozed')
    const [from, to] = [new Date(made.createdAt * 1_000 - 1_000), new Date(made.createdAt * 1_000 + 3_600_000)]
    const entries = async (filter: AuditQuery) =>
      (await client.audit.list({ subject: made.id, ...filter }).all()).length
    expect(await entries({ actor: 'acme', createdAfter: from, createdBefore: to })).toBeGreaterThan(4)
    expect(await entries({ actor: 'nobody' })).toBe(0)
    expect(await entries({ createdAfter: to })).toBe(0)
    expect(await entries({ createdBefore: from })).toBe(0)
    const titles = (await automations.list({ search: way }).all()).map(({ title }) => title)
    expect(titles).toEqual([`Greet ${way}`])
    expect((await automations.cancel(made.id, 'enough')).status).toBe('canceled')
    await automations.delete(made.id)
    await expect(automations.get(made.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(automations.create({ title: '', pipeline: [] })).rejects.toMatchObject({
      status: expect.any(Number) as unknown,
    })
  })

  test('[K-02] of two authors that change the same revision one is refused, and nothing of the other is lost', async () => {
    const client = clientOf('acme')
    const definition = { title: `Shared ${way}`, pipeline: PIPELINE, params: { userName: 'Ann' } }
    const made = await client.automations.create(definition)
    const change = (userName: string): typeof definition => ({ ...definition, params: { userName } })
    const both = ['Bob', 'Cid'].map((name) =>
      client.automations.update(made.id, change(name), { revision: made.revision }),
    )
    const outcomes = await Promise.allSettled(both)
    const [won, ...more] = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const lost = outcomes.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []))
    expect(more).toEqual([])
    expect(lost).toMatchObject([{ code: 'STALE_REVISION', status: 412 }])
    const now = await client.automations.get(made.id)
    expect(now).toMatchObject({ revision: 2, definition: { params: won?.definition['params'] } })
    // The same change once more, because its answer was lost, is no other change; another one is.
    const again = now.definition as typeof definition
    expect((await client.automations.update(made.id, again, { revision: 1 })).revision).toBe(2)
    await expect(client.automations.update(made.id, change('Dan'), { revision: 1 })).rejects.toThrow(
      'at revision 2, not 1',
    )
    expect((await client.automations.update(made.id, change('Dan'))).revision).toBe(3)
    await client.automations.delete(made.id)
  })

  test('[K-10] a task that no connected worker knows is said at once, and tasks of workers are among the tools', async () => {
    const worker = createWorker({ url, id: `resizer-${way.replaceAll(' ', '-')}`, shutdownMs: 0, log: QUIET })
    worker.task('resize', async () => ({}))
    await worker.start()
    const client = clientOf('acme')
    await vi.waitFor(async () => {
      const task = (await client.tools.list()).find(({ name }) => name === 'task.resize')
      expect(task).toMatchObject({ kind: 'worker', description: expect.stringContaining('connected worker') as string })
    })
    const inner = [{ id: 'typo', uses: 'task.resise', with: {} }]
    const definition = { title: `Pictures ${way}`, pipeline: [{ id: 'all', pipeline: inner }] }
    const said = ['Step "typo": no connected worker knows the task "task.resise". Did you mean "task.resize"?']
    expect((await client.automations.preview(definition)).warnings).toEqual(said)
    const made = await client.automations.create(definition)
    expect(made.warnings).toEqual(said)
    expect((await client.automations.get(made.id)).warnings).toBeUndefined()
    const right = { ...definition, pipeline: [{ id: 'all', uses: 'task.resize', with: {} }] }
    expect((await client.automations.update(made.id, right)).warnings).toBeUndefined()
    await client.automations.delete(made.id)
    await worker.stop()
  })

  test('[K-04] an event is published once for a key, and listed with what came of it', async () => {
    const client = clientOf('acme')
    const topic = `order.${way.includes('HTTP') ? 'http' : 'local'}`
    const made = await client.automations.create({ title: topic, triggers: [{ event: topic }], pipeline: PIPELINE })
    const event = await client.events.publish(topic, { orderId: 7 }, { idempotencyKey: topic })
    expect(await client.events.publish(topic, { orderId: 7 }, { idempotencyKey: topic })).toMatchObject({
      id: event.id,
    })
    await vi.waitFor(async () => {
      const { runs, payload } = await client.events.get(event.id)
      expect(payload).toEqual({ orderId: 7 })
      expect(runs).toMatchObject([{ automationId: made.id, outcome: 'started' }])
    }, 60_000)
    expect(await client.events.published({ topic }).all()).toHaveLength(1)
    expect((await client.tools.get('http.request'))?.inputSchema).toMatchObject({ type: 'object' })
  })

  test.each(['with a socket', 'over HTTP alone'])('[K-16] a worker %s meters what its task used', async (line) => {
    const client = clientOf('acme')
    const type = `think-${way.length}-${line.length}`
    const worker = createWorker({ url, id: type, shutdownMs: 0, log: QUIET, webSockets: line === 'with a socket' })
    const refusals: string[] = []
    worker.task(type, async (_params, task) => {
      await task.meter({ usd: 0.4, tokens: 1_200 })
      // Nobody waits for this one but the result.
      void task.meter({ seconds: 2.5 })
      await task.meter({ usd: -1 }).catch((error: unknown) => refusals.push(String(error)))
      return { thought: true }
    })
    await worker.start()
    const budget = { usdPerDay: 1, tokensPerDay: 10_000 }
    const pipeline = [{ id: 'think', uses: `task.${type}`, with: {} }]
    const { id } = await client.automations.create({ title: `Think ${way} ${line}`, budget, pipeline })
    const run = await ended(client, (await client.automations.run(id)).runId)
    expect(run).toMatchObject({ status: 'succeeded', usage: { usd: 0.4, tokens: 1_200, seconds: 2.5 } })
    expect((await client.get(run.id)).usage).toEqual(run.usage)
    expect(refusals).toEqual([expect.stringContaining('"usd" must be a number from 0') as unknown])
    expect(await client.automations.budget(id)).toMatchObject({
      runs: { used: null, limit: null },
      usd: { used: 0.4, limit: 1 },
      tokens: { used: 1_200, limit: 10_000 },
      seconds: { used: 2.5, limit: null },
      agent: null,
    })
    await ended(client, (await client.automations.run(id)).runId)
    expect(await ended(client, (await client.automations.run(id)).runId)).toMatchObject({
      status: 'canceled',
      error: { message: expect.stringContaining('usd_per_day of the automation is 1, and 1.2 were used') as unknown },
    })
    expect(await client.automations.run(id)).toMatchObject({ status: 'skipped', reason: 'budget' })
    await worker.stop()
  })

  test('[K-16] an agent has a budget of its own', async () => {
    const client = clientOf('root')
    const budget = { runsPerDay: 1, usdPerDay: 5 }
    const agent = await client.agents.create({ name: `saver ${way}`, scopes: ['automations:*'], budget })
    expect(agent.budget).toEqual(budget)
    const { token } = await client.agents.createToken(agent.id, { name: 'only' })
    const own = createClient({ url, token })
    const { id } = await own.automations.create({ title: 'x', params: { userName: 'Ada' }, pipeline: PIPELINE })
    expect(await own.automations.run(id)).toMatchObject({ status: 'started' })
    expect(await own.automations.run(id)).toMatchObject({ status: 'skipped', reason: 'budget' })
    expect((await own.automations.budget(id)).agent).toMatchObject({ runs: { used: 1, limit: 1 }, usd: { limit: 5 } })
    expect((await client.agents.update(agent.id, { budget: { runsPerDay: 2 } })).budget).toEqual({ runsPerDay: 2 })
    await expect(client.agents.update(agent.id, { budget: { runsPerDay: -1 } })).rejects.toMatchObject({ status: 400 })
    await client.agents.delete(agent.id)
  })

  test('[K-01] an admin makes agents and tokens; others may not', async () => {
    const client = clientOf('root')
    const agent = await client.agents.create({
      name: `agent ${way}`,
      scopes: ['jobs:*', 'runs:read'],
      onBehalfOf: 'ada',
    })
    expect(agent.scopes).toEqual(['runs:read', 'jobs:read', 'jobs:write'])
    const { token, id } = await client.agents.createToken(agent.id, { name: 'first', expiresInSeconds: 60 })
    const own = createClient({ url, token })
    expect(await own.account()).toMatchObject({ clientId: agent.id, onBehalfOf: 'ada', scopes: agent.scopes })
    await expect(own.agents.list().all()).rejects.toMatchObject({ code: 'FORBIDDEN' })
    expect(await client.agents.tokens(agent.id)).toMatchObject([{ id, name: 'first', isExpired: false }])
    expect((await client.agents.update(agent.id, { scopes: [] })).scopes).toEqual([])
    await client.agents.revokeToken(agent.id, id)
    await expect(own.account()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    expect((await client.agents.list({ search: way }).all()).map(({ id: one }) => one)).toEqual([agent.id])
    await client.agents.delete(agent.id)
    await expect(client.agents.get(agent.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(clientOf('acme').agents.list().all()).rejects.toMatchObject({ code: 'FORBIDDEN' })
  })
})
