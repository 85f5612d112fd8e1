/** Where contestants keep their data: a separate server or directory, on disk, empty at first. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from './measure.ts'

export interface Backing {
  readonly url: string
  /** Its current processes, the first of them the parent of the others. */
  pids(): readonly number[]
  /** Where its data is. */
  readonly directory: string
  stop(): Promise<void>
}

export function benchDirectory(name: string): string {
  const directory = mkdtempSync(join(process.env['BENCH_TMP'] ?? tmpdir(), `impresario-bench-${name}-`))
  watchEnd()
  left.directories.add(directory)
  return directory
}

/** What must be cleaned up when this process ends, for any reason: servers and their directories. */
const left = { children: new Set<ChildProcess>(), directories: new Set<string>(), isWatched: false }

function watchEnd(): void {
  if (left.isWatched) return
  left.isWatched = true
  process.once('exit', () => {
    for (const child of left.children) child.kill('SIGKILL')
    for (const directory of left.directories) rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
}

/** Ends with this process at the latest. */
export function endsWithUs(child: ChildProcess): ChildProcess {
  watchEnd()
  left.children.add(child)
  child.once('exit', () => left.children.delete(child))
  return child
}

export function removeDirectory(directory: string): void {
  left.directories.delete(directory)
  rmSync(directory, { recursive: true, force: true })
}

/** No server: a directory. */
export function openDirectory(name: string): Backing {
  const directory = benchDirectory(name)
  const stop = async (): Promise<void> => removeDirectory(directory)
  return { url: directory, directory, pids: () => [], stop }
}

export async function startRedis(appendfsync: 'everysec' | 'always'): Promise<Backing> {
  const port = await freePort()
  const directory = benchDirectory('redis')
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '']
  const safety = ['--appendonly', 'yes', '--appendfsync', appendfsync, '--maxmemory-policy', 'noeviction']
  const child = spawn('redis-server', [...place, ...safety, '--loglevel', 'warning'], { stdio: 'ignore' })
  endsWithUs(child)
  await listening(port, child)
  const stop = async (): Promise<void> => {
    await ended(child, 'SIGTERM')
    removeDirectory(directory)
  }
  return { url: `redis://127.0.0.1:${port}`, directory, pids: () => family(child), stop }
}

/** Every acknowledged commit is on disk; the other settings are those of a dedicated machine. */
const POSTGRES_SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=300',
  'shared_buffers=256MB',
  'max_wal_size=4GB',
  'fsync=on',
  'synchronous_commit=on',
  'log_min_messages=fatal',
]

export async function startPostgres(): Promise<Backing> {
  const port = await freePort()
  const directory = benchDirectory('postgres')
  const user = unprivileged()
  if (user !== undefined) chownSync(directory, user.uid, user.gid)
  chmodSync(directory, 0o700)
  const bin = postgresBinaries()
  const options = { ...user, cwd: directory, stdio: 'ignore' } as const
  const kind = ['-A', 'trust', '-U', 'postgres', '-E', 'utf8', '--locale=C', '--no-sync']
  execFileSync(join(bin, 'initdb'), ['-D', directory, ...kind], options)
  const flags = POSTGRES_SETTINGS.flatMap((setting) => ['-c', setting])
  const child = spawn(join(bin, 'postgres'), ['-D', directory, '-p', String(port), ...flags], options)
  endsWithUs(child)
  await listening(port, child)
  // It listens shortly before it accepts connections.
  await sleep(500)
  const stop = async (): Promise<void> => {
    await ended(child, 'SIGQUIT')
    removeDirectory(directory)
  }
  return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, directory, pids: () => family(child), stop }
}

/** As the programs report it themselves: `Redis server v=7.0.15 …`, `postgres (PostgreSQL) 15.13`. */
export function redisVersion(): string {
  return `Redis ${/v=(\S+)/.exec(outputOf('redis-server', ['--version']))?.[1] ?? 'that cannot be found'}`
}

export function postgresVersion(): string {
  const text = outputOf(join(postgresBinaries(), 'postgres'), ['--version'])
  return `PostgreSQL ${/\d+(?:\.\d+)*/.exec(text)?.[0] ?? 'that cannot be found'}`
}

function outputOf(program: string, args: readonly string[]): string {
  return spawnSync(program, args, { encoding: 'utf8' }).stdout ?? ''
}

/** Debian installs them outside of the path. */
function postgresBinaries(): string {
  const root = '/usr/lib/postgresql'
  try {
    const newest = readdirSync(root).sort((a, b) => Number(b) - Number(a))[0]
    if (newest !== undefined) return join(root, newest, 'bin')
  } catch {
    // Elsewhere they are on the path.
  }
  return join(outputOf('sh', ['-c', 'command -v postgres']).trim(), '..')
}

/** PostgreSQL refuses to run as root. */
function unprivileged(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  return { uid: Number(outputOf('id', ['-u', 'postgres'])), gid: Number(outputOf('id', ['-g', 'postgres'])) }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function listening(port: number, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}.`)
    const socket = connect(port, '127.0.0.1')
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    socket.destroy()
    if (isOpen) return
    await sleep(50)
  }
  throw new Error(`${child.spawnfile} does not listen on port ${port}.`)
}

/** Asks it to stop, and kills it after a while. */
export async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill(signal)
  const insist = setTimeout(() => child.kill('SIGKILL'), 8_000)
  await exited
  clearTimeout(insist)
}

function family(child: ChildProcess): readonly number[] {
  const { pid } = child
  if (pid === undefined) return []
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return [pid, ...(children === '' ? [] : children.split(' ').map(Number))]
}
