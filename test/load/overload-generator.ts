/**
 * A process that creates jobs, in one of two ways. *Closed*: so many requests at once, the next one as soon as one is answered. *Open*:
 * requests come at a fixed rate, whatever becomes of those before them, as from clients that know nothing of each other. In both
 * ways the connections are there before, and take turns. It talks to the server of this test on this machine only, for a bounded time.
 */
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'

export type LoadOrder =
  | { readonly kind: 'closed'; readonly atOnce: number; readonly ms: number; readonly connections: number }
  | { readonly kind: 'open'; readonly perS: number; readonly ms: number; readonly connections: number }

type Closed = Extract<LoadOrder, { kind: 'closed' }>
type Open = Extract<LoadOrder, { kind: 'open' }>

export interface LoadReport {
  readonly type: 'report'
  readonly ms: number
  readonly sent: number
  /** All connections were taken: the request was never sent. */
  readonly unsent: number
  readonly admittedMs: readonly number[]
  readonly refusedMs: readonly number[]
  /** Those in the first seconds, in which it has to become clear that there is too much. */
  readonly firstRefusedMs: readonly number[]
  /** Refusals that do not say when to come again. */
  readonly withoutRetryAfter: number
  readonly others: Readonly<Record<string, number>>
  /** When the last refusal came, after the beginning. */
  readonly lastRefusalMs: number
  /** How late the event loop of this process was (p99): so much of the times above is its own. */
  readonly ownDelayMs: number
  /** What the server had of a core. Less than one: others had the rest. */
  readonly serverShare: number
}

const { LOAD_URL = '', LOAD_TOKEN = '', LOAD_SERVER_PID = '' } = process.env
const { hostname, port, host } = new URL(LOAD_URL)
if (hostname !== '127.0.0.1') throw new Error('Only a server of this machine may be loaded.')

const BODY = JSON.stringify({ blueprint: 'brief', initial_data: { index: 0 } })
const REQUEST =
  `POST /api/v1/jobs HTTP/1.1\r\nHost: ${host}\r\nX-Client-Token: ${LOAD_TOKEN}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`
/** For answers that are still under way when the time is up. */
const REST_MS = 10_000
const TICK_MS = 2
const TICK_OF_KERNEL_MS = 10
const OPENING = 50
const ONSET_MS = 2_000
const DELAY_STEP_MS = 1

class Load {
  sent = 0
  unsent = 0
  withoutRetryAfter = 0
  lastRefusalMs = 0
  readonly admittedMs: number[] = []
  readonly refusedMs: number[] = []
  readonly firstRefusedMs: number[] = []
  readonly others: Record<string, number> = {}
  onAnswer = (): void => {}
  #began = performance.now()

  get elapsedMs(): number {
    return performance.now() - this.#began
  }

  /** From here on it counts. */
  begin(): void {
    this.#began = performance.now()
  }

  answered(head: string, sinceMs: number): void {
    const status = Number(head.slice(9, 12))
    const ms = performance.now() - sinceMs
    if (status >= 200 && status < 300) this.admittedMs.push(ms)
    else if (status === 503 || status === 429) {
      const spans = this.elapsedMs < ONSET_MS ? this.firstRefusedMs : this.refusedMs
      spans.push(ms)
      this.lastRefusalMs = this.elapsedMs
      if (!/\r\nretry-after: \d+/i.test(head)) this.withoutRetryAfter += 1
    } else this.other(`status ${status}`)
  }

  other(kind: string): void {
    this.others[kind] = (this.others[kind] ?? 0) + 1
  }
}

/** One request at a time. */
class Connection {
  readonly #load: Load
  readonly #pool: Free
  #socket: Socket | undefined
  #received = ''
  #since: number | undefined

  constructor(load: Load, pool: Free) {
    this.#load = load
    this.#pool = pool
  }

  get isBusy(): boolean {
    return this.#since !== undefined
  }

