import { randomUUID } from 'node:crypto'
import {
  EVENT_UNSIGNED,
  ImpresarioError,
  WORKER_PATHS,
  parseExact,
  stringifyExact,
  withSignature,
  type DataObject,
  type EventReply,
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
import { HttpFiles } from './http-files.ts'
import { HttpLine, refusalOf, replyOf, type HttpAnswer } from './http-line.ts'
import { messageOf, type Log } from '../runtime/log.ts'
import type { TlsMaterial } from '../settings/settings.ts'
import { SignIn } from './sign-in.ts'
import { SocketLine } from './socket-line.ts'
import { TransportError, type Command, type PollRequest, type WorkerSocket, type WorkerTransport } from './transport.ts'

export interface HttpTransportOptions {
  readonly url: string
  readonly token: string | undefined
  readonly workerId: string
  /** `single`: never use the batched calls, even when the orchestrator offers them. */
  readonly mode: 'auto' | 'single'
  readonly sts: 'yes' | 'no' | 'if offered'
  readonly signing: boolean
  readonly tls: TlsMaterial
  readonly log: Log
}

/** A heartbeat that takes longer says that the orchestrator is not well; the lease of its tasks is 30 seconds. */
const HEARTBEAT_REQUEST_MS = 10_000
/** An orchestrator answers a long poll when its time is up; this much later it counts as dead. */
const POLL_GRACE_MS = 5_000
/** Below the orchestrator's limit of 1 MiB, with room for the frame around the results. */
const RESULTS_BYTES_MAX = 900_000

interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  /** Built for every attempt: a signed message may be sent only once. */
  readonly body?: () => string | Promise<string>
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/**
 * Speaks the wire protocol over kept-alive connections.
 *
 * Whether calls are batched is decided by the last answer to `register`: an orchestrator that was replaced by an
 * older one is asked again, because it does not know this worker.
 */
export class HttpTransport implements WorkerTransport {
  readonly name: string
  readonly files: HttpFiles
  readonly #line: HttpLine
  readonly #signIn: SignIn
  /** What messages are signed with, if they are. */
  readonly #secret: string | undefined
  readonly #log: Log
  readonly #single: boolean
  #batched = false

  constructor(options: HttpTransportOptions) {
    const { url, token, workerId, tls, sts, log } = options
    if (options.signing && token === undefined) {
      throw new ImpresarioError('INVALID_CONFIGURATION', `Messages to ${url} are to be signed, and there is no token.`)
    }
    this.name = url
    this.#line = new HttpLine(url, workerId, tls)
    this.#signIn = new SignIn({ line: this.#line, token, sts, log })
    this.#secret = options.signing ? token : undefined
    this.files = new HttpFiles(this.#line, async () => this.#signIn.token())
    this.#log = log
    this.#single = options.mode === 'single'
  }

  async register(request: RegisterRequest): Promise<RegisterReply> {
    const body = () => this.#sealed(request)
    const answer = await this.#call({ method: 'POST', path: WORKER_PATHS.register, body })
    const { batch, ...reply } = replyOf<RegisterReply>(answer)
    this.#batched = !this.#single && batch !== undefined
    return this.#batched && batch !== undefined ? { ...reply, batch } : reply
  }

  async heartbeat(workerId: string, request: HeartbeatRequest): Promise<HeartbeatReply> {
    const path = WORKER_PATHS.worker(workerId)
    const body = () => this.#sealed(request)
    return replyOf<HeartbeatReply>(await this.#call({ method: 'PATCH', path, body, timeoutMs: HEARTBEAT_REQUEST_MS }))
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
    const body = (): string => JSON.stringify(wanted)
    const answer = await this.#call({ method: 'POST', path, body, timeoutMs, signal })
    return answer.status === 204 ? { tasks: [] } : replyOf<TaskBatchReply>(answer)
  }

  async results(workerId: string, results: readonly ResultRequest[]): Promise<readonly (ResultReply | ItemError)[]> {
    const replies: (ResultReply | ItemError)[] = []
    if (!this.#batched) {
      for (const result of results) {
        const text = encode(result)
        const body = () => this.#sealedText(text)
        replies.push(replyOf<ResultReply>(await this.#call({ method: 'POST', path: WORKER_PATHS.result, body })))
      }
      return replies
    }
    for (const part of parts(results.map(encode))) {
      const text = `{"worker_id":${JSON.stringify(workerId)},"results":[${part.join(',')}]}`
      const body = () => this.#sealedText(text)
      const answer = await this.#call({ method: 'POST', path: WORKER_PATHS.results, body })
      replies.push(...replyOf<{ results: readonly ResultReply[] }>(answer).results)
    }
    return replies
  }

  async event(event: EventRequest): Promise<void> {
    const body = () => this.#sealed(event, EVENT_UNSIGNED)
    const reply = replyOf<EventReply>(await this.#call({ method: 'POST', path: WORKER_PATHS.events, body }))
    if (reply.status === 'error') throw new TransportError('refused', reply.message, { status: 200 })
  }

  socket(workerId: string, onCommand: (command: Command) => void): WorkerSocket {
    return new SocketLine({
      url: this.#line.address(WORKER_PATHS.socket(workerId)),
      tls: this.#line.tls,
      headers: async () => this.#line.headers(await this.#signIn.token()),
      seal: (event) => this.#sealed(event, EVENT_UNSIGNED),
      onCommand,
      log: this.#log,
    })
  }

  async close(): Promise<void> {
    this.#line.close()
  }

  /** A token that has ended before its time is replaced, and the call made again, once. */
  async #call(call: Call): Promise<HttpAnswer> {
    const token = await this.#signIn.token()
    let answer = await this.#request(call, token)
    if (answer.status === 401 && (await this.#signIn.renew(token))) {
      answer = await this.#request(call, await this.#signIn.token())
    }
    if (answer.status >= 200 && answer.status < 300) return answer
    throw refusalOf(call, answer)
  }

  async #request(call: Call, token: string | undefined): Promise<HttpAnswer> {
    const { body, ...rest } = call
    return this.#line.request(body === undefined ? { ...rest, token } : { ...rest, token, body: await body() })
  }

  #sealed(message: object, unsigned?: readonly string[]): string | Promise<string> {
    return this.#sealedText(stringifyExact(message), unsigned)
  }

  /** Signed with the time and a nonce, so that an intercepted message cannot be sent again. */
  async #signed(text: string, secret: string, unsigned: readonly string[] | undefined): Promise<string> {
    const message = messageIn(text)
    const metadata = { ...(message['metadata'] as DataObject | undefined), nonce: randomUUID() }
    const stamped = { ...message, timestamp: Math.floor(Date.now() / 1_000), metadata }
    return stringifyExact(await withSignature(stamped, { id: this.#line.workerId, secret }, unsigned))
  }

  #sealedText(text: string, unsigned?: readonly string[]): string | Promise<string> {
    return this.#secret === undefined ? text : this.#signed(text, this.#secret, unsigned)
  }
}

/** The boundary: the text is a message that was written a moment ago. */
function messageIn(text: string): DataObject {
  return parseExact(text) as DataObject
}

/** What cannot be written as JSON is a mistake in the handler; trying again would not help. */
function encode(result: ResultRequest): string {
  try {
    return stringifyExact(result)
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
