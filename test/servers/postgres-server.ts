import { execFileSync, spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { ensure } from '../system/debian-packages.ts'
import { freePort } from './free-port.ts'
import { newDirectory, RUN_DIRECTORY } from './run-directory.ts'
import { startWatchdog } from './watchdog.ts'

/** Why there is no PostgreSQL to test with; `undefined` if there is one. */
export const missingPostgres: string | undefined = ensure(['postgresql'])

/** A private server, on its own port, in its own directory. */
export interface PostgresServer {
  readonly url: string
  readonly port: number
  /** Like a power failure, except for the disk. */
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
  query(sql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
}

/** For tests of behaviour, not of durability. */
const FAST: readonly string[] = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'jit=off']

/** Shared memory in the data directory too: elsewhere a killed server leaves some behind. */
const PLACE: readonly string[] = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=200',
  'dynamic_shared_memory_type=mmap',
]

export async function startPostgres(settings: readonly string[] = FAST): Promise<PostgresServer> {
  const bin = binaries()
  const user = unprivileged()
  const directory = ownDirectory()
  const watchdog = startWatchdog('QUIT', directory)
  const data = newCluster(bin, directory)
  const port = await freePort()
  const url = `postgres://impresario@127.0.0.1:${port}/postgres`
  const all = [...PLACE, ...settings]
  const flags = ['-D', data, '-p', String(port), ...all.flatMap((setting) => ['-c', setting])]
  let child: ChildProcess | undefined
  let asking: pg.Client | undefined
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill(signal)
    while (child.exitCode === null && child.signalCode === null) await sleep(5)
    watchdog.watch(0)
  }
  const server: PostgresServer = {
    url,
    port,
    async start() {
      child = spawn(join(bin, 'postgres'), flags, { ...user, cwd: directory, stdio: 'ignore' })
      watchdog.watch(child.pid ?? 0)
      const ended = once(child, 'exit').then(() => {
        throw new Error('The server ended before it took queries')
      })
      await Promise.race([untilReady(url), ended])
      // From here on it may end, because tests stop it.
      ended.catch(() => undefined)
    },
    // The children notice that their parent is gone, and the next start waits until they have ended.
    kill: () => end('SIGKILL'),
    async stop() {
      await asking?.end().catch(() => undefined)
      // Immediately: the data of the tests need not be written.
      await end('SIGQUIT')
      rmSync(directory, { recursive: true, force: true })
      watchdog.dismiss()
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

function ownDirectory(): string {
  const directory = newDirectory('pg')
  const user = unprivileged()
  if (user !== undefined) chownSync(directory, user.uid, user.gid)
  chmodSync(directory, 0o700)
  return directory
}

/** A copy of a directory that is created once per run: `initdb` takes longer than the rest of a start. */
function newCluster(bin: string, directory: string): string {
  const data = join(directory, 'data')
  const run = process.env[RUN_DIRECTORY]
  if (run === undefined) {
    initialise(bin, directory, data)
    return data
  }
  const template = join(run, 'pg-template')
  if (!existsSync(template)) {
    const made = ownDirectory()
    initialise(bin, made, join(made, 'data'))
    try {
      renameSync(made, template)
    } catch {
      // Another process was faster, and its copy is equivalent.
      rmSync(made, { recursive: true })
    }
  }
  execFileSync('cp', ['-a', join(template, 'data'), data], { stdio: 'ignore' })
  return data
}

function initialise(bin: string, cwd: string, data: string): void {
  const flags = ['-D', data, '-U', 'impresario', '-A', 'trust', '-E', 'utf8', '--no-sync']
  execFileSync(join(bin, 'initdb'), flags, { ...unprivileged(), cwd, stdio: 'ignore' })
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
