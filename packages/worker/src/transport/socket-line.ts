import { pause, isJsonObject, type EventRequest, type JsonObject } from '@impresario/protocol'
import type { WebSocket } from 'ws'
import { messageOf, type Log } from '../runtime/log.ts'
import { Backoff } from '../runtime/pause.ts'
import type { TlsMaterial } from '../settings/settings.ts'
import type { Command, Delivered, WorkerSocket } from './transport.ts'

export interface SocketOptions {
  /** As for requests; `http:` becomes `ws:`. */
  readonly url: URL
  readonly tls: TlsMaterial
  readonly headers: () => Promise<Readonly<Record<string, string>>>
  readonly seal: (event: EventRequest) => string | Promise<string>
  readonly onCommand: (command: Command) => void
  readonly log: Log
}

const RECONNECT_MS = 1_000
const RECONNECT_MS_MAX = 60_000
/** A connection that lasted this long was a good one: after it the backoff starts over. */
const GOOD_MS = 10_000
const HANDSHAKE_MS = 10_000
/** Without an answer to the last ping when the next is due, the connection is dead although it was not closed. */
const PING_MS = 20_000
const ACKNOWLEDGE_MS = 5_000
/** More than this waiting to be sent: the line is slower than what it is given, and HTTP is the better way. */
const BUFFERED_MAX = 1_048_576
const FRAME_MAX = 1_048_576

/**
 * Closed, opening, open, and closed again: it opens until it is told to stop, with growing waits.
 *
 * Few orchestrators acknowledge what comes over the socket. Whether this one does is found out by what may be lost,
 * which is progress; until it is known that it does, nothing else is sent.
 */
export class SocketLine implements WorkerSocket {
  readonly #options: SocketOptions
  readonly #stop = new AbortController()
  readonly #unanswered = new Map<string, (delivered: Delivered) => void>()
  #socket: WebSocket | undefined
  #acknowledges = false
  readonly #running: Promise<void>

  constructor(options: SocketOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  get isOpen(): boolean {
    return this.#socket !== undefined
  }

  async send(event: EventRequest, mayBeLost: boolean): Promise<Delivered> {
    const id = event.event_id
    if (typeof id !== 'string' || !this.isOpen || (!this.#acknowledges && !mayBeLost)) return 'unknown'
    const text = await this.#options.seal(event)
    const socket = this.#socket
    if (socket === undefined || socket.bufferedAmount > BUFFERED_MAX) return 'unknown'
    if (!this.#acknowledges) {
      socket.send(text)
      return 'accepted'
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => answered('unknown'), ACKNOWLEDGE_MS)
      const answered = (delivered: Delivered): void => {
        clearTimeout(timer)
        this.#unanswered.delete(id)
        resolve(delivered)
      }
      this.#unanswered.set(id, answered)
      socket.send(text)
    })
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#socket?.close(1_000)
    await this.#running
  }

  async #run(): Promise<void> {
    const { log, url } = this.#options
    const backoff = new Backoff(RECONNECT_MS, RECONNECT_MS_MAX)
    while (!this.#stop.signal.aborted) {
      const begun = performance.now()
      const why = await this.#hold().catch(messageOf)
      if (performance.now() - begun > GOOD_MS) backoff.reset()
      if (this.#stop.signal.aborted) return
      const waitMs = Math.round(backoff.next())
      log.info('The socket is closed; it will be opened again.', { socket: url.href, why, wait_ms: waitMs })
      await pause(waitMs, this.#stop.signal)
    }
  }

  /** Opens the line and resolves when it is closed, with the reason. */
  async #hold(): Promise<string> {
    const { url, tls, headers, log } = this.#options
    const { WebSocket: Socket } = await import('ws')
    const address = new URL(url)
    address.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new Socket(address, {
      ...tls,
      headers: await headers(),
      handshakeTimeout: HANDSHAKE_MS,
      maxPayload: FRAME_MAX,
      perMessageDeflate: false,
    })
    if (this.#stop.signal.aborted) socket.terminate()
    return new Promise((resolve) => {
      let why = ''
      let pings: NodeJS.Timeout | undefined
      socket.on('open', () => {
        if (this.#stop.signal.aborted) return socket.close(1_000)
        log.info('The socket is open.', { socket: url.href })
        this.#socket = socket
        this.#acknowledges = false
        pings = keepAlive(socket)
      })
      socket.on('message', (data, isBinary) => {
        if (!isBinary) this.#heed(textOf(data))
      })
      socket.on('error', (error) => {
        why = error.message
      })
      socket.on('close', (code, reason) => {
        clearInterval(pings)
        this.#socket = undefined
        for (const answered of this.#unanswered.values()) answered('unknown')
        resolve(why === '' ? `${code} ${reason.toString()}`.trim() : why)
      })
    })
  }

  #heed(text: string): void {
    const message = objectIn(text)
    if (message === undefined) {
      this.#options.log.warn('Something else than a JSON object came over the socket.')
      return
    }
    const { event_id: eventId, status } = message
    if (typeof eventId === 'string' && typeof status === 'string') {
      this.#acknowledges = true
      this.#unanswered.get(eventId)?.(status === 'error' ? 'refused' : 'accepted')
      return
    }
    if (message['type'] === 'error') {
      const { code, message: why } = message
      this.#options.log.warn('The orchestrator did not like what came over the socket.', { code, why })
      return
    }
    // Old orchestrators wrote one of the two, ours writes both.
    const name = message['command'] ?? message['type']
    if (typeof name !== 'string') return
    const { task_id: taskId, job_id: jobId, params } = message
    this.#options.onCommand({
      name,
      taskId: typeof taskId === 'string' ? taskId : undefined,
      jobId: typeof jobId === 'string' ? jobId : undefined,
      params: isJsonObject(params) ? params : {},
    })
  }
}

function keepAlive(socket: WebSocket): NodeJS.Timeout {
  let answered = true
  socket.on('pong', () => {
    answered = true
  })
  return setInterval(() => {
    if (!answered) return socket.terminate()
    answered = false
    socket.ping()
  }, PING_MS)
}

/** The boundary: text frames come as one buffer, as `binaryType` is left as it is. */
function textOf(data: unknown): string {
  return (data as Buffer).toString('utf8')
}

function objectIn(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
