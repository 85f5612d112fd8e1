import { Socket } from 'node:net'
import type { Clock, Log } from '@impresario/core'
import type { Desk, Recall } from '@impresario/engine'
import { EVENT_UNSIGNED, ImpresarioError, isImpresarioError } from '@impresario/protocol'
import type { CancelCommand, EventRequest, SocketError } from '@impresario/protocol'
import type { RawData, WebSocket } from 'ws'
import { errorFields } from '../runtime/log.ts'
import { Line } from './socket-line.ts'
import { readFrame } from './socket-frame.ts'
import type { Frame } from './socket-frame.ts'
import { refuseRepeated } from '../auth/signatures.ts'
import type { Signatures } from '../auth/signatures.ts'
import type { Proof, WorkerAuth } from '../auth/worker-auth.ts'
import { SOCKET_BOUNDS } from './socket-bounds.ts'
import type { SocketBounds } from './socket-bounds.ts'
import type { WorkerGateway } from '../worker-protocol/worker-gateway.ts'

export interface SocketsOptions {
  readonly gateway: WorkerGateway
  readonly desk: Desk
  readonly auth: WorkerAuth
  readonly signatures: Signatures
  readonly clock: Clock
  readonly log: Log
  readonly bounds?: Partial<SocketBounds>
}

/** Codes with which we close. */
const POLICY = 1_008
const GOING_AWAY = 1_001
const TRY_LATER = 1_013

/** For the close frame to arrive. */
const CUT_OFF_MS = 1_000

/**
 * The sockets of workers: commands to them, progress and events from them.
 *
 * A socket is *unbound* until it is known whose it is, at the upgrade or by its first message that names a worker or a
 * task; then it is *bound* to that worker for good. A worker has one: a newer one closes the older. Whether a command can
 * be sent is decided by the open socket alone, never by what the worker said about itself.
 *
 * Closed by us: who is silent to a ping, who does not read, who sends nonsense again and again, and whose credential was
 * removed.
 */
export class Sockets {
  readonly #options: SocketsOptions
  readonly #bounds: SocketBounds
  readonly #lines = new Set<Line>()
  readonly #byWorker = new Map<string, Line>()
  readonly #unlisten: () => void
  readonly #pinger: NodeJS.Timeout
  #isStopped = false

