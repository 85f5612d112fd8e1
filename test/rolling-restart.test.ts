import { once } from 'node:events'
import { connect, createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server as TcpServer, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { contract } from '@impresario/protocol'
import { createServer } from '@impresario/server'
import type { Server } from '@impresario/server'
import { createWorker } from '@impresario/worker'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { startRedis } from './servers/redis-server.ts'
import type { TestServer } from './servers/redis-server.ts'

/* Two instances behind a balancer are restarted one after the other, and nobody who uses them notices. */

const greeter = contract('greeter', {
  greet: { input: z.object({ name: z.string() }), output: z.object({ greeting: z.string() }) },
})

const hello = blueprint(
  'hello',
  { input: z.object({ name: z.string() }), output: z.string(), start: 'greet' },
  (state) => ({
    greet: state.handler((context, actions) =>
      actions.dispatchTask(greeter.greet, { params: context.initialData, transitions: { success: 'greeted' } }),
    ),
    greeted: state.end({ result: (context) => context.resultOf(greeter.greet).greeting }),
  }),
)

const TOKENS = { clientToken: 'client-of-the-restart', workerToken: 'worker-of-the-restart' }

let redis: TestServer
beforeAll(async () => {
  redis = await startRedis(['--appendonly', 'no'])
}, 300_000)
afterAll(() => redis.remove())

async function anInstance(instanceId: string): Promise<Server> {
  const server = createServer({
    blueprints: [hello],
    settings: {
      ...TOKENS,
      storageUrl: redis.url,
      instanceId,
      apiHost: '127.0.0.1',
      apiPort: 0,
      logLevel: 'silent',
      shutdownDrainSeconds: 0.4,
    },
  })
  onTestFinished(() => server.stop())
  await server.start()
  return server
}

/** As simple as possible: each connection goes to the next instance that was ready a moment ago and responds now. */
class Balancer {
  readonly #tcp: TcpServer = createTcpServer((socket) => this.#connect(socket, this.#ready()))
  readonly #open = new Set<Socket>()
  readonly #checked = new Map<string, boolean>()
  #rotation = 0

  async listen(): Promise<string> {
    this.#tcp.listen(0, '127.0.0.1')
    await once(this.#tcp, 'listening')
    const { port } = this.#tcp.address() as AddressInfo
    return `http://127.0.0.1:${port}`
  }

  close(): void {
    this.#tcp.close()
    for (const socket of this.#open) socket.destroy()
  }

  async check({ address = '' }: Server): Promise<void> {
    const answer = await fetch(`${address}/_public/ready`).catch(() => undefined)
    this.#checked.set(address, answer?.status === 200)
  }

  #ready(): readonly string[] {
    return [...this.#checked].flatMap(([address, isReady]) => (isReady ? [address] : []))
  }

  #connect(client: Socket, ready: readonly string[]): void {
    this.#open.add(client)
    client.on('error', () => undefined)
    client.on('close', () => this.#open.delete(client))
    const [address, ...others] = [...ready.slice(this.#rotation % ready.length), ...ready].slice(0, ready.length)
    if (address === undefined) {
      client.destroy()
      return
    }
    this.#rotation += 1
    const instance = connect(Number(new URL(address).port), '127.0.0.1')
    instance.on('connect', () => client.pipe(instance).pipe(client))
    instance.on('error', () => (instance.connecting ? this.#connect(client, others) : client.destroy()))
    instance.on('close', () => client.destroy())
    client.on('close', () => instance.destroy())
  }
}

test(
  '[I-01] [I-07] instances are restarted one after the other without a failed request',
  { timeout: 120_000 },
  async () => {
    let running: readonly Server[] = [await anInstance('one'), await anInstance('two')]
    const balancer = new Balancer()
    const url = await balancer.listen()
    const traffic = { isOver: false, greeted: 0 }
    const checking = (async () => {
      while (!traffic.isOver) {
        await Promise.all(running.map((server) => balancer.check(server)))
        await sleep(20)
      }
    })()
    await Promise.all(running.map((server) => balancer.check(server)))
    const worker = createWorker({
      id: 'w',
      orchestrators: [{ url, token: TOKENS.workerToken }],
      concurrency: 4,
      webSockets: true,
      log: { debug() {}, info() {}, warn() {}, error() {} },
    })
    worker.handle(greeter, { greet: ({ name }) => ({ greeting: `Hello, ${name}!` }) })
    await worker.start()
    const client = createClient({ url, token: TOKENS.clientToken })
    const failures: unknown[] = []
    const asking = Array.from({ length: 3 }, async (_, number) => {
      for (let round = 0; !traffic.isOver; round += 1) {
        try {
          const job = await client.start(hello, { name: `${number}-${round}` })
          expect(await job.result()).toBe(`Hello, ${number}-${round}!`)
          traffic.greeted += 1
        } catch (error) {
          failures.push(error)
        }
      }
    })
    // No SDK: the worst that it sees is the end of a connection, which a retry resolves.
    const plain = (async () => {
      while (!traffic.isOver) {
        const headers = { 'x-client-token': TOKENS.clientToken }
        const ask = (): Promise<Response> => fetch(`${url}/api/v1/jobs?limit=1`, { headers })
        const answer = await ask().catch(() => ask())
        if (!answer.ok) failures.push(new Error(`${answer.status} ${await answer.text()}`))
        await answer.text()
      }
    })().catch((error: unknown) => failures.push(error))
    const more = async (jobs: number): Promise<void> => {
      const goal = traffic.greeted + jobs
      while (traffic.greeted < goal && failures.length === 0) await sleep(5)
    }
    await more(5)
    for (const name of ['one', 'two']) {
      const [oldest, other] = running
      await oldest!.stop()
      await more(5)
      running = [other!, await anInstance(name)]
      await more(5)
    }
    traffic.isOver = true
    await Promise.all([...asking, plain, checking])
    await worker.stop()
    balancer.close()
    expect(failures).toEqual([])
  },
)
