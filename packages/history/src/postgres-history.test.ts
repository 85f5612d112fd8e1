import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../../test/servers/free-port.ts'
import { missingPostgres, startPostgres } from '../../../test/servers/postgres-server.ts'
import type { PostgresServer } from '../../../test/servers/postgres-server.ts'
import { BufferedHistory } from './buffered-history.ts'
import { HandClock, KEEP, anEvent, recordingLog, until } from './history.fixture.ts'
import { openStore } from './open.ts'

const DAY_MS = 86_400_000

let server: PostgresServer
let count = 0

function open(uri: string, clock = new HandClock()) {
  const log = recordingLog()
  const store = openStore(uri, { clock, log })
  onTestFinished(() => store.close())
  return { store, clock, log }
}

const newUri = (): string => `${server.url}?schema=own_${(count += 1)}`

describe.skipIf(missingPostgres !== undefined)(`history in PostgreSQL ${missingPostgres ?? ''}`, () => {
  beforeAll(async () => {
    server = await startPostgres(['fsync=off', 'full_page_writes=off'])
  }, 120_000)
  afterAll(() => server.stop())

  const daysOf = async (): Promise<readonly unknown[]> => {
    const rows = await server.query(
      `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'own_${count}.history'::regclass ORDER BY 1`,
    )
    return rows.map(({ relname }) => relname)
  }

  test('[G-04] times are TIMESTAMPTZ and snapshots JSONB', async () => {
    const { store } = open(newUri())
    await store.write({ writer: 'w', number: 1, events: [anEvent({ at: 1_700_000_000_123, snapshot: { a: [1] } })] })
    const [row] = await server.query(
      `SELECT pg_typeof("timestamp")::text AS time, pg_typeof(context_snapshot)::text AS snapshot,
        ("timestamp" AT TIME ZONE 'UTC')::text AS utc, context_snapshot->'a'->>0 AS inside FROM own_${count}.history`,
    )
    expect(row).toEqual({
      time: 'timestamp with time zone',
      snapshot: 'jsonb',
      utc: '2023-11-14 22:13:20.123',
      inside: '1',
    })
  })

  test('[G-05] each day has a table of its own, made ahead, which goes as a whole', async () => {
    const { store, clock } = open(newUri())
    await store.open()
    expect(await daysOf()).toEqual(['history_20231114', 'history_20231115', 'history_20231116', 'history_other'])
    const at = clock.time
    for (const [day, number] of [0, 1, 2].entries()) {
      await store.write({ writer: 'w', number: number + 1, events: [anEvent({ at: at + day * DAY_MS })] })
    }
    const trim = (): Promise<number> => store.trim({ ageMs: 1.5 * DAY_MS, bytesMax: 1e12 }, at + 3 * DAY_MS)
    expect([await trim(), await trim(), await trim()]).toEqual([1, 1, 0])
    const left = ['16', '17', '18', '19'].map((day) => `history_202311${day}`)
    expect(await daysOf()).toEqual([...left, 'history_other'])
    expect(await store.ofJob('job-1', { limit: 9 })).toHaveLength(1)
  })

  test('[G-05] one instance at a time removes', async () => {
    const { store } = open(newUri())
    await store.write({ writer: 'w', number: 1, events: [anEvent({ at: 0 })] })
    await server.query('BEGIN')
    await server.query(`SELECT pg_advisory_xact_lock(1751741300, hashtext('own_${count}'))`)
    expect(await store.trim({ ageMs: 0, bytesMax: 1e12 }, 1_700_000_000_000)).toBe(0)
    await server.query('COMMIT')
    expect(await store.trim({ ageMs: 0, bytesMax: 1e12 }, 1_700_000_000_000)).toBe(1)
  })

  test('[G-04] tables of a newer program, and addresses that cannot work, are refused at the start', async () => {
    const uri = newUri()
    await open(uri).store.open()
    await server.query(`UPDATE own_${count}.meta SET version = 99`)
    await expect(open(uri).store.open()).rejects.toThrow(`The schema "own_${count}"`)
    const nowhere = server.url.replace(/\/postgres$/, '/nowhere')
    await expect(open(nowhere).store.open()).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' })
    const nobody = server.url.replace('//impresario@', '//nobody@')
    await expect(open(nobody).store.open()).rejects.toThrow('refuses the user')
    await server.query('CREATE ROLE guest LOGIN')
    const guest = server.url.replace('//impresario@', '//guest@')
    await expect(open(`${guest}?schema=not_mine`).store.open()).rejects.toThrow('grant it CREATE')
  })

  test('[G-04] a server that is away at the start is no reason not to start; its events come when it does', async () => {
    const port = await freePort()
    const { store, log, clock } = open(`postgres://impresario@127.0.0.1:${port}/postgres`)
    const history = new BufferedHistory({ store, clock, log, retention: KEEP, drainMs: 1 })
    await history.start()
    history.append([anEvent()])
    await until(() => history.status.isAway)
    await expect(history.ofJob('job-1', { limit: 1 })).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    await history.close()
    expect(history.status).toMatchObject({ waiting: 0, dropped: 1 })
    expect(log.errors.at(-1)).toMatchObject({ message: 'history was lost' })
  })

  test('[G-04] a server that is killed and comes back has every event once', { timeout: 60_000 }, async () => {
    const { store, log } = open(newUri())
    const clock = { now: () => Date.now(), sleep: pause }
    const history = new BufferedHistory({ store, clock, log, retention: KEEP })
    await history.start()
    let written = 0
    const append = (): void => {
      written += 1
      history.append([{ at: Date.now(), event: `e${written}`, jobId: 'j' }])
    }
    for (let index = 0; index < 300; index += 1) append()
    await history.flush()
    await server.kill()
    for (let index = 0; index < 300; index += 1) append()
    await until(() => history.status.isAway)
    expect(history.status).toEqual({ isAway: true, waiting: 300, dropped: 0 })
    await server.start()
    await until(() => history.status.waiting === 0)
    append()
    const found = await history.ofJob('j', { limit: 9_999 })
    expect(found.map(({ event }) => event)).toEqual(Array.from({ length: 601 }, (_, index) => `e${index + 1}`))
    await history.close()
  })

  test('[G-04] tables that somebody removed are made again', async () => {
    const { store } = open(newUri())
    await store.write({ writer: 'w', number: 1, events: [anEvent()] })
    await server.query(`DROP SCHEMA own_${count} CASCADE`)
    await expect(store.write({ writer: 'w', number: 2, events: [anEvent()] })).rejects.toThrow('does not exist')
    await store.write({ writer: 'w', number: 2, events: [anEvent()] })
    expect(await store.ofJob('job-1', { limit: 9 })).toHaveLength(1)
  })
})

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', wake)
      resolve()
    }
    const timer = setTimeout(wake, Math.min(ms, 50))
    signal.addEventListener('abort', wake)
  })
}
