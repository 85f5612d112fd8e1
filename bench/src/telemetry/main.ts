/**
 * What tracing and metrics cost. Two servers, each with a worker and a storage of its own: one sends traces, metrics and its
 * log to a collector and is scraped, the other does neither. The same jobs go through both in rotation, slice by
 * slice, so that whatever the machine goes through meets both.
 *
 *   npm run bench:telemetry                           20 slices of 4,000 jobs on each side, storage in a file
 *   npm run bench:telemetry -- --storage redis --slices 10 --jobs 2000
 *   npm run bench:telemetry -- --signals traces       or metrics, logs; several with commas
 *   npm run bench:telemetry -- --scrape 1000 --send 1000    a scrape and an export of metrics every second
 *
 * Ends with an error when the throughput with telemetry is less than 95 % of that without.
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createClient } from '@impresario/client'
import type { Client } from '@impresario/client'
import { openDirectory, startPostgres, startRedis } from '../backing.ts'
import type { Backing } from '../backing.ts'
import { Subordinate } from '../channel.ts'
import { cpuSeconds, foreignLoad, inFlight, median, now, sleep, untilQuiet } from '../measure.ts'
import { CLIENT_TOKEN, startServer, startWorker } from '../processes.ts'
import type { ServerProcess, WorkerProcess } from '../processes.ts'
import type { CollectorOrders } from './orders.ts'

const { values } = parseArgs({
  options: {
    storage: { type: 'string', default: 'file' },
    slices: { type: 'string', default: '20' },
    jobs: { type: 'string', default: '4000' },
    width: { type: 'string', default: '100' },
    signals: { type: 'string', default: 'traces,metrics,logs' },
    patience: { type: 'string', default: '60' },
    /** As often as Prometheus and OpenTelemetry do it unless they are told otherwise. */
    scrape: { type: 'string', default: '15000' },
    send: { type: 'string', default: '60000' },
  },
})

const JOBS = Number(values.jobs)
const WIDTH = Number(values.width)
const SIGNALS: ReadonlySet<string> = new Set(['traces', 'metrics', 'logs'])
const SHARE_MIN = 0.95
const SCRAPE_MS = Number(values.scrape)
const SEND_MS = 200
const STUCK_MS = 10_000
const START_MS = 120_000
const COLLECTOR = fileURLToPath(new URL('collector-main.js', import.meta.url))

interface Side {
  readonly name: 'with' | 'without'
  readonly backing: Backing
  readonly server: ServerProcess
  readonly worker: WorkerProcess
  readonly client: Client
  readonly slices: Slice[]
}

interface Slice {
  readonly perS: number
  readonly serverCpuMs: number
}

async function backingOf(name: string): Promise<Backing> {
  if (values.storage === 'redis') return startRedis('everysec')
  if (values.storage === 'postgres') return startPostgres()
  if (values.storage === 'file') return openDirectory(`telemetry-${name}`)
  throw new Error('--storage takes file, redis or postgres.')
}

/** The variables that turn the wanted signals on. */
function telemetryAt(url: string): Readonly<Record<string, string>> {
  const variables: Record<string, string> = { OTEL_METRIC_EXPORT_INTERVAL: values.send }
  for (const signal of values.signals.split(',')) {
    if (!SIGNALS.has(signal)) throw new Error('--signals takes traces, metrics and logs, separated by commas.')
    variables[`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`] = `${url}/v1/${signal}`
  }
  return variables
}

async function openSide(name: Side['name'], environment: Readonly<Record<string, string>>): Promise<Side> {
  const backing = await backingOf(name)
  const url = values.storage === 'file' ? `file:${backing.url}` : backing.url
  const server = await startServer(url, process.execPath, START_MS, environment)
  const worker = await startWorker(server.url, WIDTH, JOBS)
  return { name, backing, server, worker, client: createClient({ url: server.url, token: CLIENT_TOKEN }), slices: [] }
}

/** From the first request to the end of the last task. What was made in it is sent, and counted, before the next begins, which is the other one's. */
async function slice({ server, worker, client }: Side): Promise<Slice> {
  worker.expect(JOBS)
  const cpuBefore = cpuSeconds([server.pid])
  const begin = now()
  await inFlight(JOBS, WIDTH, (index) => client.start('noop', { index }))
  const { at } = await worker.next('done')
  await sleep(SEND_MS)
  return { perS: JOBS / ((at - begin) / 1000), serverCpuMs: ((cpuSeconds([server.pid]) - cpuBefore) * 1000) / JOBS }
}

