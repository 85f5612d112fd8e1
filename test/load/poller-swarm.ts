/**
 * A process with many idle workers: each keeps one long poll open on a connection of its own and sends heartbeats at the
 * pace of the SDK. It writes and reads HTTP by hand, so that ten thousand of them cost this process little.
 */
import { LIMITS, WORKER_PATHS } from '@impresario/protocol'
import { connect } from 'node:net'
import type { Socket } from 'node:net'

/** What the swarm has done since its start. */
export interface PollerReport {
  readonly type: 'report'
  readonly polls: number
  readonly beats: number
  readonly tasks: number
  /** Answers other than 2xx, and connections that were lost, by kind. */
  readonly mishaps: Readonly<Record<string, number>>
}

const { SWARM_URL = '', SWARM_TOKEN = '', SWARM_SIZE = '0', SWARM_NAME = 'poller' } = process.env
/** As the SDK does it. */
const HEARTBEAT_MS = 15_000
const POLL_S = LIMITS.longPollMs / 1_000
/** Connections that carry registrations and heartbeats, each one after the other. */
const LINES = 50
const RETRY_MS = 1_000

const { hostname, port, host } = new URL(SWARM_URL)
const totals = { polls: 0, beats: 0, tasks: 0 }
const mishaps: Record<string, number> = {}

function count(kind: string): void {
  mishaps[kind] = (mishaps[kind] ?? 0) + 1
}

function requestText(method: string, path: string, workerId: string, body: object): string {
  const text = JSON.stringify(body)
  return (
    `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nX-Worker-Token: ${SWARM_TOKEN}\r\nX-Worker-ID: ${workerId}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  )
}

/** One connection with one request under way at a time. */
class Line {
  #socket: Socket | undefined
  #received = ''
  #done: ((status: number, body: string) => void) | undefined

  /** Status 0: the connection was lost. */
  send(text: string): Promise<{ readonly status: number; readonly body: string }> {
    return new Promise((resolve) => {
      this.#done = (status, body) => {
        this.#done = undefined
        this.#received = ''
        resolve({ status, body })
      }
      this.#socket ??= this.#open()
      this.#socket.write(text)
    })
  }

  #open(): Socket {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true })
    socket.setEncoding('utf8')
    socket.on('data', (chunk) => this.#read(String(chunk)))
    socket.on('error', (error) => count('code' in error ? String(error.code) : error.message))
    socket.on('close', () => {
      this.#socket = undefined
      this.#done?.(0, '')
    })
    return socket
  }

  #read(chunk: string): void {
    this.#received += chunk
    const end = this.#received.indexOf('\r\n\r\n')
    if (end === -1) return
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#received)?.[1] ?? 0)
    const body = this.#received.slice(end + 4)
    if (body.length >= length) this.#done?.(Number(this.#received.slice(9, 12)), body)
  }
}

/** Lends the shared connections out. */
class Lines {
  readonly #free = Array.from({ length: LINES }, () => new Line())
  readonly #waiting: ((line: Line) => void)[] = []

  async send(text: string): Promise<number> {
    const line = this.#free.pop() ?? (await new Promise<Line>((resolve) => this.#waiting.push(resolve)))
    const { status } = await line.send(text)
    const next = this.#waiting.shift()
    if (next === undefined) this.#free.push(line)
    else next(line)
    if (status < 200 || status > 299) count(`status ${status}`)
    return status
  }
}

const lines = new Lines()

async function register(id: string): Promise<void> {
  const body = {
    worker_id: id,
    worker_type: 'poller',
    supported_skills: [{ name: 'never' }],
    resources: { max_concurrent_tasks: 1 },
  }
  const text = requestText('POST', WORKER_PATHS.register, id, body)
  while ((await lines.send(text)) !== 200) await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
}

async function poll(id: string): Promise<void> {
  const line = new Line()
  const text = requestText('POST', WORKER_PATHS.taskBatch(id), id, { limit: 1, timeout: POLL_S })
  for (;;) {
    const { status, body } = await line.send(text)
    totals.polls += 1
    if (status === 200 && body !== '{"tasks":[]}') totals.tasks += 1
    if (status === 200) continue
    count(`poll ${status}`)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

function beat(id: string): void {
  // What an idle worker of the SDK says each time.
  const text = requestText('PATCH', WORKER_PATHS.worker(id), id, {
    worker_id: id,
    status: 'idle',
    load: 0,
    current_tasks: [],
    available_skills: ['never'],
    hot_skills: [],
    hot_cache: [],
  })
  const next = (): void => {
    void lines.send(text).then(() => {
      totals.beats += 1
    })
    setTimeout(next, HEARTBEAT_MS)
  }
  setTimeout(next, Math.random() * HEARTBEAT_MS)
}

process.on('message', (message) => {
  if (message === 'report') process.send?.({ type: 'report', ...totals, mishaps } satisfies PollerReport)
})
process.on('disconnect', () => process.exit())

const names = Array.from({ length: Number(SWARM_SIZE) }, (_, index) => `${SWARM_NAME}-${index}`)
await Promise.all(
  Array.from({ length: LINES }, async () => {
    for (let id = names.pop(); id !== undefined; id = names.pop()) {
      await register(id)
      void poll(id)
      beat(id)
    }
  }),
)
process.send?.({ type: 'ready' })
