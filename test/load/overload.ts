/**
 * What a server does with three times the work that it can carry. First the most that it carries, with a hundred requests at
 * once that take turns on the same number of connections; then jobs come at three times that rate, whatever becomes of them; then the load falls to a single client.
 *
 *   npm run bench:overload
 *   npm run bench:overload -- --seconds 3         to see whether it runs at all
 *   npm run bench:overload -- --times 2
 *
 * Beside the load, a client of its own process asks fifty times a second: what it sees is the delay of the server, and not that of
 * the process that makes the load. Both are told; the aim counts for the client.
 *
 * The server has one core and the load another, in all phases (`--cores shared` lets both use all): else the load takes from the
 * server what it is measured by.
 *
 * Ends with an error when fewer than 90 % of the most are admitted, when a refusal takes longer than 50 ms (p99) or does not say
 * when to come again, or when refusals go on after the load has fallen.
 */
import { execFileSync, fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { LoadOrder, LoadReport } from './overload-generator.ts'
import { startServer } from './server-process.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    times: { type: 'string', default: '3' },
    connections: { type: 'string', default: '4000' },
    'at-once': { type: 'string', default: '100' },
    profile: { type: 'string', default: '' },
    cores: { type: 'string', default: 'apart' },
  },
})
const MS = Number(values.seconds) * 1_000
const CLIENT_TOKEN = 'overload-client-token-0123456789'
const GENERATOR = fileURLToPath(new URL('overload-generator.ts', import.meta.url))
const ADMITTED_MIN = 0.9
const REFUSED_MS_MAX = 50
const RECOVERED_MS_MAX = 1_000
const CONNECTIONS = Number(values.connections)
const AFTERWARDS_MS = 3_000
/** The client that asks beside the load. */
const CLIENT_PER_S = 50
const CLIENT_CONNECTIONS = 50

/** One client is all of them here. */
const ENV = { CLIENT_TOKEN, RATE_LIMIT_LIMIT: '1000000000', REQUESTS_AT_ONCE_MAX: '100000' }

/** The process that makes the load is busy itself, and notices answers late. */
interface Loaders {
  readonly heavy: ChildProcess
  readonly client: ChildProcess
}

/** With all its threads, and those that it starts later. */
function keepOn(core: number, { pid }: ChildProcess): void {
  if (values.cores === 'apart') execFileSync('taskset', ['-acp', String(core), String(pid)], { stdio: 'ignore' })
}

function startLoader(address: string, serverPid: number): ChildProcess {
  const loader = fork(GENERATOR, {
    execArgv: ['--conditions=source', '--import', 'tsx'],
    env: { ...process.env, LOAD_URL: address, LOAD_TOKEN: CLIENT_TOKEN, LOAD_SERVER_PID: String(serverPid) },
  })
  keepOn(1, loader)
  return loader
}

/** All begin together, when all their connections are there. */
async function load(...orders: readonly (readonly [ChildProcess, LoadOrder])[]): Promise<LoadReport[]> {
  await Promise.all(
    orders.map(([loader, order]) => {
      loader.send(order)
      return once(loader, 'message')
    }),
  )
  return Promise.all(
    orders.map(async ([loader]) => {
      loader.send('begin')
      const [report] = (await once(loader, 'message')) as [LoadReport]
      return report
    }),
  )
}

async function alone(loader: ChildProcess, order: LoadOrder): Promise<LoadReport> {
  const [report] = await load([loader, order])
  if (report === undefined) throw new Error('There is no report.')
  return report
}

function percentile(ms: readonly number[], share: number): number {
  const sorted = ms.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}

function spans(ms: readonly number[]): string {
  return `p50 ${percentile(ms, 0.5).toFixed(1)}, p99 ${percentile(ms, 0.99).toFixed(1)}, max ${percentile(ms, 1).toFixed(0)} ms`
}