async function scrape({ server }: Side): Promise<string> {
  const reply = await fetch(`${server.url}/_public/metrics`)
  return reply.text()
}

/** The first slice of each is a warm-up. The order changes with each round: neither is always first. */
async function inRotation(sides: readonly Side[]): Promise<void> {
  const rounds = Number(values.slices)
  for (let round = 0; round <= rounds; round += 1) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const found = await slice(side)
      if (round > 0) side.slices.push(found)
    }
    console.error(
      `round ${round} of ${rounds}: ${sides.map((side) => Math.round(side.slices.at(-1)?.perS ?? 0)).join(' ')}`,
    )
  }
}

function sumOf(text: string, name: string): number {
  const lines = text.split('\n').filter((line) => line.startsWith(name) && !line.startsWith('#'))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

function report([on, off]: readonly [Side, Side], foreign: number): void {
  const rates = (side: Side): number => median(side.slices.map(({ perS }) => perS))
  // The kernel counts hundredths of a second, so the mean of all slices says more than that of the middle one.
  const cpu = (side: Side): number => side.slices.reduce((sum, one) => sum + one.serverCpuMs, 0) / side.slices.length
  // Slices of one round were measured beside each other: what disturbed both is not in their ratio.
  const share = median(on.slices.map(({ perS }, index) => perS / (off.slices[index]?.perS ?? Number.NaN)))
  console.log(`${''.padEnd(24)}${'with'.padStart(10)}${'without'.padStart(10)}`)
  console.log(
    `${'jobs per second'.padEnd(24)}${rates(on).toFixed(0).padStart(10)}${rates(off).toFixed(0).padStart(10)}`,
  )
  console.log(
    `${'server CPU, ms per job'.padEnd(24)}${cpu(on).toFixed(3).padStart(10)}${cpu(off).toFixed(3).padStart(10)}`,
  )
  console.log(`CPU time of the server with telemetry: ${((100 * cpu(on)) / cpu(off)).toFixed(1)} % of that without`)
  console.log(
    `throughput with telemetry: ${(100 * share).toFixed(1)} % of that without (${values.signals}, ${values.storage})`,
  )
  console.log(`others used ${foreign} % of the machine meanwhile`)
  const isKept = share >= SHARE_MIN
  console.log(isKept ? 'kept' : `NOT kept: it must be at least ${100 * SHARE_MIN} %`)
  if (!isKept) process.exitCode = 1
}

const collector = new Subordinate<CollectorOrders>({ node: process.execPath, file: COLLECTOR, args: [] })
const { url } = await collector.ask('listen', STUCK_MS)
const open: Side[] = []
try {
  const on = await openSide('with', telemetryAt(url))
  open.push(on)
  const off = await openSide('without', { OTEL_SDK_DISABLED: 'true' })
  open.push(off)
  const pids = (): readonly number[] => [
    collector.pid,
    ...open.flatMap(({ server, worker, backing }) => [server.pid, worker.pid, ...backing.pids()]),
  ]
  await untilQuiet(pids, { leftMs: Number(values.patience) * 1000 })
  const scraping = setInterval(() => {
    scrape(on).catch((error: unknown) => console.error(String(error)))
  }, SCRAPE_MS)
  const [, foreign] = await foreignLoad(pids, () => inRotation([on, off]))
  clearInterval(scraping)
  report([on, off], foreign)
  const text = await scrape(on)
  const { requests, bytes } = await collector.ask('taken', STUCK_MS)
  const [sent, lost] = [sumOf(text, 'impresario_spans_exported_total'), sumOf(text, 'impresario_spans_dropped_total')]
  console.log(
    `the collector took ${requests} requests, ${(bytes / 1e6).toFixed(0)} MB; spans sent ${sent}, lost ${lost}`,
  )
} finally {
  for (const { worker, server, backing } of open) {
    await worker.stop()
    await server.stop()
    await backing.stop()
  }
  await collector.stop()
}
