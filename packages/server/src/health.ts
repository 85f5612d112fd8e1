import type { Storage } from '@impresario/core'

type State = 'ok' | 'starting' | 'stopping' | 'failed'

export interface HealthReport {
  readonly status: 'ready' | 'not_ready'
  readonly components: Readonly<Record<string, { readonly status: State; readonly reason?: string }>>
}

/** Whether requests should come here: each part says for itself. */
export class Health {
  readonly #storage: Storage
  #server: State = 'starting'
  #failure: string | undefined

  constructor(storage: Storage) {
    this.#storage = storage
  }

  get isStopping(): boolean {
    return this.#server === 'stopping'
  }

  mark(state: State): void {
    this.#server = state
  }

  storageFailed(reason: string): void {
    this.#failure = reason
  }

  async report(): Promise<HealthReport> {
    const storage = await this.#checkStorage()
    const engine = { status: this.#server }
    const isReady = storage.status === 'ok' && engine.status === 'ok'
    return { status: isReady ? 'ready' : 'not_ready', components: { storage, engine } }
  }

  async #checkStorage(): Promise<{ status: State; reason?: string }> {
    if (this.#failure !== undefined) return { status: 'failed', reason: 'a write failed' }
    try {
      await this.#storage.list('worker', { limit: 1 })
      return { status: 'ok' }
    } catch {
      return { status: 'failed', reason: 'it does not answer' }
    }
  }
}
