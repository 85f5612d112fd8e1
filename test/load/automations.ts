import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startServer } from './server-process.ts'

/*
 * Automations on one server with its embedded file: how fast they start, how many run, how late they fire, what they cost.
 * The server is a process of its own, started as users start it; this process only asks. Linux only.
 *
 *   npm run bench:automations -- [--only idle,throughput,many] [--automations 99000] [--runs 10000] [--seconds 30]
 *                                [--profile DIRECTORY]
 */

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'idle,throughput,many' },
    automations: { type: 'string', default: '99000' },
    runs: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '30' },
    /** Where the server writes its CPU profiles when it ends. */
    profile: { type: 'string' },
  },
})
const TOKEN = 'token-of-the-bench-of-automations'
const STEP = { uses: 'transform', with: { value: 1 } }
const SENDERS = 64
const IDLE_TRIES = 200
const WARM_UP_RUNS = 1_000
/** So that a garbage collection that is due has happened. */
const SETTLE_MS = 5_000
const MB = 1_000_000

const directory = mkdtempSync(join(tmpdir(), 'impresario-bench-automations-'))
mkdirSync(join(directory, 'blueprints'))
const agent = new Agent({ keepAlive: true, maxSockets: SENDERS })
const env = {
  CLIENT_TOKEN: TOKEN,
  BLUEPRINTS_DIR: join(directory, 'blueprints'),
  LOG_LEVEL: 'info',
  // One client makes all of them, as fast as it can.
  RATE_LIMIT_LIMIT: '1000000000',
}
let server = await startServer({ directory, env, profile: values.profile })
try {
  const wanted = values.only.split(',')
  if (wanted.includes('idle')) await idle()
  if (wanted.includes('throughput')) await throughput(Number(values.runs))
  if (wanted.includes('many')) await many(Number(values.automations), Number(values.seconds))
} finally {
  await stopServer()
  agent.destroy()
  rmSync(directory, { recursive: true, force: true })
}

async function stopServer(): Promise<void> {
  if (server.child.exitCode !== null) return
  server.child.kill('SIGTERM')
  await once(server.child, 'exit')
}

async function ask(method: string, path: string, body?: object): Promise<string> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = { 'x-client-token': TOKEN, 'content-type': 'application/json', 'content-length': String(text.length) }
  return new Promise((resolve, reject) => {
    const outgoing = request(`${server.address}${path}`, { method, headers, agent }, (answer) => {
      const parts: Buffer[] = []
      answer.on('data', (part: Buffer) => parts.push(part))
      answer.once('error', reject)
      answer.once('end', () => {
        const said = Buffer.concat(parts).toString()
        const { statusCode = 0 } = answer
        if (statusCode < 300) resolve(said)
        else reject(new Error(`${method} ${path}: ${statusCode} ${said.slice(0, 300)}`))
      })
    })
    outgoing.once('error', reject)
    outgoing.end(text)
  })
}

async function call<T>(method: string, path: string, body?: object): Promise<T> {
  return JSON.parse(await ask(method, `/api/v1${path}`, body)) as T
}

interface Run {
  readonly status: string
  readonly created_at: number
  readonly ended_at: number | null
  readonly trigger: { readonly scheduled_for?: number }
  readonly steps: readonly { readonly started_at: string }[]
}

/** From the trigger to the first step, with nothing else to do. */
async function idle(): Promise<void> {
  const pipeline = [{ id: 'one', ...STEP }]
  const { id } = await call<{ id: string }>('POST', '/automations', { title: 'idle', pipeline })
  const taken: number[] = []
  for (let count = 0; count < IDLE_TRIES; count += 1) {
    const askedAt = Date.now()
    const { run_id: runId } = await call<{ run_id: string }>('POST', `/automations/${id}/run`, {})
    const run = await ended(runId)
    taken.push(Math.max(0, Date.parse(run.steps[0]?.started_at ?? '') - askedAt))
  }
  print(`trigger to first step, idle: ${percentiles(taken)} ms`)
}

