import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { LIMITS } from '@impresario/protocol'
import { isOver, whenOver } from './answer-end.ts'

/** Shorter answers fit into the buffers of the operating system. */
export const LONG_BYTES = 65_536
/** Who has read for less than that is not slow yet. */
const NEW_MS = 1_000

export interface ReaderBounds {
  readonly stallMs: number
  readonly bytesPerSecondMin: number
  readonly bytesMax: number
}

const BOUNDS: ReaderBounds = {
  stallMs: LIMITS.answerStallMs,
  bytesPerSecondMin: LIMITS.answerBytesPerSecondMin,
  bytesMax: LIMITS.answersBytesMax,
}

interface Answer {
  readonly raw: ServerResponse
  bytes: number
  readonly begunAt: number
}

/**
 * Long answers that are on their way. What their readers do not take stays in our memory: so a reader that takes nothing for a
 * while is cut off, one that takes very little as well, and the slowest one when all of them together hold too much.
 */
export class SlowReaders {
  readonly #bounds: ReaderBounds
  /** The oldest first. */
  readonly #answers = new Set<Answer>()
  /** Those that come in pieces, where each piece is in memory until it is read. */
  readonly #inPieces = new WeakMap<ServerResponse, Answer>()
  #bytes = 0

  constructor(bounds: Partial<ReaderBounds> = {}) {
    this.#bounds = { ...BOUNDS, ...bounds }
  }

  /** What waits to be read. */
  get bytes(): number {
    return this.#bytes
  }

  /** `bytes`: how long the answer is; zero where that is not known. */
  begin(raw: ServerResponse, bytes: number, now: number = performance.now()): void {
    // A request of this process, such as one of a tool of MCP: no network is slow, and the connection is none.
    if (!(raw.req.socket instanceof Socket)) return
    const { stallMs, bytesPerSecondMin } = this.#bounds
    // Node sees whether anything is written on, and closes the connection if nothing is. It sets another time when the
    // answer is through. One that waits for the answer before it gets its connection later.
    if (raw.socket === null) raw.once('socket', (socket: Socket) => socket.setTimeout(stallMs))
    else raw.socket.setTimeout(stallMs)
    if (bytes === 0) return
    const answer = this.#count(raw, bytes, now)
    const deadline = setTimeout(() => cutOff(raw), stallMs + (bytes / bytesPerSecondMin) * 1_000)
    deadline.unref()
    const end = (): void => {
      clearTimeout(deadline)
      this.#forget(answer)
    }
    raw.once('finish', end)
    whenOver(raw, end)
    this.makeRoom(now)
  }

  /**
   * One more piece of an answer whose maker does not wait until the reader has taken the one before. It counts until the answer is
   * over.
   */
  addPiece(raw: ServerResponse, bytes: number, now: number = performance.now()): void {
    const known = this.#inPieces.get(raw)
    if (known === undefined) {
      const answer = this.#count(raw, bytes, now)
      this.#inPieces.set(raw, answer)
      whenOver(raw, () => this.#forget(answer))
    } else if (this.#answers.has(known)) {
      known.bytes += bytes
      this.#bytes += bytes
    }
    this.makeRoom(now)
  }

  #count(raw: ServerResponse, bytes: number, begunAt: number): Answer {
    const answer = { raw, bytes, begunAt }
    this.#answers.add(answer)
    this.#bytes += bytes
    return answer
  }

  #forget(answer: Answer): void {
    if (this.#answers.delete(answer)) this.#bytes -= answer.bytes
  }

  /** Cuts off those who have been reading for longest, while all together hold too much. */
  makeRoom(now: number = performance.now()): void {
    for (const answer of this.#answers) {
      if (this.#bytes <= this.#bounds.bytesMax || now - answer.begunAt < NEW_MS) return
      this.#forget(answer)
      cutOff(answer.raw)
    }
  }
}

/**
 * Closes the connection. One that many requests came over at once has answers that wait for the one before them: these know
 * no connection of their own yet, and to destroy them would change nothing.
 */
function cutOff(raw: ServerResponse): void {
  raw.req.socket.destroy()
}

/** To be called after whatever changes the length of answers. */
export function watchReaders(app: FastifyInstance, readers: SlowReaders = new SlowReaders()): void {
  app.addHook('onSend', (_request, reply, given: unknown, done) => {
    // As bytes a long answer is outside of the heap, and half as large when it has characters beyond Latin-1.
    const payload = typeof given === 'string' && given.length >= LONG_BYTES ? Buffer.from(given) : given
    const bytes = lengthOf(payload)
    if (bytes === undefined || bytes >= LONG_BYTES) readers.begin(reply.raw, bytes ?? 0)
    if (payload instanceof Readable) endWith(reply.raw, payload)
    done(null, payload)
  })
}

/**
 * What comes piece by piece ends with its answer. Fastify sees to that where the answer hears of its end; one that waits for
 * another answer of its connection does not, and its file or its place among the streams would be held for ever.
 */
function endWith(raw: ServerResponse, pieces: Readable): void {
  if (!isOver(raw)) whenOver(raw, () => pieces.destroy())
}

/** `undefined` for what comes piece by piece. */
function lengthOf(payload: unknown): number | undefined {
  if (typeof payload === 'string') return payload.length
  if (payload instanceof Readable) return undefined
  return payload instanceof Uint8Array ? payload.length : 0
}
