import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { ensure } from '../../../test/system/debian-packages.ts'

/** A server of its own for a test: on a free port, in a temporary directory, with every write on disk before its answer. */
export interface TestServer {
  readonly port: number
  readonly url: string
  /** Ends it at once, as a crash does. */
  kill(): Promise<void>
  /** Starts it again on what is on disk. */
  start(): Promise<void>
  /** Halts it, so that connections stay and answers do not come. */
  pause(): void
  resume(): void
  /** Ends it and deletes everything. */
  remove(): Promise<void>
}

export async function startRedis(extra: readonly string[] = []): Promise<TestServer> {
  const missing = ensure(['redis-server'])
  if (missing !== undefined) throw new Error(missing)
  const directory = mkdtempSync(join(tmpdir(), 'impresario-redis-'))
  const port = await freePort()
  let child: ChildProcess | undefined
  const start = async (): Promise<void> => {
    const settings = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--loglevel', 'warning']
    const place = ['--bind', '127.0.0.1', '--port', String(port), '--dir', directory, '--daemonize', 'no']
    child = spawn('redis-server', [...place, ...settings, ...extra], { stdio: 'ignore' })
    await answers(port)
  }
  const kill = async (): Promise<void> => {
    if (child?.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  await start()
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    kill,
    start,
    pause() {
      child?.kill('SIGSTOP')
    },
    resume() {
      child?.kill('SIGCONT')
    },
    async remove() {
      await kill()
      rmSync(directory, { recursive: true })
    },
  }
}

/** Waits until the server takes commands: it may have to load its data first. */
async function answers(port: number): Promise<void> {
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => 20 })
  client.on('error', () => undefined)
  client.connect().catch(() => undefined)
  await new Promise((resolve) => client.once('ready', resolve))
  client.disconnect()
}

async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('There is no free port')
  return address.port
}
