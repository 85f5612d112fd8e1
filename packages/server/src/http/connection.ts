import type { FastifyReply, FastifyRequest } from 'fastify'
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

/** Requests that wait for something, so that a stop can end their wait. */
export class OpenWaits {
  readonly #open = new Set<OpenWait>()
  #isStopping = false
  #waitMsMax: number | undefined

  get size(): number {
    return this.#open.size
  }

  /** A signal that aborts when the caller is gone or the server stops. Call `end` when the wait is over. */
  begin(reply: FastifyReply): { readonly signal: AbortSignal; end(): void } {
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
    this.add(wait)
    const end = (): void => {
      forget()
      this.remove(wait)
    }
    return { signal: controller.signal, end }
  }

  /** To be removed when it is over. */
  add(wait: OpenWait): void {
    this.#open.add(wait)
    if (this.#isStopping) wait.stop()
    else if (this.#waitMsMax !== undefined) setTimeout(() => this.#stopLate(wait), this.#waitMsMax).unref()
  }

  remove(wait: OpenWait): void {
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
    for (const wait of this.#open) if (isRevoked(wait)) wait.cut()
  }

  /** Ends the waits that there are, and lets later ones last only so long. */
  shorten(waitMsMax: number): void {
    this.#waitMsMax = waitMsMax
    for (const wait of this.#open) wait.stop()
  }

  stop(): void {
    this.#isStopping = true
    for (const wait of this.#open) wait.stop()
  }
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
