/**
 * A client that starts jobs at a steady rate, regardless of their results, and retries each request with its
 * idempotency key until it gets a response. It waits for some of the jobs, as people do.
 */
import { CLIENT_PATHS, ENDED_STATUSES } from '@impresario/protocol'
import { setTimeout as pause } from 'node:timers/promises'
import { textIn, WireLine } from './wire-line.ts'
import type { Mishaps } from './wire-line.ts'

export interface FeederReport {
  readonly type: 'report'
  readonly cured: Mishaps
  readonly incurable: Mishaps
  /** Requested jobs. */
  readonly attempted: number
  /** The number of each job and its acknowledged id. */
  readonly acknowledged: readonly (readonly [number, string])[]
  /** From the first request to its response, and to the notification of the job's end, in milliseconds. */
  readonly startMs: readonly number[]
  readonly endMs: readonly number[]
  /** Jobs that started late, because too many requests were open. */
  readonly late: number
}

const { FEEDER_URL = '', FEEDER_CA = '', FEEDER_TOKEN = '', FEEDER_RATE = '0', FEEDER_SECONDS = '0' } = process.env
const { FEEDER_BLUEPRINT = '' } = process.env
const RATE = Number(FEEDER_RATE)
const SECONDS = Number(FEEDER_SECONDS)
/** Beyond this the rate is not kept: a client with unlimited open requests would only measure itself. */
const OPEN_MAX = 2_000
const TICK_MS = 10
/** One in this many jobs is waited for. */
const WATCHED = 20
const WAIT_S = 25

const line = new WireLine(FEEDER_URL, FEEDER_CA, { 'x-client-token': FEEDER_TOKEN })
const acknowledged: (readonly [number, string])[] = []
const startMs: number[] = []
const endMs: number[] = []
let open = 0
let attempted = 0
let late = 0

async function start(index: number): Promise<void> {
  const began = performance.now()
  const body = { blueprint: FEEDER_BLUEPRINT, initial_data: { value: index }, idempotency_key: `cluster-${index}` }
  open += 1
  const answer = await line.insist('start', { method: 'POST', path: CLIENT_PATHS.jobs, body })
  open -= 1
  const id = answer?.body['job_id']
  if (typeof id !== 'string') return
  acknowledged.push([index, id])
  startMs.push(performance.now() - began)
  if (index % WATCHED === 0) await watch(id, began)
}

async function watch(id: string, began: number): Promise<void> {
  const path = `${CLIENT_PATHS.job(id)}?wait=${WAIT_S}&until=end&fields=status`
  while (!line.isClosing) {
    const answer = await line.insist('wait', { method: 'GET', path, timeoutMs: (WAIT_S + 5) * 1_000 })
    const status = textIn(answer?.body, 'status')
    if (status === 'quarantined' || ENDED_STATUSES.includes(status)) {
      endMs.push(performance.now() - began)
      return
    }
  }
}

async function feed(): Promise<void> {
  const began = performance.now()
  const starts: Promise<void>[] = []
  for (;;) {
    const elapsed = (performance.now() - began) / 1_000
    const due = Math.floor(Math.min(elapsed, SECONDS) * RATE)
    for (; attempted < due && open < OPEN_MAX; attempted += 1) starts.push(start(attempted))
    if (attempted < due) late += 1
    if (elapsed >= SECONDS) break
    await pause(TICK_MS)
  }
  await Promise.all(starts)
}

process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
const telling = setInterval(() => {
  const text = `${attempted} jobs asked for, ${acknowledged.length} acknowledged, ${open} requests open`
  process.send?.({ type: 'progress', text })
}, 15_000)
const given = new Promise<void>((resolve) => {
  // The time for all to end is over: the results so far are reported.
  process.on('message', (message) => (message === 'end' ? resolve() : undefined))
})
await Promise.race([feed(), given])
clearInterval(telling)
line.close()
const { cured, incurable } = line
const message: FeederReport = { type: 'report', cured, incurable, attempted, acknowledged, startMs, endMs, late }
await new Promise((resolve) => process.send?.(message, resolve))
process.kill(process.pid, 'SIGKILL')
