/**
 * How long a scrape of the metrics takes with a million jobs in the storage, while clients read jobs and while
 * nothing else happens. Between them the server is asked whether it is ready, which is next to no work: what that takes is the
 * machine's doing. The CPU time of the server for one scrape does not depend on what else the machine does.
 *
 *   npm run bench:scrape                              a million jobs in a file
 *   npm run bench:scrape -- --storage postgres --jobs 100000
 *
 * Ends with an error when the 99th percentile of an idle server is above 20 ms.
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openDirectory, startPostgres, startRedis } from '../backing.ts'
import type { Backing } from '../backing.ts'
import { Subordinate } from '../channel.ts'
import { cpuSeconds, foreignLoad, inFlightFor, now, percentile, sleep, untilQuiet } from '../measure.ts'
import type { DepthOrders } from '../million/orders.ts'
import { CLIENT_TOKEN, startServer } from '../processes.ts'
import type { ServerProcess } from '../processes.ts'

const { values } = parseArgs({
  options: {
    storage: { type: 'string', default: 'file' },
    jobs: { type: 'string', default: '1000000' },
    scrapes: { type: 'string', default: '200' },
    patience: { type: 'string', default: '60' },
  },
})

const MS_MAX = 20
const FILL_MS = 3_600_000
const START_MS = 900_000
/** So that the gauges are read anew, every five seconds, in the middle of it. */
const PAUSE_MS = 50
const WARM_UP = 5
const CPU_REQUESTS = 1_000
const DEPTH = fileURLToPath(new URL('../million/depth-main.js', import.meta.url))

async function backingOf(): Promise<Backing> {
  if (values.storage === 'redis') return startRedis('everysec')
  if (values.storage === 'postgres') return startPostgres()
  if (values.storage === 'file') return openDirectory('scrape')
  throw new Error('--storage takes file, redis or postgres.')
}

async function fill({ url }: Backing): Promise<void> {
  const filler = new Subordinate<DepthOrders>({ node: process.execPath, file: DEPTH, args: [values.storage, url] })
  try {
    await filler.ask('fill', FILL_MS, Number(values.jobs))
  } finally {
    await filler.stop()
  }
}

interface Scrapes {
  readonly spans: readonly number[]
  /** The same for requests that need no work. */
  readonly floor: readonly number[]
  /** What came last, to be sure that it is what was asked for. */
  readonly text: string
}

async function scrapes(url: string): Promise<Scrapes> {
  const spans: number[] = []
  const floor: number[] = []
  let text = ''
  for (let count = 0; count < Number(values.scrapes); count += 1) {
    for (const [path, times] of [['ready', floor] as const, ['metrics', spans] as const]) {
      const begin = now()
      const reply = await fetch(`${url}/_public/${path}`)
      text = await reply.text()
      times.push(now() - begin)
    }
    await sleep(PAUSE_MS)
  }
  return { spans: spans.slice(WARM_UP), floor: floor.slice(WARM_UP), text }
}

/** One after the other, without pauses: the kernel counts hundredths of a second. */
async function cpuMsOf({ url, pid }: ServerProcess, path: string): Promise<number> {
  const before = cpuSeconds([pid])
  for (let count = 0; count < CPU_REQUESTS; count += 1) await (await fetch(`${url}/_public/${path}`)).text()
  return ((cpuSeconds([pid]) - before) * 1_000) / CPU_REQUESTS
}

/** A page of jobs, as a client reads it. No new ones: a client may not have more than a million open. */
async function list(url: string): Promise<void> {
  const reply = await fetch(`${url}/api/v1/jobs?limit=50`, { headers: { authorization: `Bearer ${CLIENT_TOKEN}` } })
  if (!reply.ok) throw new Error(await reply.text())
  await reply.arrayBuffer()
}

function print(name: string, spans: readonly number[]): void {
  const cells = [50, 99, 100].map((percent) => percentile(spans, percent).toFixed(1).padStart(8))
  console.log(`${name.padEnd(12)} p50, p99, max in ms: ${cells.join('')}`)
}

const backing = await backingOf()
try {
  const begin = now()
  await fill(backing)
  console.error(`${values.jobs} jobs wait (${Math.round((now() - begin) / 1000)} s)`)
  const address = values.storage === 'file' ? `file:${backing.url}` : backing.url
  const server = await startServer(address, process.execPath, START_MS)
  try {
    const pids = (): readonly number[] => [server.pid, ...backing.pids()]
    await untilQuiet(pids, { leftMs: Number(values.patience) * 1000 })
    const [idle, foreign] = await foreignLoad(pids, () => scrapes(server.url))
    const load = { ms: Number(values.scrapes) * PAUSE_MS, count: Number.MAX_SAFE_INTEGER, width: 4 }
    const [busy] = await Promise.all([scrapes(server.url), inFlightFor(load, () => list(server.url))])
    const cpu = { ready: await cpuMsOf(server, 'ready'), metrics: await cpuMsOf(server, 'metrics') }
    print('idle', idle.spans)
    print('  floor', idle.floor)
    print('under load', busy.spans)
    print('  floor', busy.floor)
    console.log(
      `CPU of the server: ${cpu.metrics.toFixed(2)} ms for a scrape, ${cpu.ready.toFixed(2)} ms for the floor`,
    )
    const known = /^impresario_jobs\{.*\} (\d+)/m.exec(busy.text)?.[1] ?? 'none'
    console.log(`jobs that the metrics show: ${known}; ${busy.text.length} characters`)
    console.log(`others used ${foreign} % of the machine meanwhile`)
    const isKept = percentile(idle.spans, 99) <= MS_MAX
    console.log(isKept ? 'kept' : `NOT kept: it must be at most ${MS_MAX} ms`)
    if (!isKept) process.exitCode = 1
  } finally {
    await server.stop()
  }
} finally {
  await backing.stop()
}
