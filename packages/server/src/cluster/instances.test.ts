import { once } from 'node:events'
import { blueprint } from '@impresario/core'
import type { Claimed, Lease, RunnableBlueprint, Storage } from '@impresario/core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { SILENT } from '../runtime/log.ts'
import { createOrchestrator } from '../orchestrator.ts'
import type { Orchestrator } from '../orchestrator.ts'
import { CLIENT_TOKEN, WORKER_TOKEN } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'
import { taskCall } from '../mcp/mcp-client.fixture.ts'
import { Backends, BACKENDS, Cluster, openStorage, until, withoutSafetyNet } from './cluster.fixture.ts'

const backends = new Backends()
beforeAll(() => backends.start(), 300_000)
afterAll(() => backends.stop())

/** A blueprint with one task of its own type, so that each test has its own workers. */
function asking(type: string, strategy = 'default'): RunnableBlueprint {
  return blueprint(type, { start: 'ask' }, (state) => ({
    ask: state.handler((_context, actions) =>
      actions.dispatchTask({ type, strategy, transitions: { success: 'done' } }),
    ),
    done: state.end(),
  }))
}
/** A day, so that nothing becomes free again meanwhile. */
const LIMITED = {
  trustProxy: 'loopback',
  rateLimitPeriodSeconds: 86_400,
  rateLimitHeartbeat: 20,
  rateLimitPublic: 160,
} as const
const approve = blueprint('approve', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Go on?', transitions: { approved: 'done' } }),
  ),
  done: state.end(),
}))
const counted = blueprint('counted', { start: 'done' }, (state) => ({ done: state.end() }))
const blueprints = [
  approve,
  counted,
  asking('wake'),
  asking('follow'),
  asking('cancel'),
  asking('fill'),
  asking('rotate', 'round_robin'),
]

interface Task {
  readonly task_id: string
  readonly job_id: string
}

const result = ({ task_id, job_id }: Task): object => ({ task_id, job_id, status: 'success', data: { said: 'yes' } })

