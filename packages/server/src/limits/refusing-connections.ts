import { ServerResponse } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import { Socket } from 'node:net'
import { framedRequest } from './request-framing.ts'
import type { FramedRequest } from './request-framing.ts'

/** How often those that were refused are looked at. */
const LOOK_MS = 20
/** All that wait are looked at so often at most. */
const TAKE_ALL_MS = 1_000

interface Refusing {
  readonly isRefused: (request: FramedRequest) => boolean
  /** While it is not, connections are given back. */
  readonly isShedding: () => boolean
  /** The whole answer. */
  readonly answer: Buffer
}

type Hear = (this: Socket, chunk: Buffer) => void

/**
 * Refuses requests without Node's HTTP layer: that costs 12 to 16 µs instead of 40 (on a slow machine, at 100 and 2,000 connections).
 * What is not refused goes to Node as it came.
 *
 * A connection is `Node's` → `a candidate` when a request of it was refused, or when it has asked for new work before and an overload
 * begins → `ours` when Node's parser is between two requests and
 * no answer is under way, so that the next byte is the first of a request → `Node's` again with the first byte that is not the
 * beginning of a whole request about whose end there can be no two opinions, or when nothing is refused any more. While it is ours, a
 * request is passed on as a whole or refused as a whole, so Node's parser always stays between two requests.
 *
 * Whether the parser is between two requests only Node knows, and it has no name for it in its documentation. So what is read there is
 * tried first: in the middle of a request it must say so. If it does not, every connection stays Node's.
 */
export class RefusingConnections {
  readonly #server: Server
  readonly #refusing: Refusing
  readonly #candidates = new Set<Socket>()
  /** They have asked for new work before. */
  readonly #working = new WeakSet<Socket>()
  #tookAllAt = Number.NEGATIVE_INFINITY
  readonly #ours = new WeakSet<Socket>()
  /**
   * They wait for their refusal until the event loop has read what all others have sent. Whoever is answered at once sends again
   * at once, and the loop goes on reading while a thousand connections have something to be read: turns of four seconds were seen,
   * in which it came to no timer.
   */
  readonly #owing = new Set<Socket>()
  readonly #answers: (() => void)[] = []
  #canAsk: boolean | undefined
  #willLook = false

  constructor(server: Server, refusing: Refusing) {
    this.#server = server
    this.#refusing = refusing
  }

