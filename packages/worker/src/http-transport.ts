import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import {
  HEADERS,
  isJsonObject,
  WIRE_VERSION,
  WORKER_PATHS,
  type EventRequest,
  type HeartbeatReply,
  type HeartbeatRequest,
  type ItemError,
  type RegisterReply,
  type RegisterRequest,
  type ResultReply,
  type ResultRequest,
  type TaskBatchReply,
  type TaskBatchRequest,
  type WireTask,
} from '@impresario/protocol'
import { messageOf } from './log.ts'
import { TransportError, type PollRequest, type WorkerTransport } from './transport.ts'

export interface HttpTransportOptions {
  readonly url: string
  readonly token?: string
  readonly workerId: string
  /** `single`: never use the batched calls, even when the orchestrator offers them. */
  readonly mode?: 'auto' | 'single'
}

const REQUEST_MS = 30_000
/** An orchestrator answers a long poll when its time is up; this much later it counts as dead. */
const POLL_GRACE_MS = 5_000
/** Below the orchestrator's limit of 1 MiB, with room for the frame around the results. */
const RESULTS_BYTES_MAX = 900_000

interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly body?: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

interface Answer {
  readonly status: number
  readonly body: unknown
}

/**
 * Speaks the wire protocol over kept-alive connections.
 *
 * Whether calls are batched is decided by the last answer to `register`: an orchestrator that was replaced by an
 * older one is asked anew, because it does not know this worker.
 */
export class HttpTransport implements WorkerTransport {
  readonly name: string
  readonly #base: URL
  readonly #agent: HttpAgent
  readonly #headers: Readonly<Record<string, string>>
  readonly #single: boolean
  #batched = false

  constructor(options: HttpTransportOptions) {
    this.#base = new URL(options.url)
    this.name = this.#base.origin
    const agentOptions = { keepAlive: true, maxFreeSockets: 64 }
    this.#agent = this.#base.protocol === 'https:' ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions)
    this.#single = options.mode === 'single'
    this.#headers = {
      'content-type': 'application/json',
      [HEADERS.workerId]: options.workerId,
      [HEADERS.wireVersion]: WIRE_VERSION,
      ...(options.token === undefined ? {} : { [HEADERS.workerToken[0]]: options.token }),
    }
  }

  async register(request: RegisterRequest): Promise<RegisterReply> {
    const answer = await this.#call({ method: 'POST', path: WORKER_PATHS.register, body: JSON.stringify(request) })
    const { batch, ...reply } = replyOf<RegisterReply>(answer)
    this.#batched = !this.#single && batch !== undefined
    return this.#batched && batch !== undefined ? { ...reply, batch } : reply
  }

  async heartbeat(workerId: string, request: HeartbeatRequest): Promise<HeartbeatReply> {
    const path = WORKER_PATHS.worker(workerId)
    return replyOf<HeartbeatReply>(await this.#call({ method: 'PATCH', path, body: JSON.stringify(request) }))
  }

  async poll(workerId: string, request: PollRequest, signal: AbortSignal): Promise<TaskBatchReply> {
    const timeoutMs = request.timeoutMs + POLL_GRACE_MS
    const timeout = request.timeoutMs / 1_000
    if (!this.#batched) {
      const query = new URLSearchParams({ timeout: String(timeout) })
      if (request.availableSkills !== undefined) query.set('available_skills', request.availableSkills.join(','))
      const path = `${WORKER_PATHS.nextTask(workerId)}?${query.toString()}`
      const answer = await this.#call({ method: 'GET', path, timeoutMs, signal })
      return { tasks: answer.status === 204 ? [] : [replyOf<WireTask>(answer)] }
    }
    const { availableSkills, limit } = request
    const wanted: TaskBatchRequest = {
      limit,
      timeout,
      ...(availableSkills === undefined ? {} : { available_skills: availableSkills }),
    }
    const path = WORKER_PATHS.taskBatch(workerId)
    const answer = await this.#call({ method: 'POST', path, body: JSON.stringify(wanted), timeoutMs, signal })
    return answer.status === 204 ? { tasks: [] } : replyOf<TaskBatchReply>(answer)
  }

  async results(workerId: string, results: readonly ResultRequest[]): Promise<readonly (ResultReply | ItemError)[]> {
    const replies: (ResultReply | ItemError)[] = []
    if (!this.#batched) {
      for (const result of results) {
        const answer = await this.#call({ method: 'POST', path: WORKER_PATHS.result, body: encode(result) })
        replies.push(replyOf<ResultReply>(answer))
      }
      return replies
    }
    for (const part of parts(results.map(encode))) {
      const body = `{"worker_id":${JSON.stringify(workerId)},"results":[${part.join(',')}]}`
      const answer = await this.#call({ method: 'POST', path: WORKER_PATHS.results, body })
      replies.push(...replyOf<{ results: readonly ResultReply[] }>(answer).results)
    }
    return replies
  }

  async event(event: EventRequest): Promise<void> {
    await this.#call({ method: 'POST', path: WORKER_PATHS.events, body: JSON.stringify(event) })
  }

  async close(): Promise<void> {
    this.#agent.destroy()
  }

  async #call(call: Call): Promise<Answer> {
    const response = await this.#send(call)
    const { status, text } = response
    if (status >= 200 && status < 300) return { status, body: text === '' ? {} : parse(text) }
    throw refusal(call, response)
  }

  #send(call: Call): Promise<{ status: number; text: string; retryAfter: string | undefined }> {
    return new Promise((resolve, reject) => {
      const send = this.#base.protocol === 'https:' ? httpsRequest : httpRequest
      const length = call.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(call.body)) }
      const request: ClientRequest = send(new URL(this.#prefixed(call.path), this.#base), {
        method: call.method,
        agent: this.#agent,
        headers: { ...this.#headers, ...length },
        ...(call.signal === undefined ? {} : { signal: call.signal }),
      })
      const late = (): void => {
        request.destroy(new Error('no answer in time'))
      }
      const timer = setTimeout(late, call.timeoutMs ?? REQUEST_MS)
      const fail = (error: unknown): void => {
        clearTimeout(timer)
        const message = `${call.method} ${this.name}${call.path}: ${messageOf(error)}`
        reject(new TransportError('unavailable', message, { cause: error }))
      }
      request.on('error', fail)
      request.on('response', (response) => {
        readText(response).then((text) => {
          clearTimeout(timer)
          resolve({ status: response.statusCode ?? 0, text, retryAfter: response.headers['retry-after'] })
        }, fail)
      })
      request.end(call.body)
    })
  }

  /** An orchestrator may live under a path of a shared host. */
  #prefixed(path: string): string {
    return `${this.#base.pathname.replace(/\/$/, '')}${path}`
  }
}

