import type { Soon } from '@impresario/protocol'

/** What is under way at this moment and needs no time to pass: calls of the storage, and handlers of blueprints. */
export class Activity {
  #running = 0
  #begun = 0

  get isQuiet(): boolean {
    return this.#running === 0
  }

  /** Changes whenever something begins. */
  get begun(): number {
    return this.#begun
  }

  async during<T>(work: () => Soon<T>): Promise<T> {
    this.#running += 1
    this.#begun += 1
    try {
      return await work()
    } finally {
      this.#running -= 1
    }
  }
}