/** Requests that run an automation, as many at a time as there are senders; counted are the runs that the server completes. */
async function throughput(runs: number): Promise<void> {
  const pipeline = [
    { id: 'one', ...STEP },
    { id: 'two', ...STEP },
  ]
  const body = { title: 'busy', pipeline, overlap: 'parallel' }
  const { id } = await call<{ id: string }>('POST', '/automations', body)
  await complete(id, Math.min(runs, WARM_UP_RUNS))
  const cpuBefore = cpuSeconds()
  const begunAt = performance.now()
  await complete(id, runs)
  const seconds = (performance.now() - begunAt) / 1_000
  const cpuMs = ((cpuSeconds() - cpuBefore) / runs) * 1_000
  const rate = (runs / seconds).toFixed(0)
  print(
    `two-step runs: ${rate} per second (${runs} in ${seconds.toFixed(1)} s), ${cpuMs.toFixed(2)} ms CPU of the server each`,
  )
}

/** Starts so many runs, and waits for the end of all of them. */
async function complete(id: string, runs: number): Promise<void> {
  const before = await finished()
  let left = runs
  const sender = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await ask('POST', `/api/v1/automations/${id}/run`, {})
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, sender))
  while ((await finished()) < before + runs) await sleep(20)
}

/** Runs that the server has completed. */
async function finished(): Promise<number> {
  const text = await ask('GET', '/metrics')
  const line = /^impresario_jobs_ended_total\{blueprint="automation",outcome="finished"\} (\d+)$/m
  return Number(line.exec(text)?.[1] ?? 0)
}

/** Many automations, each once an hour at its own second: how late they fire, and what memory they take. */
async function many(count: number, seconds: number): Promise<void> {
  const before = await restarted()
  let made = 0
  const maker = async (): Promise<void> => {
    while (made < count) {
      made += 1
      const body = { title: `hourly ${made}`, pipeline: [{ id: 'one', ...STEP }], triggers: [{ every: 3_600 }] }
      await ask('POST', '/api/v1/automations', body)
    }
  }
  const begunAt = performance.now()
  await Promise.all(Array.from({ length: SENDERS }, maker))
  const took = (performance.now() - begunAt) / 1_000
  await sleep(SETTLE_MS)
  const after = rssMb()
  const fresh = await restarted()
  print(`${count} automations made in ${took.toFixed(0)} s`)
  print(
    `memory of the server: ${before.toFixed(0)} MB without them, ${after.toFixed(0)} MB after making them, ${fresh.toFixed(0)} MB after a restart with them`,
  )
  const body = {
    title: 'each second',
    pipeline: [{ id: 'one', ...STEP }],
    triggers: [{ every: 1 }],
    overlap: 'parallel',
  }
  const { id } = await call<{ id: string }>('POST', '/automations', body)
  await sleep(seconds * 1_000)
  const runs = await call<readonly Run[]>('GET', `/runs?automation_id=${id}&limit=100`)
  const lags = runs.map((run) => (run.created_at - (run.trigger.scheduled_for ?? run.created_at)) * 1_000)
  print(`firing lag with ${count} automations: ${percentiles(lags)} ms over ${lags.length} firings`)
  print(`memory of the server after that: ${rssMb().toFixed(0)} MB`)
}

/** The memory of a server that has just started with what there is, in MB. */
async function restarted(): Promise<number> {
  await stopServer()
  server = await startServer({ directory, env, profile: values.profile })
  await call('GET', '/automations?limit=1')
  await sleep(SETTLE_MS)
  return rssMb()
}

function rssMb(): number {
  const status = readFileSync(`/proc/${server.child.pid ?? 0}/status`, 'utf8')
  const [, kb = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? []
  return (Number(kb) * 1_024) / MB
}

/** User and system time, of ticks of a hundredth of a second. */
function cpuSeconds(): number {
  const stat = readFileSync(`/proc/${server.child.pid ?? 0}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

async function ended(runId: string): Promise<Run> {
  for (;;) {
    const run = await call<Run>('GET', `/runs/${runId}`)
    if (run.ended_at !== null) return run
    await sleep(5)
  }
}

function percentiles(all: readonly number[]): string {
  const sorted = all.toSorted((a, b) => a - b)
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(1)
  return `p50 ${at(0.5)}, p99 ${at(0.99)}`
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