  /** Refuses a request by way of Node. `answer` does it. */
  refuse({ socket }: IncomingMessage, response: ServerResponse, answer: () => void): void {
    this.#later(answer)
    if (this.#ours.has(socket) || this.#canAsk === false) return
    const underWay = answerUnderWay(socket)
    // One before it is not answered yet.
    if (underWay !== response && underWay !== undefined) return
    // Now it is in the middle of a request.
    this.#canAsk ??= underWay === response && activeParsers(this.#server)?.has(parserOf(socket)) === true
    if (!this.#canAsk) return
    this.#takeAll()
    this.#candidates.add(socket)
    if (this.#willLook) return
    this.#willLook = true
    setTimeout(() => this.#look(), LOOK_MS).unref()
  }

  /** A request for new work came by way of Node. */
  noteWork({ socket }: IncomingMessage): void {
    this.#working.add(socket)
  }

  /** At the beginning of an overload: to refuse each of them once by way of Node would take a part of a second. */
  #takeAll(): void {
    const now = performance.now()
    if (now - this.#tookAllAt < TAKE_ALL_MS) return
    this.#tookAllAt = now
    const active = activeParsers(this.#server)
    if (active === undefined) return
    for (const parser of parsersOf(this.#server, 'idle') ?? []) {
      const socket = socketOf(parser)
      if (socket !== undefined && this.#working.has(socket) && isBetweenRequests(socket, active)) this.#take(socket)
    }
  }

  #look(): void {
    this.#willLook = false
    const active = activeParsers(this.#server)
    if (active !== undefined && this.#refusing.isShedding()) {
      for (const socket of this.#candidates) {
        if (isBetweenRequests(socket, active)) this.#take(socket)
      }
    }
    // The others are refused again, and come here again.
    this.#candidates.clear()
  }

  #take(socket: Socket): void {
    if (this.#ours.has(socket)) return
    const [nodes, ...others] = socket.listeners('data')
    if (nodes === undefined || others.length > 0) return
    const toNode = (chunk: Buffer): void => {
      Reflect.apply(nodes, socket, [chunk])
    }
    const hear: Hear = (chunk) => {
      const rest = this.#hear(socket, chunk, toNode)
      if (rest === undefined) return
      this.#ours.delete(socket)
      socket.on('data', nodes as Hear)
      socket.off('data', hear)
      toNode(rest)
    }
    this.#ours.add(socket)
    // From here on Node gives us what it reads, and not to its parser.
    socket.on('data', hear)
    socket.off('data', nodes as Hear)
  }

  /** Gives what only Node can say something about. */
  #hear(socket: Socket, chunk: Buffer, toNode: (chunk: Buffer) => void): Buffer | undefined {
    const { isShedding, isRefused } = this.#refusing
    let start = 0
    while (start < chunk.length) {
      const request = isShedding() && this.#isFree(socket) ? framedRequest(chunk, start) : undefined
      if (request === undefined) {
        // Its answer comes before all others.
        if (this.#owing.delete(socket)) this.#write(socket)
        return chunk.subarray(start)
      }
      if (isRefused(request)) this.#owe(socket)
      else toNode(chunk.subarray(start, request.end))
      start = request.end
    }
    return undefined
  }

  /** Everything that came before is answered, and the answers were taken. */
  #isFree(socket: Socket): boolean {
    return !this.#owing.has(socket) && answerUnderWay(socket) === undefined && socket.writableLength === 0
  }

  #write(socket: Socket): void {
    if (socket.writable) socket.write(this.#refusing.answer)
  }

  #owe(socket: Socket): void {
    this.#wake()
    this.#owing.add(socket)
  }

  #later(answer: () => void): void {
    this.#wake()
    this.#answers.push(answer)
  }

  #wake(): void {
    if (this.#owing.size === 0 && this.#answers.length === 0) setImmediate(() => this.#answer())
  }

  #answer(): void {
    for (const answer of this.#answers.splice(0)) answer()
    for (const socket of this.#owing) this.#write(socket)
    this.#owing.clear()
  }
}

function isBetweenRequests(socket: Socket, active: ReadonlySet<unknown>): boolean {
  const parser = parserOf(socket)
  return (
    !socket.destroyed &&
    parser !== undefined &&
    !active.has(parser) &&
    answerUnderWay(socket) === undefined &&
    !socket.isPaused() &&
    socket.readableLength === 0
  )
}

function parserOf(socket: Socket): object | undefined {
  const parser: unknown = Reflect.get(socket, 'parser')
  return typeof parser === 'object' && parser !== null ? parser : undefined
}

function answerUnderWay(socket: Socket): ServerResponse | undefined {
  const answer: unknown = Reflect.get(socket, '_httpMessage')
  return answer instanceof ServerResponse ? answer : undefined
}

function socketOf(parser: unknown): Socket | undefined {
  const socket: unknown = typeof parser === 'object' && parser !== null ? Reflect.get(parser, 'socket') : undefined
  return socket instanceof Socket ? socket : undefined
}

/** The parsers that are in the middle of a request: from its first byte on, to its last. */
function activeParsers(server: Server): ReadonlySet<unknown> | undefined {
  const parsers = parsersOf(server, 'active')
  return parsers === undefined ? undefined : new Set(parsers)
}

function parsersOf(server: Server, which: 'active' | 'idle'): readonly unknown[] | undefined {
  const symbol = Object.getOwnPropertySymbols(server).find(({ description }) => description === CONNECTIONS)
  const connections: unknown = symbol === undefined ? undefined : Reflect.get(server, symbol)
  if (typeof connections !== 'object' || connections === null) return undefined
  const list: unknown = Reflect.get(connections, which)
  const parsers: unknown = typeof list === 'function' ? Reflect.apply(list, connections, []) : undefined
  return Array.isArray(parsers) ? parsers : undefined
}

const CONNECTIONS = 'http.server.connections'
