import { spawn } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Lease } from '@impresario/core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ensure } from '../../../test/system/debian-packages.ts'
import { openPostgresStorage } from './open.ts'
import { freePort, missingPostgres, startPostgres, unprivileged, untilReady } from './postgres-server.fixture.ts'
import type { PostgresServer } from './postgres-server.fixture.ts'

const missing = missingPostgres ?? ensure(['pgbouncer'])

/** Gives out server connections by transaction, and has only two of them. */
async function startPooler(server: PostgresServer): Promise<string> {
  const user = unprivileged()
  const directory = mkdtempSync(join(tmpdir(), 'impresario-pooler-'))
  const port = await freePort()
  const users = join(directory, 'users.txt')
  const file = join(directory, 'pgbouncer.ini')
  writeFileSync(users, '"impresario" ""\n')
  const settings = ['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'auth_type = trust', `auth_file = ${users}`]
  const pool = ['pool_mode = transaction', 'default_pool_size = 2', 'unix_socket_dir =']
  const databases = ['[databases]', `postgres = host=127.0.0.1 port=${server.port}`, '[pgbouncer]']
  writeFileSync(file, [...databases, ...settings, ...pool].join('\n'))
  if (user !== undefined) for (const path of [directory, users, file]) chownSync(path, user.uid, user.gid)
  const child = spawn('pgbouncer', [file], { ...user, stdio: 'ignore' })
  onTestFinished(() => {
    child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  })
  const url = `postgres://impresario@127.0.0.1:${port}/postgres`
  await untilReady(url)
  return url
}

const task = (id: string, lane: string) =>
  ({ queue: 'tasks', id, lane, priority: 0, delayMs: 0, payload: null }) as const

describe.skipIf(missing !== undefined)(`PostgreSQL behind a pooler ${missing ?? ''}`, () => {
  test('[G-03] everything works through a pooler by transaction', { timeout: 120_000 }, async () => {
    const server = await startPostgres()
    onTestFinished(() => server.stop())
    const url = await startPooler(server)
    const direct = encodeURIComponent(server.url)
    const one = await openPostgresStorage({ url: `${url}?schema=pooled&listen=${direct}`, pollMs: 3_600_000 })
    const two = await openPostgresStorage({ url: `${url}?schema=pooled&listen=off`, pollMs: 20 })
    onTestFinished(async () => {
      await Promise.all([one.close(), two.close()])
    })
    const heard = [one, two].map((storage) => new Promise<string>((resolve) => storage.watch('tasks', resolve)))
    const items = Array.from({ length: 200 }, (_, index) => task(`i${index}`, `lane ${index % 3}`))
    await Promise.all(items.map((item) => two.commit({ enqueue: [item] })))
    for (const lane of await Promise.all(heard)) expect(lane).toMatch(/^lane \d$/)
    const got: Lease[] = []
    const work = async (storage: typeof one): Promise<void> => {
      for (;;) {
        const { leases, nextInMs } = await storage.claim('tasks', { limit: 5, leaseMs: 60_000 })
        if (leases.length === 0 && nextInMs === undefined) return
        got.push(...leases)
        expect(await storage.renew(leases, 60_000)).toEqual(leases.map(() => true))
        const outcomes = await Promise.all(leases.map((lease) => storage.commit({ settle: lease })))
        expect(outcomes).toEqual(leases.map(() => 'committed'))
      }
    }
    await Promise.all([one, two, one, two].map((storage) => work(storage)))
    expect(got.map(({ id }) => id).toSorted()).toEqual(items.map(({ id }) => id).toSorted())
  })
})
