import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { ImpresarioError } from '@impresario/protocol'
import { isOver, whenOver } from './answer-end.ts'
import type { SlowReaders } from './slow-readers.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** It answers with a page of a list, which may be as long as a page may be. */
    readonly isList?: boolean
  }
}

export interface PageBounds {
  /** Pages that are made at the same time. */
  readonly pagesMax: number
  /** Bytes of long replies that have not been read yet; beyond it no page is begun. */
  readonly unreadBytesMax: number
  /** How long a request waits until it may enter. */
  readonly waitMs: number
  /** How long it waits for others, such as results, while the event loop does not keep up with them. */
  readonly yieldMs: number
}

const LOOK_MS = 50
const RETRY_AFTER_S = 2

interface Waiting {
  readonly raw: ServerResponse
  readonly since: number
  readonly enter: () => void
  readonly refuse: (error: Error) => void
}

/**
 * Lets lists be read a few at a time, in the order in which they were asked for. While a page is made, its records and its text
 * are in memory, some tens of megabytes at the worst, and requests of one connection are all begun at once. Most pages
 * are short and not noticed; a request that waits too long is refused. A long page is the most work that a request can
 * ask for, so while the event loop is late everything else goes first, for a while.
 */
export class PageGate {
  readonly #bounds: PageBounds
  readonly #readers: Pick<SlowReaders, 'bytes' | 'makeRoom'>
  readonly #isBusy: () => boolean
  readonly #under = new Set<ServerResponse>()
  readonly #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(
    bounds: PageBounds,
    readers: Pick<SlowReaders, 'bytes' | 'makeRoom'>,
    isBusy: () => boolean = () => false,
  ) {
    this.#bounds = bounds
    this.#readers = readers
    this.#isBusy = isBusy
  }

  /** Resolves when the page may be made. */
  enter(raw: ServerResponse, now: number = performance.now()): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#hasRoom() && !this.#isBusy()) {
      this.#begin(raw)
      return undefined
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ raw, since: now, enter: resolve, refuse: reject })
      this.#timer ??= setInterval(() => this.look(), LOOK_MS)
    })
  }

  /** The page is made. Safe to call twice, and for requests that were never let in. */
  leave(raw: ServerResponse): void {
    if (this.#under.delete(raw)) this.look()
  }

  /** Admits waiting requests that have room, and refuses those that have waited too long. */
  look(now: number = performance.now()): void {
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      const isGone = isOver(first.raw)
      const waitedMs = now - first.since
      const isLate = waitedMs >= this.#bounds.waitMs
      const yields = waitedMs < this.#bounds.yieldMs && this.#isBusy()
      if (!isGone && !isLate && (yields || !this.#hasRoom())) break
      this.#waiting.shift()
      if (isGone || isLate) first.refuse(tooMany())
      else {
        this.#begin(first.raw)
        first.enter()
      }
    }
    if (this.#waiting.length > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #hasRoom(): boolean {
    if (this.#under.size >= this.#bounds.pagesMax) return false
    if (this.#readers.bytes > this.#bounds.unreadBytesMax) this.#readers.makeRoom()
    return this.#readers.bytes <= this.#bounds.unreadBytesMax
  }

  #begin(raw: ServerResponse): void {
    this.#under.add(raw)
    whenOver(raw, () => this.leave(raw))
  }
}

/** To be called after whatever counts the bytes of answers, so that there is no gap between the two. */
export function gatePages(app: FastifyInstance, gate: PageGate): void {
  app.addHook('preHandler', (request, reply, done) => {
    if (request.routeOptions.config.isList !== true) {
      done()
      return
    }
    const entered = gate.enter(reply.raw)
    if (entered === undefined) done()
    else entered.then(() => done(), done)
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    gate.leave(reply.raw)
    done(null, payload)
  })
}

function tooMany(): ImpresarioError {
  return new ImpresarioError('OVERLOADED', 'Too many lists are being read at once.', {
    details: { retry_after_s: RETRY_AFTER_S },
  })
}
