import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createReceiver } from 'node:http'
import type { IncomingHttpHeaders, Server as Receiver } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { createClient, JobFailedError, verifyWebhook } from '@impresario/client'
import type { Client } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { eventType } from '@impresario/protocol'
import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { newStorageUrl } from './servers/storage-ground.ts'

/*
 * The client against the real server, over HTTP and in the server's own process: every call finds its way, answers are what
 * the types say, and refusals have the same codes.
 */

const ask = blueprint('ask', { start: 'first' }, (state) => ({
  first: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'First?', transitions: { approved: 'second', rejected: 'no' } }),
  ),
  second: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Second?', transitions: { approved: 'yes', rejected: 'no' } }),
  ),
  yes: state.end(),
  no: state.end({ outcome: 'failed' }),
}))

const broken = blueprint('broken', { start: 'fall', handlerAttemptsMax: 1 }, (state) => ({
  fall: state.handler((context, actions) => {
    if (context.initialData['mended'] !== true) throw new Error('It fell over.')
    return actions.transitionTo('done')
  }),
  done: state.end(),
}))

const double = blueprint(
  'double',
  { start: 'done', input: z.object({ n: z.number() }), output: z.object({ twice: z.number() }) },
  (state) => ({ done: state.end({ result: ({ initialData }) => ({ twice: 2 * initialData.n }) }) }),
)

const orderPaid = eventType('order.paid', z.object({ sum: z.number() }))
const paid = blueprint(
  'paid',
  { input: z.object({ order: z.string() }), start: 'wait', events: [orderPaid] },
  (state) => ({
    wait: state.handler((context, actions) =>
      actions.waitForEvent(orderPaid, { transitions: { received: 'done' }, match: context.initialData.order }),
    ),
    done: state.end({ result: (context) => context.eventOf(orderPaid) }),
  }),
)

const CLIENTS = `
[acme]
token = "token-of-acme-77c1"
plan = "gold"
monthly_attempts = 1000
[root]
token = "token-of-root-90d2"
role = "admin"
[guest]
token = "token-of-guest-51aa"
role = "viewer"
`

const SCHEDULES = '[nightly]\nblueprint = "ask"\ndaily_at = "03:00"\nclient = "acme"\n'

/** Who asks, and the token that says so over HTTP. */
interface Identity {
  readonly id: string
  readonly role?: 'viewer' | 'admin'
  readonly plan?: string
  readonly token: string
}

const WAYS: readonly (readonly [string, (server: Server, who: Identity) => Client])[] = [
  ['over HTTP', ({ address = '' }, { token }) => createClient({ url: address, token })],
  ['in the same process', (server, { token: _, ...who }) => server.client(who)],
]

