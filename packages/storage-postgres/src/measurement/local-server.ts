import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/**
 * A separate PostgreSQL for a measurement, with the settings of a new installation: every acknowledged write is on
 * disk.
 */
export interface LocalServer {
  readonly url: string
  /** User and system time of all its processes so far. */
  cpuSeconds(): number
  stop(): Promise<void>
}

export async function startLocalServer(settings: readonly string[] = []): Promise<LocalServer> {
  const bin = binaries()
  const user = unprivileged()
  const directory = mkdtempSync(join(tmpdir(), 'impresario-measure-'))
  chmodSync(directory, 0o700)
  if (user !== undefined) chownSync(directory, user.uid, user.gid)
  const data = join(directory, 'data')
  const options = { ...user, cwd: directory, stdio: 'ignore' } as const
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'impresario', '-A', 'trust', '-E', 'utf8', '--no-sync'], options)
  const port = await freePort()
  const place = ['listen_addresses=127.0.0.1', `unix_socket_directories=${directory}`, 'max_wal_size=4GB']
  const flags = [...place, ...settings].flatMap((setting) => ['-c', setting])
  const child = spawn(join(bin, 'postgres'), ['-D', data, '-p', String(port), ...flags], options)
  const url = `postgres://impresario@127.0.0.1:${port}/postgres`
  await untilReady(url)
  const main = child.pid ?? 0
  return {
    url,
    cpuSeconds: () => cpuOf(main),
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGQUIT')
      await exited
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** The newest version in Debian's directories, or the one on the path. */
function binaries(): string {
  const script =
    'ls -d /usr/lib/postgresql/*/bin/postgres 2>/dev/null | sort -V | tail -1 | grep . || command -v postgres'
  const found = spawnSync('sh', ['-c', script], { encoding: 'utf8' }).stdout.trim()
  if (found === '') throw new Error('There is no PostgreSQL to measure: install the package postgresql, or give --url.')
  return join(found, '..')
}

/** PostgreSQL refuses to run as root. */
function unprivileged(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }).trim())
  return { uid: idOf('-u'), gid: idOf('-g') }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function untilReady(url: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    try {
      await client.connect()
      return
    } catch (error) {
      if (attempt > 500) throw error
      await sleep(20)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
}

/** In the kernel's hundredths of a second: a process, its children that have ended, and those that run. */
function cpuOf(main: number): number {
  const children = readFileSync(`/proc/${main}/task/${main}/children`, 'utf8').trim().split(' ').filter(Boolean)
  let ticks = 0
  for (const pid of [String(main), ...children]) {
    const [own, ended] = ticksOf(pid)
    ticks += pid === String(main) ? own + ended : own
  }
  return ticks / 100
}

function ticksOf(pid: string): readonly [own: number, ended: number] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return [Number(fields[11]) + Number(fields[12]), Number(fields[13]) + Number(fields[14])]
  } catch {
    return [0, 0]
  }
}
