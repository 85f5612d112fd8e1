import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import { TLSSocket } from 'node:tls'
import type { Log } from '@impresario/core'
import type { PollSignal } from '@impresario/engine'
import { HEADERS, writeJson } from '@impresario/protocol'
import type { HeartbeatRequest, TaskBatchRequest } from '@impresario/protocol'
import type { Proof } from '../auth/worker-auth.ts'
import { acceptedEncodings } from '../http/accept-encoding.ts'
import { forgetOver, isOver, onOver } from '../http/answer-end.ts'
import { chooseEncoding, compress } from '../http/codec.ts'
import type { OpenWait, OpenWaits } from '../http/connection.ts'
import { logFailure, problemAnswer, refusalOf } from '../http/problem.ts'
import { SECURE_HEADERS, TRANSPORT_SECURITY } from '../http/secure-headers.ts'
import { LONG_BYTES } from '../http/slow-readers.ts'
import type { SlowReaders } from '../http/slow-readers.ts'
import type { Asker, Rates } from '../limits/rate-limits.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Health } from '../orchestrator/health.ts'
import { errorFields } from '../runtime/log.ts'
import { isOldestHeartbeat, oldestHeartbeatReply, versionFor } from '../worker-protocol/generation.ts'
import type { WireHandout, WorkerGateway } from '../worker-protocol/worker-gateway.ts'
import { HEARTBEAT, inQuery, namesIn, NEXT_TASK, waitOf } from './short-request.ts'
import type { Asked, ShortRoute } from './short-request.ts'

export interface ShortCallParts {
  readonly server: Pick<Server, 'listening'>
  readonly gateway: WorkerGateway
  readonly waits: OpenWaits
  readonly pollMs: number
  readonly log: Log
  readonly health: Pick<Health, 'isLeaving'>
  readonly metrics: Metrics
  readonly rates: Rates | undefined
  readonly readers: SlowReaders
  /** From which length on answers are compressed; absent: never. */
  readonly compressionMinBytes: number | undefined
  /** Answers may differ by the origin of a page. */
  readonly variesByOrigin: boolean
}

interface Given extends Asked {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** When it came. */
  readonly since: number
  readonly proof: Proof
}

const NO_HEADERS: IncomingHttpHeaders = {}
const NO_LINES: string[] = []

/** Names and values by turns, as Node writes them out. */
const BASE_HEADERS = Object.entries(SECURE_HEADERS).flat()
const JSON_TYPE = 'application/json; charset=utf-8'

/**
 * A poll or a heartbeat on the short way: one object for everything that has to be known of it while it waits. It is its own
 * signal for the desk, its own entry among the open waits, and what the rate limits look at.
 */
export class ShortCall implements Asker, OpenWait, PollSignal {
  readonly #parts: ShortCallParts
  readonly #route: ShortRoute
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #since: number
  readonly workerId: string
  readonly caller = undefined
  /** Until it begins. */
  workerProof: Proof | undefined
  /** The few that the answer depends on, once it has begun. */
  headers: IncomingHttpHeaders
  rateKey: string | undefined
  #who: string | undefined
  /** The caller is gone, or the wait is to end. */
  aborted = false
  #onAbort: (() => void) | undefined
  #isWaiting = false
  #isOver = false
  /** What was handed out and has not left yet. */
  #handout: WireHandout | undefined
  readonly #ended = (): void => this.#over()

  constructor(parts: ShortCallParts, { route, workerId, request, response, since, proof }: Given) {
    this.#parts = parts
    this.#route = route
    this.#request = request
    this.#response = response
    this.#since = since
    this.workerId = workerId
    this.workerProof = proof
    this.headers = request.headers
  }

  get params(): { readonly workerId: string } {
    return this
  }

  get socket(): IncomingMessage['socket'] {
    return this.#request.socket
  }

  get ip(): string | undefined {
    return this.socket.remoteAddress
  }

  get routeOptions(): Asker['routeOptions'] {
    return this.#route
  }