describe.each(WAYS)('the client %s', (_way, clientOf) => {
  let directory = ''
  let server: Server
  let url = ''
  let acme: Client
  let root: Client
  let guest: Client
  let receiver: Receiver
  let hook = ''
  const received: { readonly body: Buffer; readonly headers: IncomingHttpHeaders }[] = []
  let onReceived = (): void => {}

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'impresario-client-'))
    await writeFile(join(directory, 'clients.toml'), CLIENTS)
    await writeFile(join(directory, 'schedules.toml'), SCHEDULES)
    receiver = createReceiver((request, reply) => {
      void buffer(request).then((body) => {
        received.push({ body, headers: request.headers })
        reply.writeHead(204).end()
        onReceived()
      })
    })
    await new Promise<void>((resolve) => {
      receiver.listen(0, '127.0.0.1', resolve)
    })
    hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
    server = createServer({
      blueprints: [ask, broken, double, paid],
      settings: {
        apiHost: '127.0.0.1',
        apiPort: 0,
        storageUrl: newStorageUrl(),
        logLevel: 'silent',
        clientsConfigPath: join(directory, 'clients.toml'),
        schedulesConfigPath: join(directory, 'schedules.toml'),
        webhookAllowHttp: true,
        webhookAllowPrivate: true,
        webhookAllowedPorts: '1024-65535',
      },
    })
    url = (await server.start()).address
    acme = clientOf(server, { id: 'acme', plan: 'gold', token: 'token-of-acme-77c1' })
    root = clientOf(server, { id: 'root', role: 'admin', token: 'token-of-root-90d2' })
    guest = clientOf(server, { id: 'guest', role: 'viewer', token: 'token-of-guest-51aa' })
  })

  afterAll(async () => {
    await server.stop()
    receiver.closeAllConnections()
    receiver.close()
    await rm(directory, { recursive: true, force: true })
  })

  async function untilQuarantined(id: string): Promise<void> {
    for await (const job of acme.job(id).watch()) if (job.status === 'quarantined') return
  }

  /** A job in quarantine. */
  async function fallen(): Promise<string> {
    const job = await acme.start('broken')
    expect(await job.wait()).toMatchObject({ status: 'quarantined' })
    return job.id
  }

  /** Follows a job until it asks this. */
  async function untilAsked(id: string, message: string): Promise<void> {
    for await (const job of acme.job(id).watch()) if (job.approval?.message === message) return
  }

  test('[M-02] changes are heard as they come, each caller its own, and go on after an id', async () => {
    const stop = new AbortController()
    const signal = stop.signal
    const others = guest.changes({ signal })
    expect(await others.next()).toMatchObject({ value: { type: 'ready', resumed: false } })
    let last = ''
    let jobId = ''
    for await (const change of acme.changes({ signal })) {
      if (change.type === 'ready') jobId = (await acme.start('ask')).id
      if (change.type !== 'change' || !change.jobs.some((job) => job.jobId === jobId)) continue
      expect(change.jobs[0]).toMatchObject({ owner: 'acme', blueprintName: 'ask' })
      last = change.id
      break
    }
    await acme.cancel(jobId)
    const again = acme.changes({ lastId: last, signal })
    expect(await again.next()).toMatchObject({ value: { type: 'ready', resumed: true } })
    for await (const change of again) {
      if (change.type === 'change' && change.jobs.some((job) => job.status === 'cancelled')) break
    }
    const own = await guest.start('double', { n: 1 }).catch((error: unknown) => error)
    expect(own).toMatchObject({ code: 'FORBIDDEN' })
    stop.abort()
    expect(await others.next()).toMatchObject({ done: true })
    expect(await acme.changes({ signal }).next()).toMatchObject({ done: true })
  })

  test('[B-04] [H-01] a question is read and answered, and a second answer never reaches the next one', async () => {
    const { id } = await acme.start('ask')
    await untilAsked(id, 'First?')
    const job = acme.job(id)
    const question = await job.approval()
    expect(question).toMatchObject({ message: 'First?', decisions: ['approved', 'rejected'], jobId: id })
    expect(Object.keys(question.decisionUrls)).toEqual(['approved', 'rejected'])
    await expect(job.approve('perhaps')).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    await job.approve('approved', { comment: 'Go on.' })
    await untilAsked(id, 'Second?')
    await expect(job.approve('rejected')).rejects.toMatchObject({ code: 'STALE_DECISION' })
    // The same answer to the question that was seen: it is there already, and the next question stays open.
    await job.approve('approved')
    expect(await job.status()).toMatchObject({ status: 'waiting_for_human' })
    await job.approve('approved')
    expect(await job.wait()).toMatchObject({ status: 'finished' })
  })

  test('[H-01] history is read whole, in pages, and from a place on', async () => {
    const { id } = await acme.start('ask')
    await untilAsked(id, 'First?')
    const job = acme.job(id)
    const all = await job.history().all()
    expect(all.map((event) => event.eventType)).toContain('approval_requested')
    expect(await job.history({ limit: 1 }).all()).toEqual(all)
    expect(await job.history({ after: all[0]?.eventId }).all()).toEqual(all.slice(1))
    expect(await job.history({ limit: 1 }).page()).toMatchObject({ items: all.slice(0, 1), cursor: all[0]?.eventId })
    expect(await job.explain()).toMatchObject({ jobId: id, currentState: 'first', tasks: [] })
  })

  test('[H-01] lists are filtered by search, time, status and owner', async () => {
    const { id } = await acme.start('ask', {}, { metadata: { city: 'Zürich-Oerlikon' } })
    await untilAsked(id, 'First?')
    const { createdAt: at } = await acme.job(id).status()
    expect((await acme.list({ search: 'oerlikon' }).all()).map((job) => job.id)).toEqual([id])
    // The time of a job is that of its id, which the SDK makes: a little earlier than the server has it.
    const before = new Date(at * 1_000 - 60_000)
    expect(await acme.list({ search: 'oerlikon', createdBefore: before }).all()).toEqual([])
    expect(await acme.list({ search: 'oerlikon', createdAfter: before, fields: ['id', 'owner'] }).all()).toEqual([
      { id, owner: 'acme' },
    ])
    expect(await root.list({ search: 'oerlikon', owner: 'acme', status: ['waiting_for_human'] }).all()).toHaveLength(1)
    await expect(acme.list({ owner: 'root' }).page()).rejects.toMatchObject({ code: 'FORBIDDEN' })
  })

  test('[C-07] jobs in quarantine are inspected, mended and given up, one by one', async () => {
    const id = await fallen()
    expect(await acme.job(id).quarantined()).toMatchObject({
      error: { message: expect.stringContaining('It fell over.') as unknown, state: 'fall' },
    })
    await acme.job(id).retry({ initialData: { mended: true }, stateHistory: { by: 'hand' } })
    expect(await acme.job(id).wait()).toMatchObject({ status: 'finished', stateHistory: { by: 'hand' } })
    await expect(acme.job(id).retry()).rejects.toMatchObject({ code: 'NOT_WAITING' })
    const other = await fallen()
    await acme.job(other).discard()
    expect(await acme.job(other).wait()).toMatchObject({ status: 'failed' })
  })

  test('[C-07] many jobs in quarantine are tried again or given up at once', async () => {
    const ids = [await fallen(), await fallen(), await fallen()]
    const [first = '', second = '', third = ''] = ids
    expect((await acme.quarantine.list({ limit: 2 }).all()).map((job) => job.id)).toEqual(ids.toReversed())
    expect(await acme.quarantine.list({ blueprint: 'ask' }).all()).toEqual([])
    expect(await acme.quarantine.list({ olderThanMs: 3_600_000 }).all()).toEqual([])
    const [{ error } = {}] = await acme.quarantine.list({ limit: 1 }).all(1)
    expect(await acme.quarantine.list({ errorCode: error?.code }).all()).toHaveLength(3)
    expect(await acme.quarantine.discard({ ids: [first, 'nobody'] })).toEqual({
      results: [
        { status: 'discard_accepted', jobId: first, jobStatus: 'failed' },
        expect.objectContaining({ jobId: 'nobody', code: 'JOB_NOT_FOUND' }),
      ],
      hasMore: false,
    })
    const { results, hasMore } = await acme.quarantine.discard({ filter: { blueprint: 'broken' }, limit: 1 })
    expect([results.map((one) => one.jobId), hasMore]).toEqual([[third], true])
    expect(await acme.quarantine.retry({ filter: {} })).toMatchObject({ results: [{ jobId: second }] })
    await untilQuarantined(second)
    await acme.quarantine.discard({ filter: {} })
    expect(await acme.quarantine.list().all()).toEqual([])
  })

  test('[H-07] a webhook is verified with its secret, looked up, sent again, and has its secret replaced', async () => {
    const endpoint = await acme.webhooks.declare(hook)
    expect(endpoint).toMatchObject({ address: hook, status: 'active', owner: 'acme' })
    const { secret } = await acme.webhooks.secret(endpoint.id)
    const arrived = new Promise<void>((resolve) => {
      onReceived = resolve
    })
    const id = await acme.start('broken', { mended: true }, { webhookUrl: `${hook}?order=17` })
    await arrived
    const [message] = received.splice(0)
    const verified = await verifyWebhook(message?.body ?? '', message?.headers ?? {}, secret)
    expect(verified.body).toMatchObject({ event: 'job_finished', job_id: id.id, status: 'finished' })
    await expect(verifyWebhook('{}', message?.headers ?? {}, secret)).rejects.toMatchObject({ name: 'WebhookError' })
    // What became of it is written once the receiver has answered.
    await expect
      .poll(async () => (await acme.webhooks.deliveries({ jobId: id.id, event: 'job_finished' }).all())[0])
      .toMatchObject({ id: verified.id, endpointId: endpoint.id, status: 'delivered' })
    const arrivedAgain = new Promise<void>((resolve) => {
      onReceived = resolve
    })
    const rotated = await acme.webhooks.rotateSecret(endpoint.id, { overlapMs: 60_000 })
    expect(await acme.webhooks.redeliver(verified.id)).toMatchObject({ id: verified.id, body: { job_id: id.id } })
    await arrivedAgain
    const [second] = received.splice(0)
    for (const one of [secret, rotated.secret]) {
      expect(await verifyWebhook(second?.body ?? '', second?.headers ?? {}, one)).toMatchObject({ id: verified.id })
    }
    expect(await acme.webhooks.delivery(verified.id)).toMatchObject({ body: { job_id: id.id } })
    expect(await root.webhooks.endpoints({ owner: 'acme' }).all()).toMatchObject([{ id: endpoint.id }])
    expect(await acme.webhooks.enable(endpoint.id)).toMatchObject({ id: endpoint.id })
    expect(await acme.webhooks.endpoint(endpoint.id)).toMatchObject({ lastError: null })
    await expect(acme.webhooks.delivery('msg_none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('[H-01] [H-04] what is around jobs: account, workers, skills, blueprints, counts', async () => {
    const { quota, ...account } = await acme.account()
    expect(account).toMatchObject({ clientId: 'acme', role: 'client', plan: 'gold', limits: { pageSize: 100 } })
    // In the same process nothing is counted.
    expect((quota?.used ?? 0) + (quota?.left ?? 1_000)).toBe(1_000)
    expect(await root.account()).toMatchObject({ role: 'admin', quota: null })
    await server.localTransport().register({ worker_id: 'w1', worker_type: 'gpu', supported_skills: ['draw'] })
    expect(await acme.worker('w1')).toMatchObject({ workerType: 'gpu', supportedSkills: ['draw'] })
    expect(await acme.catalogue()).toMatchObject({ draw: { providersCount: 1, workerTypes: ['gpu'] } })
    expect(await acme.workerHistory('w1').all()).toMatchObject([{ eventType: 'registered', workerId: 'w1' }])
    await expect(acme.worker('w2')).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND' })
    expect(await acme.blueprint('ask', 1)).toMatchObject({ name: 'ask', start: 'first' })
    await expect(acme.blueprint('ask', 2)).rejects.toMatchObject({ code: 'BLUEPRINT_NOT_FOUND' })
    expect(await acme.graph('ask', 'dot', 1)).toMatch(/^digraph/)
    expect(await acme.dashboard()).toMatchObject({ workers: { total: 1 } })
  })

  test('[F-04] schedules are looked at by their clients and run by admins', async () => {
    expect(await acme.schedules.list()).toMatchObject([{ name: 'nightly', client: 'acme', enabled: true }])
    expect(await acme.schedules.get('nightly')).toMatchObject({ trigger: { kind: 'daily', time: '03:00' } })
    await expect(acme.schedules.run('nightly')).rejects.toMatchObject({ code: 'FORBIDDEN' })
    const job = await root.schedules.run('nightly')
    expect(await acme.job(job.id).status()).toMatchObject({ blueprintName: 'ask', owner: 'acme' })
    await expect(root.schedules.run('nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('[F-04] schedules are paused and resumed by admins', async () => {
    await expect(acme.schedules.pause('nightly')).rejects.toMatchObject({ code: 'FORBIDDEN' })
    const paused = await root.schedules.pause('nightly')
    expect(paused).toMatchObject({ enabled: true, pausedBy: 'root', nextAt: null, upcoming: [] })
    expect(paused.pausedAt).toBeGreaterThan(0)
    expect(await acme.schedules.get('nightly')).toEqual(paused)
    await expect(acme.schedules.resume('nightly')).rejects.toMatchObject({ code: 'FORBIDDEN' })
    const resumed = await root.schedules.resume('nightly')
    expect(resumed).toMatchObject({ pausedAt: null, pausedBy: null, upcoming: { length: 10 } })
    await expect(root.schedules.pause('nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(root.schedules.resume('nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('[H-02] an admin lets the files of clients be read anew', async () => {
    await expect(acme.admin.reload()).rejects.toMatchObject({ code: 'FORBIDDEN' })
    await writeFile(join(directory, 'clients.toml'), `${CLIENTS}\n[late]\ntoken = "token-of-late-3f3f"\n`)
    expect(await root.admin.reload()).toMatchObject({ clients: 4, schedules: 1 })
    expect(await createClient({ url, token: 'token-of-late-3f3f' }).account()).toMatchObject({ clientId: 'late' })
  })

  test('[H-01] a result is typed by the blueprint, or by its type and its name; what has none is an error', async () => {
    const { twice } = await (await acme.start(double, { n: 4 })).result()
    const named = await acme.start<typeof double>('double', { n: 5 })
    expect([twice, (await named.result()).twice]).toEqual([8, 10])
    expect(await acme.result(named.id)).toEqual({ twice: 10 })
    expect(await acme.get(named.id)).toMatchObject({ currentState: 'done', status: 'finished', result: { twice: 10 } })
    await expect(acme.start('double', { n: 'four' })).rejects.toMatchObject({ code: 'INPUT_REFUSED' })
    await expect(acme.start('nothing')).rejects.toMatchObject({ code: 'BLUEPRINT_NOT_FOUND' })
    await expect(acme.start('ask', {}, { resultTimeoutMs: -1 })).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    await expect(acme.start('ask', {}, { webhookUrl: 'ftp://x' })).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    const failure: unknown = await acme.result(await fallen()).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(JobFailedError)
    expect(failure).toMatchObject({ code: 'HANDLER_FAILED', job: { status: 'quarantined', currentState: 'fall' } })
    await acme.quarantine.discard({ filter: {} })
  })

  test('[C-05] [H-01] a job is watched and cancelled; a wait ends when its time is up or it is given up', async () => {
    const job = await acme.start('ask')
    await expect(job.wait({ timeoutMs: 5 })).rejects.toMatchObject({ name: 'TimeoutError' })
    await expect(job.wait({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
    const seen: string[] = []
    for await (const { status } of acme.watch(job.id)) {
      seen.push(status)
      if (status === 'waiting_for_human') await acme.cancel(job.id, 'not needed')
    }
    expect([seen.at(-2), seen.at(-1)]).toEqual(['waiting_for_human', 'cancelled'])
    await acme.cancel(job.id)
    await expect(job.result()).rejects.toMatchObject({ name: 'JobFailedError', message: /is "cancelled": not needed/ })
    await expect(acme.cancel('nobody')).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
  })

  test('[B-04] questions are listed and decided by the id of their job', async () => {
    const { id } = await acme.start('ask')
    await untilAsked(id, 'First?')
    const [listed] = await acme.approvals.list().all(1)
    expect(listed).toMatchObject({ id, approval: { message: 'First?' } })
    expect(await acme.approvals.get(id)).toMatchObject({ jobId: id, visit: listed?.approval?.visit })
    await acme.approve(id, 'rejected', { comment: 'no', visit: listed?.approval?.visit })
    expect((await acme.wait(id)).status).toBe('failed')
    await expect(acme.approve(id, 'approved')).rejects.toMatchObject({ code: 'NOT_WAITING' })
  })

  test('[H-05] others’ jobs do not exist, and a viewer changes nothing', async () => {
    const { id } = await acme.start('ask')
    await expect(guest.get(id)).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
    expect(await guest.list().all()).toEqual([])
    for (const call of [() => guest.start('ask'), () => guest.cancel(id), () => guest.approve(id, 'approved')]) {
      await expect(call()).rejects.toMatchObject({ code: 'FORBIDDEN' })
    }
    expect(await root.get(id)).toMatchObject({ id, owner: 'acme' })
  })

  test('[C-08] [C-10] the same key gives the same job, and long numbers keep their digits', async () => {
    const input = { n: 12_345_678_901_234_567_890n }
    const first = await acme.start('ask', input, { idempotencyKey: 'k1' })
    expect((await acme.start('ask', input, { idempotencyKey: 'k1' })).id).toBe(first.id)
    await expect(acme.start('ask', {}, { idempotencyKey: 'k1' })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    })
    expect((await first.status()).initialData).toEqual(input)
    expect((await acme.list({ limit: 1 }).page()).items[0]?.initialData).toEqual(input)
  })

  test('[B-12] events reach the jobs that wait for them, by id and by key', async () => {
    const [one, two] = [await acme.start('paid', { order: 'o1' }), await acme.start('paid', { order: 'o2' })]
    await one.send('order.paid', { sum: 1 }, { eventId: 'e1' })
    await one.send('order.paid', { sum: 1 }, { eventId: 'e1' })
    await acme.send('order.paid', { sum: 2 }, { key: 'o2' })
    expect([await one.result(), await two.result()]).toEqual([{ sum: 1 }, { sum: 2 }])
    await expect(one.send('order.paid', { sum: 3 })).rejects.toMatchObject({ code: 'NOT_WAITING' })
    await expect(guest.job(two.id).send('order.paid')).rejects.toMatchObject({ code: 'FORBIDDEN' })
    await expect(root.job('nobody').send('order.paid')).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
  })

  test('[H-01] [G-04] events are listed and counted', async () => {
    await server.localTransport().register({ worker_id: 'w9', worker_type: 'gpu', supported_skills: ['draw'] })
    const [event] = await root.events.list({ worker: 'w9', limit: 1 }).all(1)
    expect(event).toMatchObject({ eventType: 'registered', workerId: 'w9', jobId: null })
    expect(await root.events.counts({ worker: 'w9' })).toMatchObject([{ eventType: 'registered', count: 1 }])
  })
})

test('[H-01] both ways give the same answers', async () => {
  const server = createServer({
    blueprints: [ask, broken, double],
    settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl: newStorageUrl(), logLevel: 'silent' },
  })
  const { address: url } = await server.start()
  try {
    const [remote, local] = [createClient({ url }), server.client({ role: 'admin' })]
    await server.localTransport().register({ worker_id: 'w1', worker_type: 'gpu', supported_skills: ['draw'] })
    const { id } = await local.start('ask', { text: 'x'.repeat(20_000), some_key: 1 }, { metadata: { snake_key: 1 } })
    for await (const job of remote.watch(id)) if (job.status === 'waiting_for_human') break
    const answers = async (client: Client): Promise<readonly unknown[]> => {
      const { url: _, decisionUrls, urlsExpireAt: __, ...question } = await client.approvals.get(id)
      const others = await Promise.all([
        client.get(id),
        client.list().all(),
        client.list({ fields: ['initialData', 'currentState'] }).all(),
        client.explain(id),
        client.job(id).history().all(),
        client.workers(),
        client.catalogue(),
        client.blueprints(),
        client.graph('ask'),
        client.dashboard().then(({ workers, jobs }) => ({ workers, jobs })),
        client.schedules.list(),
        client.quarantine.list().all(),
      ])
      return [...others, { ...question, decisions: Object.keys(decisionUrls) }]
    }
    const [here, there] = await Promise.all([answers(local), answers(remote)])
    expect(here).toEqual(there)
    const [job, [listed]] = here as [object, readonly object[]]
    expect(job).toMatchObject({ initialData: { some_key: 1 }, metadata: { snake_key: 1 } })
    expect(listed).toMatchObject({ omittedFields: ['initialData'], metadata: { snake_key: 1 } })
  } finally {
    await server.stop()
  }
})
