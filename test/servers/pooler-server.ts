import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensure } from '../system/debian-packages.ts'
import { freePort } from './free-port.ts'
import { unprivileged, untilReady } from './postgres-server.ts'
import type { PostgresServer } from './postgres-server.ts'
import { newDirectory } from './run-directory.ts'
import { startWatchdog } from './watchdog.ts'

/** Why there is no pooler to test with; `undefined` if there is one. */
export const missingPooler: string | undefined = ensure(['pgbouncer'])

export interface PoolerServer {
  readonly url: string
  stop(): Promise<void>
}

/** Assigns server connections per transaction, and has only two of them. */
export async function startPooler(server: PostgresServer): Promise<PoolerServer> {
  const user = unprivileged()
  const directory = newDirectory('pooler')
  const watchdog = startWatchdog('KILL', directory)
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
  watchdog.watch(child.pid ?? 0)
  const url = `postgres://impresario@127.0.0.1:${port}/postgres`
  await untilReady(url)
  return {
    url,
    async stop() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      watchdog.watch(0)
      watchdog.dismiss()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
