import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { blueprint } from '@impresario/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startPostgres } from '../../../../test/servers/postgres-server.ts'
import type { PostgresServer } from '../../../../test/servers/postgres-server.ts'
import { startRedis } from '../../../../test/servers/redis-server.ts'
import type { TestServer as RedisServer } from '../../../../test/servers/redis-server.ts'
import { newDirectory } from '../../../../test/servers/run-directory.ts'
import { startTestServer } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'
import { transferStorage } from './storage-transfer.ts'

const task = (name: string, type: string) =>
  blueprint(name, { start: 'ask' }, (state) => ({
    ask: state.handler((_context, actions) =>
      actions.dispatchTask({ type, params: { name }, transitions: { success: 'done' } }),
    ),
    done: state.end(),
  }))

const asks = (name: string, expires: '1h' | '2s') =>
  blueprint(name, { start: 'wait' }, (state) => ({
    wait: state.handler((_context, actions) =>
      actions.awaitHumanApproval({
        message: 'Go on?',
        expires,
        transitions: { approved: 'done', expired: 'late' },
      }),
    ),
    done: state.end(),
    late: state.end(),
  }))

const parent = blueprint('parent', { start: 'delegate' }, (state) => ({
  delegate: state.handler((_context, actions) =>
    actions.runBlueprint({ name: 'inner', initialData: {}, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

const BLUEPRINTS = [
  task('waiting', 'nobody-can-yet'),
  task('held', 'hold'),
  task('held-on', 'hold'),
  task('inner', 'nested'),
  asks('approval', '1h'),
  asks('timer', '2s'),
  parent,
]
const NAMES = ['waiting', 'held', 'held-on', 'approval', 'timer', 'parent'] as const
type Name = (typeof NAMES)[number]

let postgres: PostgresServer
let redis: RedisServer
let directory = ''

beforeAll(async () => {
  directory = newDirectory('moving-jobs')
  ;[postgres, redis] = await Promise.all([startPostgres(), startRedis()])
})

afterAll(async () => {
  await Promise.all([postgres.stop(), redis.remove()])
  rmSync(directory, { recursive: true, force: true })
})

function start(storageUrl: string, secretKey = ''): Promise<TestServer> {
  return startTestServer({ blueprints: BLUEPRINTS, settings: { storageUrl, secretKey, instanceId: 'one-of-them' } })
}

async function finished(app: TestServer, answer: Answer): Promise<Answer> {
  const { job_id, task_id } = answer.body
  return app.worker('POST', '/_worker/tasks/result', { job_id, task_id, worker_id: 'holder', status: 'success' })
}

/** Jobs of every sort, each as far as it gets by itself, and the tasks that a worker has in its hands. */
async function begun(app: TestServer): Promise<{
  readonly jobs: Readonly<Record<Name, string>>
  readonly tasks: Readonly<Record<string, Answer>>
}> {
  await app.register('holder', { supported_skills: ['hold'] })
  const jobs: Partial<Record<Name, string>> = {}
  for (const name of NAMES) jobs[name] = await app.createJob(name)
  const tasks: Record<string, Answer> = {}
  for (let count = 0; count < 2; count++) {
    const found = await app.poll('holder')
    tasks[(found.body['params'] as { readonly name: string }).name] = found
  }
  // Whoever waits is where he waits.
  for (const name of ['waiting', 'approval', 'timer', 'parent'] as const) {
    await app.client('GET', `/api/v1/jobs/${jobs[name]}?wait=20&version=1`)
  }
  return { jobs: jobs as Record<Name, string>, tasks }
}

test('[G-01] [I-01] jobs in every state go on after each transfer, and end once', { timeout: 60_000 }, async () => {
  const file = `file:${directory}`
  const first = await start(file)
  const { jobs, tasks } = await begun(first)
  await first.server.stop()
  const secretKey = readFileSync(join(directory, 'secret.key'), 'utf8').trim()

  const onRedis = `${redis.url}?namespace=jobs&shards=2`
  expect((await transferStorage({ from: file, to: onRedis })).outcome).toBe('moved')
  await expect(start(file)).rejects.toThrow(/was moved to redis/)
  const second = await start(onRedis, secretKey)
  // What a worker held while the orchestrator was away, under the same name.
  expect(await finished(second, tasks['held']!)).toMatchObject({
    status: 200,
    body: { status: 'accepted' },
  })
  expect((await second.ended(jobs.held)).body).toMatchObject({ status: 'finished', current_state: 'done' })
  expect((await second.ended(jobs.timer)).body).toMatchObject({ status: 'finished', current_state: 'late' })
  expect((await second.poll('holder', 0)).status).toBe(204)
  const onPostgres = `${postgres.url}?schema=jobs`
  await expect(transferStorage({ from: onRedis, to: onPostgres })).rejects.toThrow(/redis.*is in use by/)
  await second.server.stop()

  expect((await transferStorage({ from: onRedis, to: onPostgres })).outcome).toBe('moved')
  await expect(start(onRedis, secretKey)).rejects.toThrow(/was moved to postgres/)
  const third = await start(onPostgres, secretKey)
  expect(await finished(third, tasks['held-on']!)).toMatchObject({ status: 200 })
  expect(await finished(third, tasks['held-on']!)).toMatchObject({ body: { status: 'ignored' } })
  await third.register('late', { supported_skills: ['nobody-can-yet', 'nested'] })
  const late = [await third.poll('late'), await third.poll('late')]
  for (const { body } of late) {
    const { job_id, task_id } = body
    await third.worker('POST', '/_worker/tasks/result', { job_id, task_id, worker_id: 'late', status: 'success' })
  }
  const link = `/_public/webhooks/approval/${jobs.approval}`
  expect((await third.client('POST', link, { decision: 'approved' })).status).toBe(200)
  for (const name of ['waiting', 'held-on', 'approval', 'parent'] as const) {
    expect((await third.ended(jobs[name])).body).toMatchObject({ status: 'finished', current_state: 'done' })
  }
  expect((await third.poll('late', 0)).status).toBe(204)
  expect((await third.client('GET', `/api/v1/jobs/${jobs.held}`)).body).toMatchObject({ status: 'finished' })
  await third.server.stop()
})
