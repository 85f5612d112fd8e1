import { ServerResponse } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { framedRequest } from './request-framing.ts'
import type { FramedRequest } from './request-framing.ts'

/** How often those that were refused are looked at. */
const LOOK_MS = 20

interface Refusing {
  readonly isRefused: (request: FramedRequest) => boolean
  /** While it is not, connections are given back. */
  readonly isShedding: () => boolean
  /** The whole answer. */
  readonly answer: Buffer
}

type Hear = (this: Socket, chunk: Buffer) => void

/**
 * Refuses further requests of a connection that was refused before, without Node's HTTP layer: that costs a third of the time. What is
 * not refused goes to Node as it came.
 *
 * A connection is `Node's` → `a candidate` when a request of it was refused → `ours` when Node's parser is between two requests and
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
  readonly #ours = new WeakSet<Socket>()
  #canAsk: boolean | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(server: Server, refusing: Refusing) {
    this.#server = server
    this.#refusing = refusing
  }

  /** A request is being refused by way of Node: call it before the answer. */
  noteRefused({ socket }: IncomingMessage, response: ServerResponse): void {
    if (this.#ours.has(socket) || this.#canAsk === false) return
    // Now it is in the middle of a request.
    this.#canAsk ??= answerUnderWay(socket) === response && activeParsers(this.#server)?.has(parserOf(socket)) === true
    if (!this.#canAsk) return
    this.#candidates.add(socket)
    this.#timer ??= setTimeout(() => this.#look(), LOOK_MS).unref()
  }

  #look(): void {
    this.#timer = undefined
    const active = activeParsers(this.#server)
    if (active !== undefined && this.#refusing.isShedding()) {
      for (const socket of this.#candidates) if (isBetweenRequests(socket, active)) this.#take(socket)
    }
    // The others are refused again, and come here again.
    this.#candidates.clear()
  }

  #take(socket: Socket): void {
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
    const { isShedding, isRefused, answer } = this.#refusing
    let start = 0
    while (start < chunk.length) {
      const canAnswer = isShedding() && answerUnderWay(socket) === undefined && socket.writableLength === 0
      const request = canAnswer ? framedRequest(chunk, start) : undefined
      if (request === undefined) return chunk.subarray(start)
      if (isRefused(request)) socket.write(answer)
      else toNode(chunk.subarray(start, request.end))
      start = request.end
    }
    return undefined
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

/** The parsers that are in the middle of a request: from its first byte on, to its last. */
function activeParsers(server: Server): ReadonlySet<unknown> | undefined {
  const symbol = Object.getOwnPropertySymbols(server).find(({ description }) => description === CONNECTIONS)
  const connections: unknown = symbol === undefined ? undefined : Reflect.get(server, symbol)
  if (typeof connections !== 'object' || connections === null) return undefined
  const active: unknown = Reflect.get(connections, 'active')
  const parsers: unknown = typeof active === 'function' ? Reflect.apply(active, connections, []) : undefined
  return Array.isArray(parsers) ? new Set<unknown>(parsers) : undefined
}

const CONNECTIONS = 'http.server.connections'
