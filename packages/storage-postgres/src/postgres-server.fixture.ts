import { execFileSync, spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { ensure } from '../../../test/system/debian-packages.ts'

/** Why there is no PostgreSQL to test with; nothing if there is one. */
export const missingPostgres: string | undefined = ensure(['postgresql'])

/** A server of our own, on a port of its own, in a directory of its own. */
export interface PostgresServer {
  readonly url: string
  readonly port: number
  /** As from a power cut, but for the disk. */
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
  query(sql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
}

/** For tests of what is decided, not of what survives. */
const FAST: readonly string[] = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']

export async function startPostgres(settings: readonly string[] = FAST): Promise<PostgresServer> {
  const bin = binaries()
  const user = unprivileged()
  const directory = mkdtempSync(join(tmpdir(), 'impresario-pg-'))
  if (user !== undefined) chownSync(directory, user.uid, user.gid)
  chmodSync(directory, 0o700)
  const data = join(directory, 'data')
  const options = { ...user, cwd: directory, stdio: 'ignore' } as const
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'impresario', '-A', 'trust', '-E', 'utf8', '--no-sync'], options)
  const port = await freePort()
  const url = `postgres://impresario@127.0.0.1:${port}/postgres`
  let child: ChildProcess | undefined
  let asking: pg.Client | undefined
  const ended = async (running: ChildProcess): Promise<void> => {
    while (running.exitCode === null && running.signalCode === null) await sleep(5)
  }
  const server: PostgresServer = {
    url,
    port,
    async start() {
      const all = [
        'listen_addresses=127.0.0.1',
        `unix_socket_directories=${directory}`,
        'max_connections=200',
        ...settings,
      ]
      const flags = all.flatMap((setting) => ['-c', setting])
      child = spawn(join(bin, 'postgres'), ['-D', data, '-p', String(port), ...flags], options)
      await untilReady(url)
    },
    async kill() {
      if (child === undefined) return
      // The children notice that their parent is gone, and the next start waits until they have.
      child.kill('SIGKILL')
      await ended(child)
    },
    async stop() {
      await asking?.end().catch(() => undefined)
      // Immediately: what the tests leave behind need not be written.
      if (child !== undefined && child.exitCode === null && child.signalCode === null) {
        child.kill('SIGQUIT')
        await ended(child)
      }
      rmSync(directory, { recursive: true, force: true })
    },
    async query(sql, values = []) {
      if (asking === undefined) {
        const client = new pg.Client({ connectionString: url })
        client.on('error', () => (asking = undefined))
        await client.connect()
        asking = client
      }
      const { rows } = await asking.query<Record<string, unknown>>(sql, [...values])
      return rows
    },
  }
  await server.start()
  return server
}

function binaries(): string {
  const script =
    'ls -d /usr/lib/postgresql/*/bin/postgres 2>/dev/null | sort -V | tail -1 | grep . || command -v postgres'
  const found = spawnSync('sh', ['-c', script], { encoding: 'utf8' }).stdout.trim()
  return join(found, '..')
}

/** PostgreSQL refuses to run as root. */
export function unprivileged(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string): number => {
    const { status, stdout } = spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' })
    return status === 0 ? Number(stdout.trim()) : 65_534
  }
  return { uid: idOf('-u'), gid: idOf('-g') }
}

export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

export async function untilReady(url: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.query('SELECT 1')
      return
    } catch (error) {
      if (attempt > 1_000) throw error
      await sleep(20)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
}
