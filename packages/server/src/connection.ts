import type { FastifyReply } from 'fastify'

/** Requests that wait for something, so that a stop can end their wait. */
export class OpenWaits {
  readonly #open = new Set<AbortController>()
  #isStopping = false

  get size(): number {
    return this.#open.size
  }

  /** A signal that aborts when the caller is gone or the server stops. Call `end` when the wait is over. */
  begin(reply: FastifyReply): { readonly signal: AbortSignal; end(): void } {
    const controller = new AbortController()
    const { raw } = reply
    const gone = (): void => controller.abort()
    if (this.#isStopping || raw.destroyed) controller.abort()
    raw.once('close', gone)
    this.#open.add(controller)
    const end = (): void => {
      raw.off('close', gone)
      this.#open.delete(controller)
    }
    return { signal: controller.signal, end }
  }

  stop(): void {
    this.#isStopping = true
    for (const controller of this.#open) controller.abort()
  }
}

/** Calls `lost` when the connection closes before the answer has left; never after it has. */
export function ifNotSent(reply: FastifyReply, lost: () => void): void {
  const { raw } = reply
  if (raw.destroyed && !raw.writableFinished) {
    lost()
    return
  }
  raw.once('close', () => {
    if (!raw.writableFinished) lost()
  })
}
