import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { parseExact, stringifyExact } from '@impresario/protocol'
import type {
  EventRequest,
  HeartbeatRequest,
  RegisterRequest,
  ResultRequest,
  TaskBatchRequest,
  WireTask,
} from '@impresario/protocol'
import { WebSocketServer, type WebSocket } from 'ws'
import type { Log } from './runtime/log.ts'

interface WaitingPoll {
  readonly limit: number
  readonly single: boolean
  readonly response: ServerResponse
}

export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
  /** The common name of the client's certificate. */
  readonly certificate: string | undefined
  readonly at: number
}

interface Substitute {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

interface Tls {
  readonly key: string
  readonly cert: string
  readonly ca: string
}

/** A small orchestrator for tests: speaks the wire protocol over HTTP, knows no jobs, forgets when told to. */
export class TestOrchestrator {
  readonly registrations: RegisterRequest[] = []
  readonly heartbeats: HeartbeatRequest[] = []
  readonly polls: TaskBatchRequest[] = []
  readonly resultPosts: (readonly ResultRequest[])[] = []
  readonly events: EventRequest[] = []
  readonly requests: SeenRequest[] = []
  /** Answers a request instead of the usual: `drop` breaks the connection, `hold` never answers. */
  intercept: ((request: SeenRequest) => Substitute | 'drop' | 'hold' | undefined) | undefined
  /** Added to the answer to a heartbeat, once. */
  heartbeatReply: object | undefined
  readonly sockets: WebSocket[] = []
  readonly frames: EventRequest[] = []
  /** Answers every message of a socket with its id. */
  acknowledges = true
  readonly #batch: boolean
  readonly #known = new Set<string>()
  readonly #tasks: WireTask[] = []
  readonly #cancelled: string[] = []
  #waiting: WaitingPoll[] = []
  readonly #watchers: (() => void)[] = []
  #server: Server | undefined
  #port = 0
  /** Answers this instead, until it is set back: `drop` breaks the connection. */
  resultsFault: 'none' | 'drop' | 'refuse' | 'refuse each success' | 'hold' = 'none'
  readonly #heldResponses: (() => void)[] = []

  readonly #tls: Tls | undefined

  constructor(options: { readonly batch?: boolean; readonly tls?: Tls } = {}) {
    this.#batch = options.batch ?? true
    this.#tls = options.tls
  }

  get url(): string {
    return this.#tls === undefined ? `http://127.0.0.1:${this.#port}` : `https://localhost:${this.#port}`
  }

  get results(): readonly ResultRequest[] {
    return this.resultPosts.flat()
  }

