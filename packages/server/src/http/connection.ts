import type { FastifyReply, FastifyRequest } from 'fastify'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import { isOver, whenOver } from './answer-end.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The worker that makes this request, once it is known. */
    workerId: string | undefined
  }
}

/** Who waits. */
export type Waiting = Pick<FastifyRequest, 'caller' | 'workerId' | 'headers'>

/** A request that waits for something. */
export interface OpenWait extends Waiting {
  /** Ends the wait: it is answered with what there is. */
  stop(): void
  /** Closes its connection. */
  cut(): void
}

/** What a poll of a worker takes of the memory while it waits: 5.4 kB each were measured with 54,000 of them. */
const POLL_BYTES = 6_144
/** Any other request that waits, beside its head: that stays in memory too. */
const WAIT_BYTES = 12_288
const RETRY_AFTER_S = 2

/**
 * Requests that wait for something, so that a stop can end their wait. What they take of the memory has a bound: each connection can
 * bring any number of them, and each worker may have many.
 */
export class OpenWaits {
  readonly #bytesMax: number
  readonly #open = new Map<OpenWait, number>()
  #bytes = 0
  #isStopping = false
  #waitMsMax: number | undefined

  constructor(bytesMax: number = LIMITS.waitsBytesMax) {
    this.#bytesMax = bytesMax
  }

  get size(): number {
    return this.#open.size
  }

  /** Nothing more may wait. */
  get isFull(): boolean {
    return this.#bytes >= this.#bytesMax
  }

  /**
   * A signal that aborts when the caller is gone or the server stops. Call `end` when the wait is over. Throws while too much waits
   * already.
   */
  begin(reply: FastifyReply): { readonly signal: AbortSignal; end(): void } {
    if (this.isFull) throw tooMuchWaits()
    const controller = new AbortController()
    const { raw, request } = reply
    const gone = (): void => controller.abort()
    const { caller, workerId, headers } = request
    const cut = (): void => {
      raw.destroy()
    }
    const wait: OpenWait = { caller, workerId, headers, stop: gone, cut }
    if (isOver(raw)) controller.abort()
    const forget = whenOver(raw, gone)
    this.add(wait, WAIT_BYTES + headChars(request))
    const end = (): void => {
      forget()
      this.remove(wait)
    }
    return { signal: controller.signal, end }
  }

  /** To be removed when it is over. `bytes`: what it takes of the memory, about. */
  add(wait: OpenWait, bytes: number = POLL_BYTES): void {
    this.#open.set(wait, bytes)
    this.#bytes += bytes
    if (this.#isStopping) wait.stop()
    else if (this.#waitMsMax !== undefined) setTimeout(() => this.#stopLate(wait), this.#waitMsMax).unref()
  }

  remove(wait: OpenWait): void {
    this.#bytes -= this.#open.get(wait) ?? 0
    this.#open.delete(wait)
  }

  #stopLate(wait: OpenWait): void {
    if (this.#open.has(wait)) wait.stop()
  }

  /**
   * Cuts the connections whose caller may no longer call. Cut and not answered: an answer would still tell him something,
   * and what was about to be handed to him goes back when it cannot be sent.
   */
  cut(isRevoked: (waiting: Waiting) => boolean): void {
    for (const wait of this.#open.keys()) if (isRevoked(wait)) wait.cut()
  }

  /** Ends the waits that there are, and lets later ones last only so long. */
  shorten(waitMsMax: number): void {
    this.#waitMsMax = waitMsMax
    for (const wait of this.#open.keys()) wait.stop()
  }

  stop(): void {
    this.#isStopping = true
    for (const wait of this.#open.keys()) wait.stop()
  }
}

function headChars({ raw }: FastifyRequest): number {
  let chars = 0
  for (const text of raw.rawHeaders) chars += text.length
  return chars
}

function tooMuchWaits(): ImpresarioError {
  const message = 'Too many requests wait for something at once. Ask again later, or without a wait.'
  return new ImpresarioError('OVERLOADED', message, { details: { retry_after_s: RETRY_AFTER_S } })
}

/** Calls `lost` when the connection closes before the answer has left; never after it has. */
export function ifNotSent(reply: FastifyReply, lost: () => void): void {
  const { raw } = reply
  if (isOver(raw) && !raw.writableFinished) {
    lost()
    return
  }
  whenOver(raw, () => {
    if (!raw.writableFinished) lost()
  })
}
