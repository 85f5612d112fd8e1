import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Log, LogFields } from '@impresario/core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../../../test/servers/free-port.ts'
import { startPostgres } from '../../../../test/servers/postgres-server.ts'
import type { PostgresServer } from '../../../../test/servers/postgres-server.ts'
import { startRedis } from '../../../../test/servers/redis-server.ts'
import type { TestServer as RedisServer } from '../../../../test/servers/redis-server.ts'
import { createOrchestrator } from '../orchestrator.ts'
import { startTestServer } from '../server.fixture.ts'
import type { Answer, TestServer } from '../server.fixture.ts'

let redis: RedisServer
let postgres: PostgresServer
beforeAll(async () => {
  ;[redis, postgres] = await Promise.all([
    startRedis(['--appendonly', 'no', '--enable-protected-configs', 'yes']),
    startPostgres(),
  ])
}, 300_000)
afterAll(async () => {
  await Promise.all([redis.remove(), postgres.stop()])
})

const REFUSED = { reason: /^it refuses writes$/, code: /^STORAGE_REFUSED$/ }
/** The first to ask is refused. Then the driver looks for the new primary, and asks nobody. */
const AWAY = { reason: /^it (?:refuses writes|does not answer)$/, code: /^STORAGE_(?:REFUSED|UNAVAILABLE)$/ }

/** Each way in which a storage answers and takes no writes, what is said of it, and how it is over again. */
const REFUSALS = {
  'a Redis that is full': {
    url: () => `${redis.url}?namespace=full`,
    begin: () => operate('CONFIG SET maxmemory 1'),
    end: () => operate('CONFIG SET maxmemory 0'),
    said: REFUSED,
  },
  'a Redis that cannot save what it has (MISCONF)': {
    url: () => `${redis.url}?namespace=unsaved`,
    begin: failSaving,
    end: () => operate('CONFIG SET stop-writes-on-bgsave-error no'),
    said: REFUSED,
  },
  'a Redis that has become a replica': {
    url: () => `${redis.url}?namespace=replica`,
    begin: () => operate('REPLICAOF 127.0.0.1 1'),
    end: () => operate('REPLICAOF NO ONE'),
    said: AWAY,
  },
  'a PostgreSQL that is read-only': {
    url: () => postgres.url,
    begin: () => readOnly('on'),
    end: () => readOnly('off'),
    said: REFUSED,
  },
  'a PostgreSQL whose disk is full': {
    url: () => `${postgres.url}?schema=full_disk`,
    begin: fillDisk,
    end: () => Promise.all(WRITTEN.map((table) => postgres.query(`DROP TRIGGER full_disk ON full_disk.${table}`))),
    said: REFUSED,
  },
} as const

const WRITTEN = ['records', 'items'] as const

/** What the server raises when it cannot extend a file, raised as a disk quota does: a disk cannot be filled everywhere. */
async function fillDisk(): Promise<void> {
  await postgres.query(`CREATE FUNCTION full_disk.no_space() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$`)
  for (const table of WRITTEN) {
    await postgres.query(`CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON full_disk.${table}
      FOR EACH STATEMENT EXECUTE FUNCTION full_disk.no_space()`)
  }
}

/** Its directory is gone, so that the next snapshot fails; from then on Redis takes no writes. */
async function failSaving(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'impresario-unsaved-'))
  await operate('CONFIG SET stop-writes-on-bgsave-error yes')
  await operate('CONFIG SET save "3600 1"')
  await operate(`CONFIG SET dir ${directory}`)
  rmSync(directory, { recursive: true })
  await operate('BGSAVE', '+Background saving started')
}