  constructor(options: SocketsOptions) {
    this.#options = options
    this.#bounds = { ...SOCKET_BOUNDS, ...options.bounds }
    this.#unlisten = options.desk.onRecall((recall) => {
      this.cancel(recall)
    })
    this.#pinger = setInterval(() => this.#ping(), this.#bounds.pingMs)
    this.#pinger.unref()
  }

  get size(): number {
    return this.#lines.size
  }

  isConnected(workerId: string): boolean {
    return this.#byWorker.has(workerId)
  }

  /** A worker has come in, and shown `proof` of who it is; `undefined` when that does not yet say which one. */
  open(socket: WebSocket, proof: Proof, workerId: string | undefined): void {
    if (this.#isStopped) {
      socket.close(GOING_AWAY, 'Server shutdown')
      return
    }
    if (workerId === undefined && this.#lines.size - this.#byWorker.size >= this.#bounds.unboundMax) {
      socket.close(TRY_LATER, 'Too many sockets that do not say whose they are')
      return
    }
    const line = new Line(socket, proof, this.#options.clock, this.#bounds.framesPerSecond)
    this.#lines.add(line)
    socket.on('pong', () => this.#heard(line))
    socket.on('ping', (data) => this.#answerPing(line, data))
    socket.on('close', () => this.#forget(line))
    // A broken connection is followed by its closing, which is all that matters here.
    socket.on('error', () => this.#forget(line))
    socket.on('message', (data, isBinary) => this.#receive(line, data, isBinary))
    if (workerId !== undefined) this.#bind(line, workerId)
  }

  /**
   * Tells the worker to stop a task. False when it has no socket here.
   *
   * Older workers that share a token open a socket without saying whose it is, and say nothing over it until they have progress
   * to tell. So while a worker has no socket of its own, the command goes to every one that could be its own: the others do
   * not know the task, and leave it.
   */
  cancel({ workerId, taskId, jobId }: Recall): boolean {
    const command: CancelCommand = { type: 'cancel_task', command: 'cancel_task', task_id: taskId, job_id: jobId }
    const line = this.#byWorker.get(workerId)
    if (line !== undefined) return this.#send(line, command)
    let isSent = false
    for (const one of this.#lines) {
      if (one.workerId === undefined && this.#couldBe(one, workerId)) isSent = this.#send(one, command) || isSent
    }
    return isSent
  }

  #couldBe({ proof }: Line, workerId: string): boolean {
    try {
      return this.#options.auth.identify(proof, workerId) === workerId
    } catch (error) {
      if (isImpresarioError(error)) return false
      throw error
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#unlisten()
    clearInterval(this.#pinger)
    for (const { socket } of this.#lines) socket.close(GOING_AWAY, 'Server shutdown')
  }

  #bind(line: Line, workerId: string): void {
    line.workerId = workerId
    const older = this.#byWorker.get(workerId)
    this.#byWorker.set(workerId, line)
    if (older === undefined) return
    this.#lines.delete(older)
    older.socket.close(POLICY, 'New connection established')
  }

  #forget(line: Line): void {
    this.#lines.delete(line)
    const { workerId } = line
    if (workerId !== undefined && this.#byWorker.get(workerId) === line) this.#byWorker.delete(workerId)
  }

  #end(line: Line, code: number, reason: string): void {
    this.#forget(line)
    line.socket.close(code, reason)
  }

  #send(line: Line, message: CancelCommand | SocketError): boolean {
    const { socket } = line
    if (socket.readyState !== socket.OPEN) return false
    if (socket.bufferedAmount > this.#bounds.bufferBytesMax) {
      this.#end(line, TRY_LATER, 'Slow consumer')
      return false
    }
    socket.send(JSON.stringify(message))
    return true
  }

  /** Who did not answer the last one is gone. */
  #ping(): void {
    for (const line of this.#lines) {
      if (!line.isAlive) {
        this.#forget(line)
        line.socket.terminate()
        continue
      }
      if (line.bytesSince(bytesRead(line.socket)) > (this.#bounds.bytesPerSecond * this.#bounds.pingMs) / 1_000) {
        this.#cutOff(line, 'Too much data')
        continue
      }
      line.isAlive = false
      line.socket.ping()
    }
    this.lookAgain()
  }

  /** Closes connections whose credentials are no longer valid. */
  lookAgain(): void {
    for (const line of this.#lines) {
      this.#lookAgain(line).catch((error: unknown) => {
        this.#options.log.warn('a socket could not be checked', { worker_id: line.workerId, ...errorFields(error) })
      })
    }
  }

  async #lookAgain(line: Line): Promise<void> {
    if (await this.#options.auth.isStillGood(line.proof, line.workerId)) return
    this.#end(line, POLICY, 'The credential was removed')
  }

  /** Any frame counts, whether it was asked for or not. */
  #heard(line: Line): boolean {
    if (!this.#lines.has(line)) return false
    line.heard()
    const pace = line.pace()
    if (pace === 'flood') this.#cutOff(line, 'Too many messages')
    return pace === 'good'
  }

  /** By us and not by the library, which would answer every ping of a flood, also to a client that does not read the answers. */
  #answerPing(line: Line, data: Buffer): void {
    const { socket } = line
    if (!this.#heard(line) || socket.readyState !== socket.OPEN) return
    if (socket.bufferedAmount > this.#bounds.bufferBytesMax) this.#end(line, TRY_LATER, 'Slow consumer')
    else socket.pong(data)
  }

  /** Who floods us is told why, and not listened to until he says goodbye. */
  #cutOff(line: Line, reason: string): void {
    this.#end(line, POLICY, reason)
    setTimeout(() => line.socket.terminate(), CUT_OFF_MS).unref()
  }

  /** One frame after the other; while one is being worked on, the next are left in the network. */
  #receive(line: Line, data: RawData, isBinary: boolean): void {
    // Who was shown out need not say goodbye, and may go on talking until the connection is cut.
    if (!this.#lines.has(line)) return
    line.heard()
    const pace = line.pace()
    if (pace === 'flood') this.#cutOff(line, 'Too many messages')
    if (pace === 'warn') this.#send(line, errorFrame('TOO_MANY_REQUESTS', 'Too many messages; this one was dropped.'))
    if (pace !== 'good') return
    line.socket.pause()
    line.working = line.working
      .then(() => this.#take(line, data, isBinary))
      .catch((error: unknown) => this.#complain(line, error))
      .finally(() => line.socket.resume())
  }

  async #take(line: Line, data: RawData, isBinary: boolean): Promise<void> {
    if (!this.#lines.has(line)) return
    const frame = readFrame(data, isBinary)
    const workerId = line.workerId ?? (await this.#whoIs(line, frame))
    const { event, message, text } = frame
    if (event.worker_id !== undefined && event.worker_id !== workerId) {
      throw new ImpresarioError('FORBIDDEN', 'This socket belongs to another worker.')
    }
    refuseRepeated(await this.#options.signatures.check(workerId, message, text, EVENT_UNSIGNED))
    const reply = await this.#options.gateway.event(workerId, event)
    if (reply.status === 'error') this.#send(line, errorFrame(reply.code ?? 'INVALID_REQUEST', reply.message))
  }

  /** Whose socket it is, by what its first message names. */
  async #whoIs(line: Line, { event }: Frame): Promise<string> {
    const { desk, auth } = this.#options
    const workerId = event.worker_id ?? (await holderOf(desk, event))
    if (workerId === undefined) {
      throw new ImpresarioError(
        'INVALID_REQUEST',
        'Say whose socket this is: by X-Worker-ID, worker_id or a task of yours.',
      )
    }
    auth.identify(line.proof, workerId)
    this.#bind(line, workerId)
    return workerId
  }

  #complain(line: Line, error: unknown): void {
    if (!isImpresarioError(error)) {
      this.#options.log.error('a message of a socket failed', { worker_id: line.workerId, ...errorFields(error) })
      this.#send(line, errorFrame('INTERNAL', 'Internal error'))
      return
    }
    this.#send(line, errorFrame(error.code, error.message))
    line.mistakes += 1
    if (line.mistakes >= this.#bounds.mistakesMax) this.#end(line, POLICY, 'Too many malformed messages')
  }
}

/** What has come over the connection: also frames that never become a message. */
function bytesRead(socket: WebSocket): number {
  const connection: unknown = Reflect.get(socket, '_socket')
  return connection instanceof Socket ? connection.bytesRead : 0
}

async function holderOf(desk: Desk, event: EventRequest): Promise<string | undefined> {
  const taskId = event.target_task_id ?? event.origin_task_id
  return typeof taskId === 'string' ? desk.holderOf(taskId) : undefined
}

function errorFrame(code: string, message: string): SocketError {
  return { type: 'error', code, message }
}