function readText(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    response.on('aborted', () => reject(new Error('the connection broke off')))
    response.on('error', reject)
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new TransportError('unavailable', 'The answer is not JSON; something else may be listening there.', { cause })
  }
}

/** The boundary at which an orchestrator's answer is believed to have the shape that the protocol gives it. */
function replyOf<T>(answer: Answer): T {
  if (isJsonObject(answer.body)) return answer.body as T
  throw new TransportError('unavailable', 'The answer is not a JSON object.')
}

const REFUSED = new Set([400, 405, 409, 413, 415, 422])

function refusal(call: Call, response: { status: number; text: string; retryAfter: string | undefined }): Error {
  const { status, text } = response
  const message = `${call.method} ${call.path}: ${status} ${text.slice(0, 300)}`
  if (status === 404) {
    const aboutResult = call.path.startsWith('/_worker/tasks/')
    return new TransportError(aboutResult && !/worker/i.test(text) ? 'refused' : 'unknown_worker', message)
  }
  if (REFUSED.has(status)) return new TransportError('refused', message)
  const retryAfterMs = Number(response.retryAfter ?? Number.NaN) * 1_000
  return new TransportError('unavailable', message, Number.isFinite(retryAfterMs) ? { retryAfterMs } : {})
}

/** What cannot be written as JSON is a mistake in the handler; trying again would not help. */
function encode(result: ResultRequest): string {
  try {
    return JSON.stringify(result)
  } catch (error) {
    const { job_id, task_id, worker_id } = result
    const message = `The handler returned something that cannot be written as JSON: ${messageOf(error)}`
    return JSON.stringify({
      job_id,
      task_id,
      worker_id,
      status: 'failure',
      error: { code: 'PERMANENT_ERROR', message },
    })
  }
}

function* parts(encoded: readonly string[]): Generator<readonly string[]> {
  let part: string[] = []
  let bytes = 0
  for (const text of encoded) {
    const size = Buffer.byteLength(text) + 1
    if (part.length > 0 && bytes + size > RESULTS_BYTES_MAX) {
      yield part
      part = []
      bytes = 0
    }
    part.push(text)
    bytes += size
  }
  if (part.length > 0) yield part
}