/** Three servers on one storage, of which none finds anything by looking around now and then. */
describe.each(BACKENDS)('instances on one %s', (name) => {
  let cluster: Cluster
  let [a, b, c]: readonly TestServer[] = []
  beforeAll(async () => {
    cluster = new Cluster(backends.address(name))
    for (let number = 0; number < 3; number += 1) {
      await cluster.add({ clock: withoutSafetyNet(), blueprints, settings: LIMITED })
    }
    ;[a, b, c] = cluster.servers
  }, 60_000)
  afterAll(() => cluster.stop())

  test('[I-03] counters of all instances add up to what happened', async () => {
    const servers = [a!, b!, c!]
    const jobs = await Promise.all([...servers, ...servers].map((server) => server.createJob('counted')))
    await Promise.all(jobs.map((jobId) => b!.ended(jobId)))
    const texts = await Promise.all(servers.map(async ({ address }) => (await fetch(`${address}/metrics`)).text()))
    const sum = (series: string): number =>
      texts
        .flatMap((text) => text.split('\n'))
        .filter((line) => line.startsWith(`${series} `))
        .reduce((total, line) => total + Number(line.split(' ')[1]), 0)
    expect(sum('orchestrator_jobs_total{blueprint="counted"}')).toBe(6)
    expect(sum('impresario_jobs_ended_total{blueprint="counted",outcome="finished"}')).toBe(6)
    expect(sum('orchestrator_job_duration_seconds_count{blueprint="counted"}')).toBe(6)
  })

  test('[M-02] [I-01] every instance lists all of them by name', async () => {
    const seenBy = async ({ server }: TestServer): Promise<readonly string[]> => {
      const { instances } = await server.client({ role: 'admin' }).admin.system()
      return instances.filter(({ status }) => status === 'running').map(({ instanceId }) => instanceId)
    }
    await until(async () => (await Promise.all([a!, b!, c!].map(seenBy))).every(({ length }) => length === 3))
    // The one that answers comes first.
    expect(await seenBy(b!)).toEqual(['i1', 'i0', 'i2'])
  })

  test('[I-01] [B-09] a job of one wakes the worker at another and the client that waits at a third', async () => {
    await b!.register('waking', { supported_skills: ['wake'] })
    const polling = b!.poll('waking', 60)
    await until(() => b!.server.engine.desk.parked === 1)
    const jobId = await a!.createJob('wake')
    const waiting = c!.ended(jobId)
    const task = await polling
    expect(task).toMatchObject({ status: 200, body: { job_id: jobId } })
    const { body: seen } = await c!.client('GET', `/api/v1/jobs/${jobId}`)
    expect(seen).toMatchObject({ status: 'waiting_for_worker', work: { waiting: 0, running: 1, workers: ['waking'] } })
    await b!.worker('POST', '/_worker/tasks/result', result(task.body), { 'x-worker-id': 'waking' })
    expect((await waiting).body).toMatchObject({ status: 'finished', state_history: { said: 'yes' } })
  })

  test('[K-12] [I-01] a task of an assistant that one instance gave is answered by every other one', async () => {
    const made = await taskCall(a!, 'tools/call', { name: 'approve', arguments: {} })
    const taskId = String(made['taskId'])
    await until(async () => (await taskCall(b!, 'tasks/get', { taskId }))['status'] === 'input_required')
    const asked = (await taskCall(b!, 'tasks/get', { taskId }))['inputRequests'] ?? {}
    const [key = ''] = Object.keys(asked)
    const yes = { action: 'accept', content: { decision: 'approved' } }
    await taskCall(c!, 'tasks/update', { taskId, inputResponses: { [key]: yes } })
    await b!.ended(taskId)
    expect(await taskCall(a!, 'tasks/get', { taskId })).toMatchObject({ status: 'completed' })
  })

  test('[I-01] whoever waits for the next version of a job hears of it from any instance', async () => {
    const jobId = await a!.createJob('follow')
    const job = async (): Promise<Answer['body']> => (await a!.client('GET', `/api/v1/jobs/${jobId}`)).body
    await until(async () => (await job())['status'] === 'waiting_for_worker')
    const version = String((await job())['version'])
    const following = b!.client('GET', `/api/v1/jobs/${jobId}?wait=60&version=${version}`)
    await until(() => b!.server.waiting === 1)
    await a!.client('POST', `/api/v1/jobs/${jobId}/cancel`, {})
    expect((await following).body).toMatchObject({ status: 'cancelled' })
  })

  test('[E-04] a cancellation at one reaches the worker’s socket at another and its poll at a third', async () => {
    // It takes the task at one, its socket is at the next, and its poll is at the last.
    await a!.register('cancelled', { supported_skills: ['cancel'], resources: { max_concurrent_tasks: 2 } })
    const polling = a!.poll('cancelled', 60)
    const jobId = await b!.createJob('cancel')
    const task = await polling
    expect(task.status).toBe(200)
    const headers = { 'x-worker-token': WORKER_TOKEN, 'x-worker-id': 'cancelled' }
    const socket = new WebSocket(`${b!.address.replace('http', 'ws')}/_worker/ws`, { headers })
    await once(socket, 'open')
    const pushed = new Promise<string>((resolve) => {
      socket.once('message', (data: Buffer) => resolve(data.toString()))
    })
    const batch = c!.worker('POST', '/_worker/workers/cancelled/tasks/batch', { limit: 1, timeout: 60 })
    await until(() => c!.server.engine.desk.parked === 1)
    await b!.client('POST', `/api/v1/jobs/${jobId}/cancel`, {})
    expect(JSON.parse(await pushed)).toMatchObject({ command: 'cancel_task', task_id: task.body.task_id })
    expect((await batch).body).toMatchObject({ tasks: [], cancel_task_ids: [task.body.task_id] })
    socket.terminate()
  })

  test('[I-01] a worker gets no more than it has room for, wherever it asks', async () => {
    const one = { supported_skills: ['fill'], resources: { max_concurrent_tasks: 1 } }
    for (const server of [a!, b!]) await server.register('filled', one)
    for (const server of [a!, b!]) await server.createJob('fill')
    const task = await a!.poll('filled', 60)
    expect(task.status).toBe(200)
    for (const server of [b!, c!, a!]) expect((await server.poll('filled', 0.05)).status).toBe(204)
    await c!.worker('POST', '/_worker/tasks/result', result(task.body), { 'x-worker-id': 'filled' })
    expect((await b!.poll('filled', 60)).status).toBe(200)
    expect((await a!.poll('filled', 0.05)).status).toBe(204)
  })

  /** How often each status came back for calls that go to all servers in rotation, some at a time. */
  async function tally(times: number, call: (server: TestServer) => Promise<Answer>): Promise<Record<number, number>> {
    const found: Record<number, number> = {}
    const callers = Array.from({ length: 6 }, async (_, caller) => {
      for (let time = caller; time < times; time += 6) {
        const { status } = await call(cluster.servers[time % 3]!)
        found[status] = (found[status] ?? 0) + 1
      }
    })
    await Promise.all(callers)
    return found
  }

  test('[H-04] a limit holds for all instances together, to the last request where it is small', async () => {
    await a!.register('beating', { supported_skills: ['nothing'] })
    const beat = (server: TestServer): Promise<Answer> => server.worker('PATCH', '/_worker/workers/beating')
    expect(await tally(45, beat)).toEqual({ 200: 20, 429: 25 })
  })

  test('[H-04] a large limit is drawn in shares, and never exceeded in sum', async () => {
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
    const found = await tally(200, (server) => server.call('GET', '/_public/live', from('198.51.100.7')))
    expect(found[200]).toBeLessThanOrEqual(160)
    // What the others have drawn and not used is a small part.
    expect(found[200]).toBeGreaterThan(140)
    expect((await a!.call('GET', '/_public/live', from('198.51.100.8'))).status).toBe(200)
  })

  test('[H-04] wrong tokens count for all instances together', async () => {
    const guess = (server: TestServer): Promise<Answer> =>
      server.call('GET', '/api/v1/jobs', { headers: { 'x-client-token': 'wrong', 'x-forwarded-for': '203.0.113.9' } })
    expect(await tally(18, guess)).toEqual({ 401: 10, 429: 8 })
    const right = { 'x-client-token': CLIENT_TOKEN, 'x-forwarded-for': '203.0.113.9' }
    for (const server of cluster.servers) {
      expect((await server.call('GET', '/api/v1/jobs', { headers: right })).status).toBe(429)
    }
  })

  test('[D-03] rotation goes over the workers, whichever instance gets the jobs', async () => {
    const ids = ['t1', 't2', 't3']
    for (const [index, id] of ids.entries()) {
      await cluster.servers[index]!.register(id, { supported_skills: ['rotate'] })
    }
    const knowsAll = ({ server }: TestServer): boolean => ids.every((id) => server.engine.dispatcher.worker(id))
    await until(() => cluster.servers.every(knowsAll))
    let heard = 0
    for (const storage of cluster.storages) {
      onTestFinished(
        storage.watch('signals', (lane) => {
          heard += lane.split('"turn","rotate"').length - 1
        }),
      )
    }
    for (let round = 0; round < 8; round += 1) {
      await cluster.servers[round % 3]!.createJob('rotate')
      // All three, the sender too.
      await until(() => heard === 3 * (round + 1))
    }
    const lanes = (await cluster.storages[0]!.lanes('tasks')).filter(({ lane }) => lane.startsWith('worker:t'))
    expect(Object.fromEntries(lanes.map(({ lane, ready }) => [lane, ready]))).toEqual({
      'worker:t1': 3,
      'worker:t2': 3,
      'worker:t3': 2,
    })
  })
})