function tell(name: string, report: LoadReport): void {
  const perS = (count: number): string => `${Math.round(count / (report.ms / 1_000))} /s`
  print(`${name}: sent ${perS(report.sent)}, admitted ${perS(report.admittedMs.length)} (${spans(report.admittedMs)})`)
  const { refusedMs, firstRefusedMs } = report
  if (refusedMs.length > 0) print(`  refused ${perS(refusedMs.length + firstRefusedMs.length)} (${spans(refusedMs)})`)
  if (firstRefusedMs.length > 0) print(`  in the first two seconds (${spans(firstRefusedMs)})`)
  const share = `${Math.round(report.serverShare * 100)} % of a core`
  print(`  the server had ${share}; the loop of this loader was late by p99 ${report.ownDelayMs.toFixed(1)} ms`)
  if (report.unsent > 0) print(`  not sent, because all connections were taken: ${perS(report.unsent)}`)
  if (Object.keys(report.others).length > 0) print(`  others: ${JSON.stringify(report.others)}`)
}

function admittedPerS({ admittedMs, ms }: LoadReport): number {
  return admittedMs.length / (ms / 1_000)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function main(address: string, serverPid: number): Promise<readonly string[]> {
  const loaders = { heavy: startLoader(address, serverPid), client: startLoader(address, serverPid) }
  try {
    return await measured(loaders)
  } finally {
    loaders.heavy.kill('SIGKILL')
    loaders.client.kill('SIGKILL')
  }
}

async function measured({ heavy, client }: Loaders): Promise<readonly string[]> {
  // Over the same connections as the load: a server with thousands of them does less than one with a few.
  const closed = { kind: 'closed', atOnce: Number(values['at-once']), connections: CONNECTIONS, ms: MS } as const
  // The first one warms up.
  await alone(heavy, { ...closed, ms: 3_000 })
  const peak = await alone(heavy, closed)
  tell('the most', peak)
  const perS = admittedPerS(peak) * Number(values.times)
  const [over, beside] = await load(
    [heavy, { kind: 'open', perS, ms: MS, connections: CONNECTIONS }],
    [client, { kind: 'open', perS: CLIENT_PER_S, ms: MS, connections: CLIENT_CONNECTIONS }],
  )
  if (over === undefined || beside === undefined) throw new Error('There is no report.')
  tell(`${values.times} times as much`, over)
  tell('a client beside it', beside)
  const after = await alone(heavy, { kind: 'closed', atOnce: 1, connections: 1, ms: AFTERWARDS_MS })
  tell('afterwards', after)
  const share = admittedPerS(over) / admittedPerS(peak)
  const perCpu = (share * peak.serverShare) / over.serverShare
  print(`for the same CPU time: admitted ${perCpu.toFixed(2)} of the most`)
  print(
    `admitted ${share.toFixed(2)} of the most; the last refusal came ${after.lastRefusalMs.toFixed(0)} ms after the load`,
  )
  return [
    ...(share < ADMITTED_MIN ? [`admitted less than ${ADMITTED_MIN} of the most`] : []),
    ...(percentile(beside.refusedMs, 0.99) > REFUSED_MS_MAX ? [`refusals took longer than ${REFUSED_MS_MAX} ms`] : []),
    ...(over.withoutRetryAfter > 0 ? [`${over.withoutRetryAfter} refusals did not say when to come again`] : []),
    ...(over.unsent > 0 ? ['so many requests waited for an answer that others could not be sent'] : []),
    ...(after.lastRefusalMs > RECOVERED_MS_MAX ? ['refusals went on after the load'] : []),
  ]
}

const directory = mkdtempSync(join(tmpdir(), 'impresario-bench-overload-'))
try {
  const { child, address } = await startServer({ directory, env: ENV, profile: values.profile })
  keepOn(0, child)
  try {
    const failures = await main(address, child.pid ?? 0)
    for (const failure of failures) print(`NOT kept: ${failure}`)
    if (failures.length === 0) print('kept')
    else process.exitCode = 1
  } finally {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'exit')
  }
} finally {
  rmSync(directory, { recursive: true, force: true })
}