  /** The system has it before the server does, so it asks for something. */
  open(): Promise<void> {
    const socket = this.#connect()
    this.#socket = socket
    socket.write(`GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    return new Promise((resolve) => socket.once('data', () => resolve()))
  }

  send(): void {
    this.#load.sent += 1
    this.#since = performance.now()
    this.#socket ??= this.#connect()
    this.#socket.write(REQUEST)
  }

  close(): void {
    this.#socket?.destroy()
  }

  #connect(): Socket {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true })
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => this.#read(String(chunk)))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#socket = undefined
      if (this.#since === undefined) return
      this.#load.other('connection lost')
      this.#free()
    })
    return socket
  }

  #read(chunk: string): void {
    if (this.#since === undefined) return
    this.#received += chunk
    const end = this.#received.indexOf('\r\n\r\n')
    if (end === -1) return
    const head = this.#received.slice(0, end)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (this.#received.length < end + 4 + length) return
    this.#load.answered(head, this.#since)
    this.#free()
  }

  #free(): void {
    this.#since = undefined
    this.#received = ''
    this.#pool.add(this)
    this.#load.onAnswer()
  }
}

/** Those that are free, the one first that has been free for longest. */
class Free {
  readonly #ring: Connection[] = []
  #first = 0

  add(connection: Connection): void {
    this.#ring.push(connection)
  }

  take(): Connection | undefined {
    const connection = this.#ring[this.#first]
    if (connection === undefined) return undefined
    this.#first += 1
    // `shift` of thousands for each request would be a good part of the time.
    if (this.#first > 10_000) this.#ring.splice(0, this.#first)
    if (this.#first > 10_000) this.#first = 0
    return connection
  }
}

async function closed(load: Load, all: readonly Connection[], free: Free, order: Closed): Promise<void> {
  const { atOnce, ms } = order
  load.onAnswer = () => {
    if (load.elapsedMs < ms) free.take()?.send()
  }
  for (let index = 0; index < Math.min(atOnce, all.length); index += 1) free.take()?.send()
  await pause(ms)
}

async function open(load: Load, free: Free, { perS, ms }: Open): Promise<void> {
  const arrive = (): void => {
    const connection = free.take()
    if (connection === undefined) load.unsent += 1
    else connection.send()
  }
  while (load.elapsedMs < ms) {
    const due = Math.floor((load.elapsedMs / 1_000) * perS)
    while (load.sent + load.unsent < due) arrive()
    await pause(TICK_MS)
  }
}

/** Of all its threads. */
function serverCpuMs(): number {
  const text = readFileSync(`/proc/${LOAD_SERVER_PID}/stat`, 'latin1')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_OF_KERNEL_MS
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function run(order: LoadOrder): Promise<LoadReport> {
  const load = new Load()
  const delay = monitorEventLoopDelay({ resolution: DELAY_STEP_MS })
  const free = new Free()
  const connections = Array.from({ length: order.connections }, () => new Connection(load, free))
  // Clients keep their connections. A busy Node server takes one new connection in each turn of its event loop.
  for (let index = 0; index < connections.length; index += OPENING) {
    await Promise.all(connections.slice(index, index + OPENING).map((connection) => connection.open()))
  }
  for (const connection of connections) free.add(connection)
  process.send?.({ type: 'ready' })
  await new Promise((resolve) => process.once('message', resolve))
  load.begin()
  const serverMs = serverCpuMs()
  delay.enable()
  await (order.kind === 'closed' ? closed(load, connections, free, order) : open(load, free, order))
  const ms = load.elapsedMs
  const serverShare = (serverCpuMs() - serverMs) / ms
  delay.disable()
  const ownDelayMs = Math.max(0, delay.percentile(99) / 1e6 - DELAY_STEP_MS)
  for (let waited = 0; waited < REST_MS && connections.some(({ isBusy }) => isBusy); waited += 20) await pause(20)
  for (const connection of connections) connection.close()
  const { sent, unsent, admittedMs, refusedMs, firstRefusedMs, withoutRetryAfter, others, lastRefusalMs } = load
  const spans = { admittedMs, refusedMs, firstRefusedMs }
  return {
    type: 'report',
    ms,
    sent,
    unsent,
    ...spans,
    withoutRetryAfter,
    others,
    lastRefusalMs,
    ownDelayMs,
    serverShare,
  }
}

async function serve(): Promise<never> {
  for (;;) {
    const [order] = (await once(process, 'message')) as [LoadOrder]
    process.send?.(await run(order))
  }
}

void serve()
process.on('disconnect', () => process.exit())
