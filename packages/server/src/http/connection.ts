import type { FastifyReply, FastifyRequest } from 'fastify'
import { isOver, whenOver } from './answer-end.ts'

/** Requests that wait for something, so that a stop can end their wait. */
export class OpenWaits {
  readonly #open = new Map<AbortController, FastifyReply>()
  #isStopping = false
  #waitMsMax: number | undefined

  get size(): number {
    return this.#open.size
  }

  /** A signal that aborts when the caller is gone or the server stops. Call `end` when the wait is over. */
  begin(reply: FastifyReply): { readonly signal: AbortSignal; end(): void } {
    const controller = new AbortController()
    const { raw } = reply
    const gone = (): void => controller.abort()
    if (this.#isStopping || isOver(raw)) controller.abort()
    const forget = whenOver(raw, gone)
    this.#open.set(controller, reply)
    const timer = this.#waitMsMax === undefined ? undefined : setTimeout(gone, this.#waitMsMax)
    const end = (): void => {
      clearTimeout(timer)
      forget()
      this.#open.delete(controller)
    }
    return { signal: controller.signal, end }
  }

  /**
   * Cuts the connections whose caller may no longer call. Cut and not answered: an answer would still tell him something,
   * and what was about to be handed to him goes back when it cannot be sent.
   */
  cut(isRevoked: (request: FastifyRequest) => boolean): void {
    for (const reply of this.#open.values()) if (isRevoked(reply.request)) reply.raw.destroy()
  }

  /** Ends the waits that there are, and lets later ones last only so long. */
  shorten(waitMsMax: number): void {
    this.#waitMsMax = waitMsMax
    for (const controller of this.#open.keys()) controller.abort()
  }

  stop(): void {
    this.#isStopping = true
    for (const controller of this.#open.keys()) controller.abort()
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
