import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { benchDirectory, ended, endsWithUs, freePort, removeDirectory } from '../backing.ts'
import type { Backing } from '../backing.ts'
import { untilNoneOpen } from '../contest/agreement.ts'
import type { Contestant, Payload, Venue } from '../contest/contestant.ts'
import { homeOf, loadModules } from '../contest/peer-home.ts'
import { now, sleep } from '../measure.ts'

interface Context {
  run(name: string, work: () => number): Promise<number>
}
type Handler = (context: Context, payload: Payload) => Promise<number>
interface Calls {
  job(payload: Payload): Promise<unknown>
  flow(payload: Payload): Promise<unknown>
}
interface Modules {
  readonly RestatePromise: { all(calls: readonly Promise<number>[]): Promise<readonly number[]> }
  readonly service: (definition: {
    readonly name: string
    readonly handlers: Readonly<Record<string, Handler>>
  }) => object
  readonly serve: (options: object) => Promise<unknown>
  readonly connect: (options: { readonly url: string }) => {
    serviceSendClient(service: { readonly name: string }): Calls
  }
}

const modules = (): Promise<Modules> => loadModules('restate')
const SERVICE = 'bench'
const START_MS = 30_000

/** Its ports: for calls, for administration, and the one that our service listens on. */
interface Ports {
  readonly ingress: number
  readonly admin: number
  readonly service: number
}

/** Type boundary for our own `url`. */
function portsOf({ url }: Pick<Venue, 'url'>): Ports {
  return JSON.parse(url) as Ports
}

async function start(): Promise<Backing> {
  const ports: Ports = { ingress: await freePort(), admin: await freePort(), service: await freePort() }
  const nodePort = await freePort()
  const directory = benchDirectory('restate')
  const platform = `restate-server-${process.platform}-${process.arch}`
  const program = join(homeOf('restate'), 'node_modules', '@restatedev', platform, 'bin', 'restate-server')
  const place = ['--base-dir', directory, '--bind-ip', '127.0.0.1', '--bind-port', String(nodePort)]
  const child = spawn(program, ['--no-logo', ...place, '--listen-mode', 'tcp'], {
    stdio: 'ignore',
    cwd: directory,
    env: {
      ...process.env,
      DO_NOT_TRACK: '1',
      RESTATE_DISABLE_TELEMETRY: 'true',
      RESTATE_LOG_FILTER: 'warn',
      RESTATE_ADVERTISED_HOST: '127.0.0.1',
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ports.ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${ports.admin}`,
    },
  })
  endsWithUs(child)
  await healthy(`http://127.0.0.1:${ports.admin}/health`)
  await healthy(`http://127.0.0.1:${ports.ingress}/restate/health`)
  const stop = async (): Promise<void> => {
    await ended(child, 'SIGTERM')
    removeDirectory(directory)
  }
  return { url: JSON.stringify(ports), directory, pids: () => [child.pid ?? 0], stop }
}

async function healthy(url: string): Promise<void> {
  const endsAt = now() + START_MS
  while (now() < endsAt) {
    const answer = await fetch(url).catch(() => undefined)
    if (answer?.ok === true) return
    await sleep(100)
  }
  throw new Error(`${url} did not become healthy.`)
}

async function mustPost(url: string, body: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`${url}: ${await answer.text()}`)
  return answer.json()
}

async function openInvocations(admin: number): Promise<number> {
  const query = `SELECT count(*) AS open FROM sys_invocation WHERE status <> 'completed'`
  return openIn(await mustPost(`http://127.0.0.1:${admin}/query`, { query }))
}

/** Type boundary: the result of our own query has the requested column. */
function openIn(answer: unknown): number {
  const { rows } = answer as { readonly rows: readonly { readonly open: number }[] }
  return rows[0]?.open ?? 0
}

export const restate: Contestant = {
  title: 'Restate',
  home: { folder: 'restate', packages: ['@restatedev/restate-server', '@restatedev/restate-sdk'] },
  variants: {
    server: {
      league: 'embedded',
      durability: 'its own server, RocksDB log with fsync',
      shape: 'apart',
      // It pushes work to the service as it arrives: nothing waits to be drained.
      without: ['drain'],
      jobsMax: 5_000,
      flowsMax: 2_000,
      note: 'One-way calls through its HTTP door; diamonds are four durable steps of one handler.',
    },
  },
  serve: start,
  async producer(place) {
    const { connect } = await modules()
    const { ingress, admin } = portsOf(place)
    const calls = connect({ url: `http://127.0.0.1:${ingress}` }).serviceSendClient({ name: SERVICE })
    return {
      start: (payload) => calls.job(payload),
      flow: (payload) => calls.flow(payload),
      settled: () => untilNoneOpen(() => openInvocations(admin)),
      close: async () => {},
    }
  },
  async worker(place, hooks) {
    const { service, serve, RestatePromise } = await modules()
    const job: Handler = async (_context, payload) => {
      hooks.started(payload)
      hooks.ended(payload)
      return 1
    }
    const flow: Handler = async (context, payload) => {
      const a = await context.run('A', () => 1)
      const sides = [context.run('B', () => a + 1), context.run('C', () => a + 2)]
      const [b = 0, c = 0] = await RestatePromise.all(sides)
      const result = await context.run('D', () => b + c)
      hooks.flowEnded(payload)
      return result
    }
    const services = [service({ name: SERVICE, handlers: { job, flow } })]
    await serve({ services, port: portsOf(place).service, logger: () => undefined })
    return { close: async () => {} }
  },
  async introduce(place) {
    const { admin, service } = portsOf(place)
    await mustPost(`http://127.0.0.1:${admin}/deployments`, { uri: `http://127.0.0.1:${service}` })
    await sleep(500)
  },
}
