import { fork, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { ended, endsWithUs, freePort } from './backing.ts'
import { now, sleep } from './measure.ts'

export const CLIENT_TOKEN = 'bench-client-token-0123456789'
export const WORKER_TOKEN = 'bench-worker-token-0123456789'

const CLI = fileURLToPath(new URL('../../apps/cli/dist/main.js', import.meta.url))
const BLUEPRINTS = fileURLToPath(new URL('blueprints', import.meta.url))
const WORKER = fileURLToPath(new URL('worker-main.js', import.meta.url))

/** A busy machine needs time. */
const READY_MS = 120_000

export interface ServerProcess {
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

/** The product as users run it, in a separate process. */
export async function startServer(
  storageUrl: string,
  node: string = process.execPath,
  readyMs: number = READY_MS,
  environment: Readonly<Record<string, string>> = {},
): Promise<ServerProcess> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const args = process.env['BENCH_SERVER_ARGS']?.split(' ') ?? []
  const child = spawn(node, [...args, CLI, 'start'], {
    stdio: ['ignore', process.env['BENCH_SERVER_OUTPUT'] === undefined ? 'ignore' : 'inherit', 'inherit'],
    env: {
      ...process.env,
      API_HOST: '127.0.0.1',
      API_PORT: String(port),
      STORAGE_URL: storageUrl,
      BLUEPRINTS_DIR: BLUEPRINTS,
      CLIENT_TOKEN,
      // Counted as usual, and never reached: one client and one worker do all the work here.
      RATE_LIMIT_LIMIT: '1000000000',
      WORKER_TOKEN,
      LOG_LEVEL: 'warn',
      ...environment,
    },
  })
  endsWithUs(child)
  await untilReady(url, child, readyMs)
  return { url, pid: child.pid ?? 0, stop: () => ended(child, 'SIGTERM') }
}

async function untilReady(url: string, child: ChildProcess, readyMs: number): Promise<void> {
  const endsAt = now() + readyMs
  while (now() < endsAt) {
    if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode}.`)
    const answer = await fetch(`${url}/_public/ready`).catch(() => undefined)
    if (answer?.ok === true) return
    await sleep(20)
  }
  child.kill('SIGKILL')
  throw new Error('The server did not become ready.')
}

interface Message {
  readonly type: string
  readonly at: number
  readonly first: number
}

export interface WorkerProcess {
  readonly pid: number
  expect(count: number): void
  next(type: string): Promise<Message>
  stop(): Promise<void>
}

export async function startWorker(url: string, concurrency: number, expected: number): Promise<WorkerProcess> {
  const child = fork(WORKER, {
    env: {
      ...process.env,
      BENCH_URL: url,
      BENCH_TOKEN: WORKER_TOKEN,
      BENCH_CONCURRENCY: String(concurrency),
      BENCH_EXPECT: String(expected),
    },
  })
  const waiting = new Map<string, (message: Message) => void>()
  const kept = new Map<string, Message>()
  child.on('message', (message: Message) => {
    const resolve = waiting.get(message.type)
    if (resolve === undefined) kept.set(message.type, message)
    waiting.delete(message.type)
    resolve?.(message)
  })
  const next = (type: string): Promise<Message> => {
    const found = kept.get(type)
    kept.delete(type)
    return found === undefined ? new Promise((resolve) => waiting.set(type, resolve)) : Promise.resolve(found)
  }
  await next('ready')
  const stop = async (): Promise<void> => {
    const exited = once(child, 'exit')
    child.send({ type: 'exit' })
    await exited
  }
  const expect = (count: number): void => {
    child.send({ type: 'expect', count })
  }
  return { pid: child.pid ?? 0, next, stop, expect }
}
