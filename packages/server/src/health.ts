import type { Storage } from '@impresario/core'

type State = 'ok' | 'starting' | 'stopping' | 'failed'

interface Component {
  readonly status: State
  readonly reason?: string
}

export interface HealthReport {
  readonly status: 'ready' | 'not_ready'
  readonly components: Readonly<Record<string, Component>>
}

/** Whether requests should come here: each part says for itself. */
export class Health {
  #engine: State = 'starting'
  #isDraining = false
  #storageFailed = false

  /** About to stop, and from then on: whoever asks is served, and told to come no more. */
  get isLeaving(): boolean {
    return this.#engine === 'stopping'
  }

  /** Nothing new is begun any more. */
  get isStopping(): boolean {
    return this.isLeaving && !this.#isDraining
  }

  /** `draining`: it will stop in a moment, and those who send requests here shall notice before. */
  mark(state: 'ok' | 'draining' | 'stopping'): void {
    this.#isDraining = state === 'draining'
    this.#engine = state === 'ok' ? 'ok' : 'stopping'
  }

  storageFailed(): void {
    this.#storageFailed = true
  }

  async report(storage: Storage): Promise<HealthReport> {
    const components = { storage: await this.#checked(storage), engine: { status: this.#engine } }
    const isReady = Object.values(components).every(({ status }) => status === 'ok')
    return { status: isReady ? 'ready' : 'not_ready', components }
  }

  async #checked(storage: Storage): Promise<Component> {
    if (this.#storageFailed) return { status: 'failed', reason: 'a write failed' }
    try {
      await storage.list('worker', { limit: 1 })
      return { status: 'ok' }
    } catch {
      return { status: 'failed', reason: 'it does not answer' }
    }
  }
}