/** Tells the server as its operator would, over a connection of its own. */
async function operate(command: string, expected = '+OK'): Promise<void> {
  const socket = connect(redis.port, '127.0.0.1')
  socket.end(`${command}\r\nQUIT\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  if (!answer.toString().startsWith(expected)) throw new Error(`Redis says ${answer.toString()}`)
}

async function readOnly(to: 'on' | 'off'): Promise<void> {
  await postgres.query(`SET default_transaction_read_only = off`)
  await postgres.query(`ALTER SYSTEM SET default_transaction_read_only = ${to}`)
  await postgres.query('SELECT pg_reload_conf()')
}

async function untilReadinessIs(server: TestServer, status: number): Promise<Answer> {
  for (;;) {
    const answer = await server.call('GET', '/_public/ready')
    if (answer.status === status) return answer
    await pause(20)
  }
}

describe.each(Object.entries(REFUSALS))('%s', (_name, { url, begin, end, said }) => {
  test('[I-08] is not ready, says so to those who create jobs, and recovers', { timeout: 120_000 }, async () => {
    const server = await startTestServer({ settings: { storageUrl: url(), instanceId: 'only' } })
    onTestFinished(() => server.server.stop())
    await untilReadinessIs(server, 200)
    await begin()
    try {
      const refused = await untilReadinessIs(server, 503)
      expect(refused.body).toMatchObject({ components: { storage: { status: 'failed' }, engine: { status: 'ok' } } })
      const { components } = refused.body as unknown as {
        readonly components: { readonly storage: { reason: string } }
      }
      expect(components.storage.reason).toMatch(said.reason)
      const create = await server.client('POST', '/api/v1/jobs', { blueprint: 'echo' })
      expect(create.status).toBe(503)
      expect(create.body['code']).toMatch(said.code)
      expect(create.headers.get('retry-after')).not.toBeNull()
    } finally {
      await end()
    }
    await untilReadinessIs(server, 200)
    // Nothing was.
    expect((await server.client('GET', '/api/v1/jobs')).body).toEqual([])
    expect((await server.client('POST', '/api/v1/jobs', { blueprint: 'echo' })).status).toBe(202)
  })
})

interface Line {
  readonly message: string
  readonly fields: LogFields | undefined
}

function listening(): { readonly log: Log; readonly lines: Line[]; readonly heard: (part: string) => Promise<Line> } {
  const lines: Line[] = []
  const keep = (message: string, fields?: LogFields): void => {
    lines.push({ message, fields })
  }
  const heard = async (part: string): Promise<Line> => {
    for (;;) {
      const line = lines.find(({ message }) => message.includes(part))
      if (line !== undefined) return line
      await pause(10)
    }
  }
  return { log: { debug: keep, info: keep, warn: keep, error: keep }, lines, heard }
}

describe('a start against a storage that is not ready', () => {
  test('[I-08] waits for it and says so, with its address and without its password', { timeout: 120_000 }, async () => {
    const { log, heard, lines } = listening()
    const late = await startRedis(['--appendonly', 'no', '--requirepass', 'very-secret'])
    onTestFinished(() => late.remove())
    await late.kill()
    const address = `redis://127.0.0.1:${late.port}`
    const storageUrl = `redis://:very-secret@127.0.0.1:${late.port}`
    const orchestrator = createOrchestrator({ log, settings: { storageUrl, storageWaitSeconds: 600 } })
    onTestFinished(() => orchestrator.stop())
    const starting = orchestrator.start()
    expect((await heard('not ready')).fields).toMatchObject({ storage: address, waits_up_to_s: 600 })
    await late.start()
    await starting
    expect(JSON.stringify(lines)).not.toContain('very-secret')
  })

  test.for(['redis', 'postgres'] as const)(
    '[I-08] is refused in words when the time is up: %s',
    { timeout: 120_000 },
    async (scheme) => {
      const { log } = listening()
      const host = `127.0.0.1:${await freePort()}`
      const storageUrl = `${scheme}://user:very-secret@${host}/0`
      const orchestrator = createOrchestrator({ log, settings: { storageUrl, storageWaitSeconds: 1 } })
      const refusal = await orchestrator.start().then(
        () => undefined,
        (error: unknown) => error,
      )
      expect(refusal).toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
      expect(String(refusal)).toContain(`The storage at ${scheme}://${host}`)
      expect(String(refusal)).not.toContain('very-secret')
    },
  )

  test('[I-08] is given up at once when it is stopped', { timeout: 120_000 }, async () => {
    const { log, heard } = listening()
    const storageUrl = `redis://127.0.0.1:${await freePort()}`
    const orchestrator = createOrchestrator({ log, settings: { storageUrl, storageWaitSeconds: 3_600 } })
    const starting = orchestrator.start().catch((error: unknown) => error)
    await heard('not ready')
    await orchestrator.stop()
    expect(await starting).toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
  })

  test('[I-08] waits for a standby to be promoted', { timeout: 120_000 }, async () => {
    const { log, heard } = listening()
    await readOnly('on')
    try {
      const storageUrl = `${postgres.url}?schema=standby`
      const orchestrator = createOrchestrator({ log, settings: { storageUrl, storageWaitSeconds: 600 } })
      onTestFinished(() => orchestrator.stop())
      const starting = orchestrator.start()
      expect((await heard('not ready')).fields).toMatchObject({ storage: postgres.url.replace(/\/\/[^/]*@/, '//') })
      await readOnly('off')
      await starting
    } finally {
      await readOnly('off')
    }
  })
})
