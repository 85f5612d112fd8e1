import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createServer } from '@impresario/server'

/*
 * Automations on one server with its embedded file: how fast they start, how many run, how late they fire, what they cost.
 *
 *   npm run bench:automations -- [--automations 99000] [--runs 2000] [--seconds 30]
 */

const { values } = parseArgs({
  options: {
    automations: { type: 'string', default: '99000' },
    runs: { type: 'string', default: '2000' },
    seconds: { type: 'string', default: '30' },
  },
})
const TOKEN = 'token-of-the-bench-of-automations'
const STEP = { uses: 'transform', with: { value: 1 } }
const SENDERS = 32
const IDLE_TRIES = 200

const directory = mkdtempSync(join(tmpdir(), 'impresario-bench-automations-'))
const silent = (): void => undefined
const server = createServer({
  blueprints: [],
  log: { debug: silent, info: silent, warn: silent, error: (message) => console.error(message) },
  settings: {
    apiHost: '127.0.0.1',
    apiPort: 0,
    clientToken: TOKEN,
    storageUrl: `file:${join(directory, 'jobs.db')}`,
  },
})
try {
  const { address } = await server.start()
  await main(address)
} finally {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
}

async function call<T>(address: string, method: string, path: string, body?: object): Promise<T> {
  const answer = await fetch(`${address}/api/v1${path}`, {
    method,
    headers: { 'x-client-token': TOKEN, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`)
  return JSON.parse(text) as T
}

interface Run {
  readonly status: string
  readonly created_at: number
  readonly ended_at: number | null
  readonly trigger: { readonly scheduled_for?: number }
  readonly steps: readonly { readonly started_at: string }[]
}

async function main(address: string): Promise<void> {
  await idle(address)
  await throughput(address, Number(values.runs))
  await many(address, Number(values.automations), Number(values.seconds))
}

/** From the trigger to the first step, with nothing else to do. */
async function idle(address: string): Promise<void> {
  const pipeline = [{ id: 'one', ...STEP }]
  const { id } = await call<{ id: string }>(address, 'POST', '/automations', { title: 'idle', pipeline })
  const taken: number[] = []
  for (let count = 0; count < IDLE_TRIES; count += 1) {
    const askedAt = Date.now()
    const { run_id: runId } = await call<{ run_id: string }>(address, 'POST', `/automations/${id}/run`, {})
    const run = await ended(address, runId)
    taken.push(Math.max(0, Date.parse(run.steps[0]?.started_at ?? '') - askedAt))
  }
  console.log(`trigger to first step, idle: ${percentiles(taken)} ms`)
}

async function throughput(address: string, runs: number): Promise<void> {
  const pipeline = [
    { id: 'one', ...STEP },
    { id: 'two', ...STEP },
  ]
  const body = { title: 'busy', pipeline, overlap: 'parallel' }
  const { id } = await call<{ id: string }>(address, 'POST', '/automations', body)
  const begunAt = performance.now()
  let left = runs
  const ids: string[] = []
  const sender = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      ids.push((await call<{ run_id: string }>(address, 'POST', `/automations/${id}/run`, {})).run_id)
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, sender))
  for (const runId of ids.slice(-SENDERS)) await ended(address, runId)
  for (const runId of ids) await ended(address, runId)
  const seconds = (performance.now() - begunAt) / 1_000
  console.log(`two-step runs: ${(runs / seconds).toFixed(0)} per second (${runs} in ${seconds.toFixed(1)} s)`)
}

/** Many automations, each once an hour at its own second: how late they fire, and what memory they take. */
async function many(address: string, count: number, seconds: number): Promise<void> {
  globalThis.gc?.()
  const before = process.memoryUsage().rss
  let made = 0
  const maker = async (): Promise<void> => {
    while (made < count) {
      made += 1
      const body = { title: `hourly ${made}`, pipeline: [{ id: 'one', ...STEP }], triggers: [{ every: 3_600 }] }
      await call(address, 'POST', '/automations', body)
    }
  }
  const begunAt = performance.now()
  await Promise.all(Array.from({ length: SENDERS }, maker))
  const took = (performance.now() - begunAt) / 1_000
  globalThis.gc?.()
  const grownMb = (process.memoryUsage().rss - before) / 1_000_000
  console.log(`${count} automations made in ${took.toFixed(0)} s; the process grew by ${grownMb.toFixed(0)} MB`)
  const body = {
    title: 'each second',
    pipeline: [{ id: 'one', ...STEP }],
    triggers: [{ every: 1 }],
    overlap: 'parallel',
  }
  const { id } = await call<{ id: string }>(address, 'POST', '/automations', body)
  await sleep(seconds * 1_000)
  const runs = await call<readonly Run[]>(address, 'GET', `/runs?automation_id=${id}&limit=100`)
  const lags = runs.map((run) => (run.created_at - (run.trigger.scheduled_for ?? run.created_at)) * 1_000)
  console.log(`firing lag with ${count} automations: ${percentiles(lags)} ms over ${lags.length} firings`)
}

async function ended(address: string, runId: string): Promise<Run> {
  for (;;) {
    const run = await call<Run>(address, 'GET', `/runs/${runId}`)
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
