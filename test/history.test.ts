import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { missingPooler, startPooler } from './servers/pooler-server.ts'
import { missingPostgres, startPostgres } from './servers/postgres-server.ts'
import type { PostgresServer } from './servers/postgres-server.ts'

/* The whole server with its history in PostgreSQL, which its instances share: there, away, behind a pooler. */

const missing = missingPostgres ?? missingPooler
const TOKENS = { acme: 'token-of-acme-77c1', other: 'token-of-other-12aa', root: 'token-of-root-90d2' }
const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

const walk = blueprint('walk', { start: 'one' }, (state) => ({
  one: state.handler((_context, actions) => actions.transitionTo('two', { step: 1 })),
  two: state.handler((_context, actions) => actions.transitionTo('done', { step: 2 })),
  done: state.end(),
}))

interface Started {
  readonly server: Server
  as(name: keyof typeof TOKENS): Client
  ready(): Promise<unknown>
}

let postgres: PostgresServer
let directory = ''
let schemas = 0
const newSchema = (): string => `schema=history_${(schemas += 1)}`

async function start(historyDatabaseUri: string): Promise<Started> {
  const server = createServer({
    blueprints: [walk],
    log: QUIET,
    settings: {
      storageUrl: 'memory:',
      apiHost: '127.0.0.1',
      apiPort: 0,
      clientsConfigPath: join(directory, 'clients.toml'),
      timeZone: 'America/St_Johns',
      historyDatabaseUri,
    },
  })
  onTestFinished(() => server.stop())
  const { address: url } = await server.start()
  return {
    server,
    as: (name) => createClient({ url, token: TOKENS[name] }),
    ready: async (): Promise<unknown> => {
      const answer = await fetch(`${url}/_public/ready`)
      return answer.json()
    },
  }
}

async function run(client: Client): Promise<string> {
  const job = await client.start('walk')
  await job.wait()
  return job.id
}

const STEPS = ['job_created', 'state_started', 'state_finished', 'state_started', 'state_finished', 'job_finished']

async function stepsOf(client: Client, id: string): Promise<readonly string[]> {
  return (await client.job(id).history().all()).map((event) => event.eventType)
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10))
}

describe.skipIf(missing !== undefined)(`history in PostgreSQL ${missing ?? ''}`, () => {
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'impresario-history-'))
    const tables = Object.entries(TOKENS).map(
      ([name, token]) => `[${name}]\ntoken = "${token}"\n${name === 'root' ? 'role = "admin"\n' : ''}`,
    )
    await writeFile(join(directory, 'clients.toml'), tables.join(''))
    postgres = await startPostgres(['fsync=off', 'full_page_writes=off'])
  }, 120_000)
  afterAll(async () => {
    await postgres.stop()
    await rm(directory, { recursive: true, force: true })
  })

  test(
    '[G-04] instances share it, behind a pooler too, and each client sees its own',
    { timeout: 60_000 },
    async () => {
      const pooler = await startPooler(postgres)
      onTestFinished(() => pooler.stop())
      const uri = `${pooler.url}?${newSchema()}`
      const [one, two] = await Promise.all([start(uri), start(uri)])
      const [mine, theirs] = await Promise.all([run(one.as('acme')), run(two.as('other'))])
      expect(await stepsOf(one.as('acme'), mine)).toEqual(STEPS)
      // The other instance does not have the job, only its history.
      await until(async () => (await stepsOf(two.as('acme'), mine).catch(() => [])).length === STEPS.length)
      await expect(stepsOf(two.as('acme'), theirs)).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
      const events = await two.as('acme').events.list().all()
      expect(events.map((event) => event.eventType).toReversed()).toEqual(STEPS)
      expect(events.at(-1)?.time).toMatch(/-0[23]:30$/)
      expect(events[0]).toMatchObject({
        owner: 'acme',
        blueprint: 'walk',
        contextSnapshot: { state_history: { step: 2 } },
      })
      const counts = await one.as('root').events.counts({ per: 'day', event: ['job_created', 'job_finished'] })
      expect(counts.map(({ eventType: name, count }) => [name, count])).toEqual([
        ['job_created', 2],
        ['job_finished', 2],
      ])
      const took = await one.as('acme').events.durations({ spans: 2 })
      expect(took.blueprints).toMatchObject([{ blueprint: 'walk', count: 1, failed: 0 }])
      expect(took.states.reduce((sum, { count }) => sum + count, 0)).toBe(2)
      expect(took.spans.map(({ finished }) => finished)).toEqual([0, 1])
    },
  )

  test(
    '[G-04] a server starts and works while it is away, and what happened meanwhile is there later',
    { timeout: 60_000 },
    async () => {
      await postgres.kill()
      const app = await start(`${postgres.url}?${newSchema()}`)
      const id = await run(app.as('acme'))
      // What the job itself keeps.
      expect(await stepsOf(app.as('acme'), id)).toContain('job_finished')
      await until(async () => (await app.as('root').dashboard()).history?.isAway === true)
      expect((await app.as('root').dashboard()).history).toMatchObject({ waiting: STEPS.length, dropped: 0 })
      expect(await app.ready()).toMatchObject({ status: 'ready', components: { history: { status: 'failed' } } })
      await expect(app.as('acme').events.list().all()).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
      await postgres.start()
      await until(async () => (await app.as('root').dashboard()).history?.waiting === 0)
      expect(await stepsOf(app.as('acme'), id)).toEqual(STEPS)
      expect(await app.as('acme').events.list().all()).toHaveLength(STEPS.length)
    },
  )

  test('[G-04] [J-22] a stop writes what is left', { timeout: 60_000 }, async () => {
    const uri = `${postgres.url}?${newSchema()}`
    const first = await start(uri)
    const id = await run(first.as('acme'))
    await first.server.stop()
    const second = await start(uri)
    expect(await stepsOf(second.as('acme'), id)).toEqual(STEPS)
  })

  test('[G-04] settings that can never work stop the start, with what to do', async () => {
    const nowhere = postgres.url.replace(/\/postgres$/, '/nowhere')
    await expect(start(nowhere)).rejects.toThrow('The database that HISTORY_DATABASE_URI names does not exist')
  })
})