const PROCESS = 'health-checker'

describe.each(BACKENDS)('background processes on one %s', (name) => {
  test('[F-05] they go on at another instance when theirs dies, and what the dead one still writes is refused', async () => {
    const url = backends.address(name)
    const dying = new Abandoned(await openStorage(url))
    const other = await openStorage(url)
    const instances = [dying.storage, other].map((storage, number) => {
      const settings = { storageUrl: url, instanceId: `i${number}`, leaderLeaseSeconds: 1, shutdownTimeoutSeconds: 0.1 }
      return createOrchestrator({ storage, settings, log: SILENT })
    })
    onTestFinished(async () => {
      await Promise.all(instances.map((instance) => instance.stop()))
      await Promise.all([dying.real.close(), other.close()])
    })
    const [first, second] = instances
    const leads = (instance: Orchestrator | undefined): boolean => instance!.engine.leadership.isLeading(PROCESS)
    await first!.start()
    await until(() => leads(first))
    await second!.start()
    // It neither ends nor hands anything back: from one moment to the next nothing of it reaches the storage.
    dying.isCut = true
    await until(() => leads(second))
    expect(leads(first)).toBe(false)
    const guard = dying.leases.find(({ id }) => id === PROCESS)!
    const put = [{ kind: 'quota', id: 'late', version: 1, value: { period: 'p', used: 1 } }] as const
    expect(await dying.real.commit({ guard, put })).toBe('conflict')
    expect(await other.read('quota', 'late')).toBeUndefined()
  })
})

/** A storage that can be cut off from those who use it, and what they had claimed to lead by then. */
class Abandoned {
  readonly leases: Lease[] = []
  readonly real: Storage
  readonly storage: Storage
  isCut = false

  constructor(real: Storage) {
    this.real = real
    const pass = async (verb: string, call: () => Promise<unknown>): Promise<unknown> => {
      if (this.isCut) return new Promise<never>(() => {})
      const answer = await call()
      if (verb === 'claim') this.leases.push(...(answer as Claimed).leases)
      return answer
    }
    this.storage = new Proxy(real, {
      get: (target, verb) => {
        const method: unknown = Reflect.get(target, verb)
        if (typeof method !== 'function') return method
        const call = (...given: readonly unknown[]): unknown => Reflect.apply(method, target, given) as unknown
        if (verb === 'watch' || verb === 'close') return call
        return (...given: readonly unknown[]) => pass(String(verb), () => call(...given) as Promise<unknown>)
      },
    })
  }
}