  /** False when the worker has too many requests open. */
  enter(): boolean {
    const { rates } = this.#parts
    this.#who = rates?.whoIs(this)
    return rates?.enter(this.#who) ?? true
  }

  leave(): void {
    this.#parts.rates?.leave(this.#who)
  }

  /** It has been let in, and nobody else will read it. */
  begin(query: string, body: TaskBatchRequest | HeartbeatRequest | null | undefined): void {
    if (isOver(this.#response)) {
      this.leave()
      return
    }
    onOver(this.#response, this.#ended)
    const { headers } = this
    this.#forgetHead()
    if (this.#route === HEARTBEAT) this.#heartbeat(isOldestHeartbeat(headers, body), body)
    else this.#poll(query, body as TaskBatchRequest | undefined)
  }

  /** Ten thousand heads of requests are ten megabytes and more. */
  #forgetHead(): void {
    const { accept, 'accept-encoding': encodings, [HEADERS.wireVersion]: version } = this.headers
    this.headers =
      accept === undefined && encodings === undefined && version === undefined
        ? NO_HEADERS
        : { accept, 'accept-encoding': encodings, [HEADERS.wireVersion]: version }
    this.workerProof = undefined
    this.#request.headers = this.headers
    this.#request.rawHeaders = NO_LINES
  }

  #heartbeat(isOldest: boolean, body: HeartbeatRequest | null | undefined): void {
    const { gateway } = this.#parts
    gateway.heartbeat(this.workerId, body).then(
      ({ reply, worker }) => {
        this.#sendJson(isOldest ? oldestHeartbeatReply(gateway.shown(worker), reply) : reply)
      },
      (error: unknown) => this.#refuse(error),
    )
  }

  #poll(query: string, body: TaskBatchRequest | undefined): void {
    const { gateway, waits, pollMs } = this.#parts
    const wanted =
      body === undefined
        ? {
            limit: 1,
            waitMs: waitOf(Number(inQuery(query, 'timeout')), pollMs),
            availableSkills: namesIn(inQuery(query, 'available_skills')),
            hotSkills: namesIn(inQuery(query, 'hot_skills')),
          }
        : {
            limit: body.limit,
            waitMs: waitOf(body.timeout ?? Number.NaN, pollMs),
            availableSkills: body.available_skills ?? undefined,
            hotSkills: body.hot_skills ?? undefined,
            wantsCancelled: true,
          }
    this.#isWaiting = true
    waits.add(this)
    gateway.poll(this.workerId, { ...wanted, signal: this }).then(
      (handout) => this.#handOut(handout),
      (error: unknown) => this.#refuse(error),
    )
  }

  #handOut(handout: WireHandout): void {
    this.#endWait()
    const { tasks, cancelled } = handout
    if (tasks.length > 0) this.#handout = handout
    if (isOver(this.#response)) {
      this.#giveBack()
      return
    }
    if (this.#route !== NEXT_TASK) {
      this.#sendJson({ tasks, ...(cancelled.length === 0 ? {} : { cancel_task_ids: cancelled }) })
      return
    }
    const [task] = tasks
    if (task === undefined) {
      this.#write(204, [], undefined)
      return
    }
    const { traceparent, tracestate } = task.tracing_context ?? {}
    const more = [
      ...(traceparent === undefined ? [] : [HEADERS.traceparent, traceparent]),
      ...(tracestate === undefined ? [] : [HEADERS.tracestate, tracestate]),
    ]
    this.#sendJson(task, more)
  }

  #endWait(): void {
    if (!this.#isWaiting) return
    this.#isWaiting = false
    this.#parts.waits.remove(this)
  }

  #refuse(error: unknown): void {
    this.#endWait()
    const { log } = this.#parts
    const { method = '', url = '' } = this.#request
    const refusal = refusalOf(error instanceof Error ? error : new Error(String(error)))
    logFailure(log, { method, url }, error, refusal)
    if (isOver(this.#response)) return
    const { status, headers, text } = problemAnswer(refusal, this.headers.accept)
    this.#send(status, Object.entries(headers).flat(), text)
  }

  #sendJson(body: object, more: readonly string[] = []): void {
    if (isOver(this.#response)) return
    this.#send(200, ['content-type', JSON_TYPE, ...more], writeJson(body))
  }

  /** Compressed where it is long and the worker asks for it. */
  #send(status: number, headers: readonly string[], text: string): void {
    const { compressionMinBytes: minBytes, log } = this.#parts
    const bytes = Buffer.byteLength(text)
    const accepted = acceptedEncodings(this.headers['accept-encoding']?.toString())
    if (minBytes === undefined || (bytes < minBytes && !accepted.refusesPlain)) {
      this.#write(status, headers, text)
      return
    }
    const encoding = chooseEncoding(accepted.encodings, bytes)
    if (encoding === undefined) {
      this.#write(status, headers, text, ACCEPT_ENCODING)
      return
    }
    const plain = (error: unknown): void => {
      log.warn('an answer could not be compressed and is sent as it is', { encoding, ...errorFields(error) })
      this.#write(status, headers, text, ACCEPT_ENCODING)
    }
    const packed = (data: Buffer): void =>
      this.#write(status, [...headers, 'content-encoding', encoding], data, ACCEPT_ENCODING)
    try {
      const data = compress(encoding, Buffer.from(text))
      if (data instanceof Promise) data.then(packed, plain)
      else packed(data)
    } catch (error) {
      plain(error)
    }
  }

  #write(status: number, more: readonly string[], given: string | Buffer | undefined, depends?: string): void {
    const response = this.#response
    if (isOver(response)) return
    const { health, server, variesByOrigin, readers } = this.#parts
    const vary = [...(variesByOrigin ? ['Origin'] : []), ...(depends === undefined ? [] : [depends])]
    const bytes = given === undefined ? 0 : Buffer.byteLength(given)
    const headers = [...BASE_HEADERS, HEADERS.wireVersion, versionFor(this.headers), ...more]
    if (vary.length > 0) headers.push('vary', vary.join(', '))
    if (this.socket instanceof TLSSocket) headers.push('strict-transport-security', TRANSPORT_SECURITY)
    if (given !== undefined) headers.push('content-length', String(bytes))
    if (health.isLeaving || !server.listening) headers.push('connection', 'close')
    // As bytes a long answer is outside of the heap.
    const payload = bytes >= LONG_BYTES && typeof given === 'string' ? Buffer.from(given) : given
    if (bytes >= LONG_BYTES) readers.begin(response, bytes)
    response.writeHead(status, headers)
    response.end(payload)
  }

  /** The answer is through, or will never be. */
  #over(): void {
    if (this.#isOver) return
    this.#isOver = true
    forgetOver(this.#response, this.#ended)
    this.leave()
    this.stop()
    if (this.#response.writableFinished) this.#finished()
    else this.#giveBack()
  }

  #finished(): void {
    const { metrics, rates } = this.#parts
    const { method, url: route } = this.#route
    if (this.#handout !== undefined) rates?.earn(this)
    this.#handout = undefined
    metrics.count('impresario_http_requests_total', { method, route, status: String(this.#response.statusCode) })
    const seconds = (performance.now() - this.#since) / 1_000
    metrics.observe('impresario_http_request_duration_seconds', { route }, seconds)
  }

  #giveBack(): void {
    const handout = this.#handout
    if (handout === undefined) return
    this.#handout = undefined
    handout.giveBack().catch((error: unknown) => {
      this.#parts.log.warn('tasks could not be given back; they return when their leases end', {
        worker_id: this.workerId,
        ...errorFields(error),
      })
    })
  }

  stop(): void {
    if (this.aborted) return
    this.aborted = true
    const listener = this.#onAbort
    this.#onAbort = undefined
    listener?.()
  }

  cut(): void {
    this.#response.destroy()
  }

  /** The desk listens once at a time. */
  addEventListener(_type: 'abort', listener: () => void): void {
    this.#onAbort = listener
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    if (this.#onAbort === listener) this.#onAbort = undefined
  }
}

const ACCEPT_ENCODING = 'Accept-Encoding'