  async listen(): Promise<this> {
    const listener = (request: IncomingMessage, response: ServerResponse): void => {
      void this.#answer(request, response)
    }
    const server =
      this.#tls === undefined
        ? createServer(listener)
        : createTlsServer({ ...this.#tls, requestCert: true, rejectUnauthorized: true }, listener)
    this.#takeSockets(server)
    this.#server = server
    await new Promise<void>((resolve) => {
      server.listen(this.#port, '127.0.0.1', resolve)
    })
    const address = server.address()
    if (address !== null && typeof address === 'object') this.#port = address.port
    return this
  }

  async close(): Promise<void> {
    const server = this.#server
    this.#waiting = []
    if (server === undefined) return
    for (const socket of this.sockets) socket.terminate()
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }

  give(...tasks: readonly WireTask[]): void {
    this.#tasks.push(...tasks)
    this.#serve()
  }

  cancel(...taskIds: readonly string[]): void {
    this.#cancelled.push(...taskIds)
    this.#serve()
  }

  /** As after a restart without memory: every worker has to register again. */
  forget(): void {
    this.#known.clear()
    for (const poll of this.#waiting.splice(0)) send(poll.response, 404, { error: 'Worker not found' })
  }

  releaseResults(): void {
    this.resultsFault = 'none'
    for (const release of this.#heldResponses.splice(0)) release()
  }

  /** The result of this task, once it is here. */
  async resultOf(task: WireTask): Promise<ResultRequest> {
    const find = () => this.results.find((result) => result.task_id === task.task_id)
    await this.until(() => find() !== undefined)
    return find() ?? { job_id: '', task_id: '' }
  }

  /** Resolves when the condition holds; it is looked at after every request. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#watchers.push(resolve)
      })
    }
  }

  tell(command: object): void {
    for (const socket of this.sockets) socket.send(stringifyExact(command))
  }

  #takeSockets(server: Server): void {
    const sockets = new WebSocketServer({ noServer: true })
    server.on('upgrade', (request, socket, head) => {
      this.#seen(request, {})
      sockets.handleUpgrade(request, socket, head, (open) => {
        this.sockets.push(open)
        open.on('close', () => this.sockets.splice(this.sockets.indexOf(open), 1))
        open.on('message', (data: Buffer) => {
          const event = as<EventRequest>(parseExact(data.toString('utf8')))
          this.frames.push(event)
          const answer = { status: 'event_accepted', event_id: event.event_id }
          if (this.acknowledges) open.send(stringifyExact(answer))
          this.#wake()
        })
        this.#wake()
      })
    })
  }

  #seen(request: IncomingMessage, body: unknown): SeenRequest {
    const url = new URL(request.url ?? '/', this.url)
    const certificate =
      this.#tls === undefined ? undefined : as<TLSSocket>(request.socket).getPeerCertificate().subject?.CN
    const seen = {
      method: request.method ?? '',
      path: url.pathname,
      headers: request.headers,
      body: as<Record<string, unknown>>(body),
      certificate: typeof certificate === 'string' ? certificate : undefined,
      at: performance.now(),
    }
    this.requests.push(seen)
    return seen
  }

  #wake(): void {
    for (const wake of this.#watchers.splice(0)) wake()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request)
    const seen = this.#seen(request, body)
    const instead = this.intercept?.(seen)
    if (instead === undefined) this.#route(new URL(request.url ?? '/', this.url), body, response)
    else if (instead === 'drop') response.destroy()
    else if (instead !== 'hold') send(response, instead.status, instead.body ?? {}, instead.headers)
    this.#wake()
  }

  #route(url: URL, body: unknown, response: ServerResponse): void {
    const { pathname } = url
    if (pathname === '/_worker/workers/register') return this.#register(as<RegisterRequest>(body), response)
    if (pathname === '/_worker/events') {
      this.events.push(as<EventRequest>(body))
      return send(response, 200, { status: 'event_accepted' })
    }
    if (pathname === '/_worker/tasks/results' && this.#batch) {
      return this.#take(as<{ results: ResultRequest[] }>(body).results, response, (replies) => ({ results: replies }))
    }
    if (pathname === '/_worker/tasks/result') return this.#take([as<ResultRequest>(body)], response, ([reply]) => reply)
    const id = pathname.split('/')[3] ?? ''
    if (!this.#known.has(id)) return send(response, 404, { error: 'Worker not found', code: 'WORKER_NOT_FOUND' })
    if (pathname.endsWith('/tasks/batch') && this.#batch) return this.#poll(as<TaskBatchRequest>(body), false, response)
    if (pathname.endsWith('/tasks/next')) {
      return this.#poll({ limit: 1, timeout: Number(url.searchParams.get('timeout')) }, true, response)
    }
    this.heartbeats.push(as<HeartbeatRequest>(body))
    const cancelled = this.#batch ? [] : this.#cancelled.splice(0)
    const more = this.heartbeatReply ?? {}
    this.heartbeatReply = undefined
    const cancels = cancelled.length > 0 ? { cancel_task_ids: cancelled } : {}
    return send(response, 200, { status: 'ok', ...cancels, ...more })
  }

  #register(request: RegisterRequest, response: ServerResponse): void {
    this.registrations.push(request)
    this.#known.add(request.worker_id)
    const batch = this.#batch ? { batch: { tasks_max: 500 } } : {}
    send(response, 200, { status: 'registered', version: '0.1.0', ...batch })
  }

  #poll(request: TaskBatchRequest, single: boolean, response: ServerResponse): void {
    this.polls.push(request)
    const poll = { limit: request.limit, single, response }
    this.#waiting.push(poll)
    const idle = { tasks: [] }
    const timer = setTimeout(() => send(response, single ? 204 : 200, idle), (request.timeout ?? 30) * 1_000)
    response.on('close', () => {
      clearTimeout(timer)
      this.#waiting = this.#waiting.filter((one) => one !== poll)
    })
    this.#serve()
  }

  #serve(): void {
    while (this.#waiting.length > 0 && (this.#tasks.length > 0 || (this.#batch && this.#cancelled.length > 0))) {
      const poll = this.#waiting.shift()
      if (poll === undefined) return
      const tasks = this.#tasks.splice(0, poll.limit)
      const cancelled = poll.single ? [] : this.#cancelled.splice(0)
      send(poll.response, 200, poll.single ? tasks[0] : { tasks, cancel_task_ids: cancelled })
    }
  }

  #take(results: readonly ResultRequest[], response: ServerResponse, shape: (replies: object[]) => unknown): void {
    this.resultPosts.push(results)
    if (this.resultsFault === 'drop') {
      response.destroy()
      return
    }
    if (this.resultsFault === 'refuse') return send(response, 422, { error: 'too large', code: 'LIMIT_EXCEEDED' })
    const isEach = this.resultsFault === 'refuse each success'
    const replies = results.map(({ status }) =>
      isEach && status === 'success'
        ? { error: 'too large', code: 'LIMIT_EXCEEDED' }
        : { status: 'accepted', transition: 'success_transition' },
    )
    const answer = (): void => send(response, 200, shape(replies))
    if (this.resultsFault === 'hold') this.#heldResponses.push(answer)
    else answer()
  }
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  if (status === 204) {
    response.writeHead(204).end()
    return
  }
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(stringifyExact(body))
}

function as<T>(body: unknown): T {
  return body as T
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk as Uint8Array))
  const text = Buffer.concat(chunks).toString('utf8')
  return text === '' ? {} : parseExact(text)
}

const ignore = (): void => undefined

export const silentLog: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore }

let tasks = 0

export function taskOf(type: string, params: WireTask['params'] = {}, more: Partial<WireTask> = {}): WireTask {
  tasks += 1
  return { job_id: `job-${tasks}`, task_id: `task-${tasks}`, type, params, ...more }
}

/** Something that a test holds back until it opens it. */
export function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}
