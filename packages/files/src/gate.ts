import { ImpresarioError, LIMITS } from '@impresario/protocol'

interface Waiting {
  readonly weight: number
  readonly enter: () => void
}

/**
 * Lets in as much at a time as has room, in the order of arrival. What is heavier than all of the room enters alone. Who waits
 * too long is refused, and so is who comes when too many wait.
 */
export class Gate {
  readonly #room: number
  readonly #what: string
  readonly #queue = new Set<Waiting>()
  #inside = 0

  constructor(room: number, what: string) {
    this.#room = room
    this.#what = what
  }

  /** Resolves with what to call at the end; calling it twice does no harm. */
  async enter(weight = 1, signal?: AbortSignal): Promise<() => void> {
    const counted = Math.min(weight, this.#room)
    signal?.throwIfAborted()
    if (this.#queue.size > 0 || this.#inside + counted > this.#room) await this.#wait(counted, signal)
    else this.#inside += counted
    let isInside = true
    return () => {
      if (!isInside) return
      isInside = false
      this.#inside -= counted
      this.#letIn()
    }
  }

  async #wait(weight: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#queue.size >= LIMITS.fileOperationsWaitingMax) throw this.#refusal()
    await new Promise<void>((resolve, reject) => {
      const leave = (reason: unknown): void => {
        clearTimeout(timer)
        this.#queue.delete(waiting)
        signal?.removeEventListener('abort', abort)
        // The next in line may be lighter.
        this.#letIn()
        reject(reason instanceof Error ? reason : new Error('The operation was aborted'))
      }
      const abort = (): void => leave(signal?.reason)
      const timer = setTimeout(() => leave(this.#refusal()), LIMITS.fileWaitMs)
      const waiting: Waiting = {
        weight,
        enter: () => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', abort)
          resolve()
        },
      }
      signal?.addEventListener('abort', abort, { once: true })
      this.#queue.add(waiting)
    })
  }

  #letIn(): void {
    for (const waiting of this.#queue) {
      if (this.#inside + waiting.weight > this.#room) return
      this.#queue.delete(waiting)
      this.#inside += waiting.weight
      waiting.enter()
    }
  }

  #refusal(): ImpresarioError {
    return new ImpresarioError('OVERLOADED', `There are too many ${this.#what} at once. Try again later.`)
  }
}
