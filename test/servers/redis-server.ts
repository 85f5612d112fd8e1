import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { connect } from 'node:net'
import { ensure } from '../system/debian-packages.ts'
import { freePort } from './free-port.ts'
import { newDirectory } from './run-directory.ts'
import { startWatchdog } from './watchdog.ts'

/** A private server for a test: on a free port, in a temporary directory, with every write on disk before its reply. */
export interface TestServer {
  readonly port: number
  readonly url: string
  /** Only if it was requested. */
  readonly tlsPort: number | undefined
  /** Kills it at once, like a crash. */
  kill(): Promise<void>
  /** Restarts it on the data on disk. */
  start(): Promise<void>
  /** Suspends it, so that connections stay open and replies do not come. */
  pause(): void
  resume(): void
  /** Stops it and deletes everything. */
  remove(): Promise<void>
}

export interface TestServerOptions {
  /** A file to start from, which the server may write. */
  readonly configuration?: string
  readonly isSentinel?: boolean
  /** Also on a port with TLS. */
  readonly tlsPort?: boolean
}

const SAFE = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--loglevel', 'warning']

export async function startRedis(extra: readonly string[] = [], options: TestServerOptions = {}): Promise<TestServer> {
  const missing = ensure(['redis-server'])
  if (missing !== undefined) throw new Error(missing)
  const directory = newDirectory('redis')
  const port = await freePort()
  const tlsPort = options.tlsPort === true ? await freePort() : undefined
  const watchdog = startWatchdog('KILL', directory)
  const place = ['--bind', '127.0.0.1', '--port', String(port), '--dir', directory, '--daemonize', 'no']
  const flags = [
    ...(options.configuration === undefined ? [] : [options.configuration]),
    ...place,
    ...(tlsPort === undefined ? [] : ['--tls-port', String(tlsPort)]),
    ...(options.isSentinel === true ? ['--sentinel'] : SAFE),
    ...extra,
  ]
  let child: ChildProcess | undefined
  const start = async (): Promise<void> => {
    child = spawn('redis-server', flags, { stdio: 'ignore' })
    watchdog.watch(child.pid ?? 0)
    const ended = once(child, 'exit').then(() => {
      throw new Error('The server ended before it took commands')
    })
    await Promise.race([answers(port), ended])
    // From here on it may end, because tests stop it.
    ended.catch(() => undefined)
  }
  const kill = async (): Promise<void> => {
    if (child?.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    watchdog.watch(0)
  }
  await start()
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    tlsPort,
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
      rmSync(directory, { recursive: true, force: true })
      watchdog.dismiss()
    },
  }
}

/** Waits until the server accepts commands: it may have to load its data first. */
async function answers(port: number): Promise<void> {
  for (;;) {
    const socket = connect({ port, host: '127.0.0.1' })
    const answer = await new Promise<string>((resolve) => {
      socket.on('error', () => resolve(''))
      socket.on('data', (bytes) => resolve(bytes.toString()))
      socket.write('PING\r\n')
    })
    socket.destroy()
    if (answer.startsWith('+PONG') || answer.startsWith('-NOAUTH')) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
