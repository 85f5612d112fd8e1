import type { Storage } from '@impresario/core'
import type { HistoryStatus } from '@impresario/history'

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

  /** The history is shown and does not count: jobs do not wait for it. */
  async report(storage: Storage, history: HistoryStatus): Promise<HealthReport> {
    const needed = { storage: await this.#checked(storage), engine: { status: this.#engine } }
    const isReady = Object.values(needed).every(({ status }) => status === 'ok')
    return { status: isReady ? 'ready' : 'not_ready', components: { ...needed, history: historyComponent(history) } }
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

function historyComponent({ isAway, dropped }: HistoryStatus): Component {
  const lost = dropped === 0 ? [] : [`${dropped} events were lost since the start`]
  const reasons = [...(isAway ? ['its database does not answer, events wait'] : []), ...lost]
  return { status: isAway ? 'failed' : 'ok', ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }) }
}
