import type { Storage } from '@impresario/core'
import type { HistoryStatus } from '@impresario/history'
import { isImpresarioError } from '@impresario/protocol'
import { within } from '../runtime/within.ts'

type State = 'ok' | 'starting' | 'stopping' | 'failed'

interface Component {
  readonly status: State
  readonly reason?: string
}

export interface HealthReport {
  readonly status: 'ready' | 'not_ready'
  readonly components: Readonly<Record<string, Component>>
}

/** Most readiness probes wait no longer than this. */
const ANSWER_MS = 2_000
/** A replica refuses more than writes, and a person looks for the same cause. */
export const REFUSES_WRITES = 'it refuses writes'
const AWAY: Component = { status: 'failed', reason: 'it does not answer' }

/** Whether requests should come here: each part says for itself. */
export class Health {
  #engine: State = 'starting'
  #isDraining = false
  #writeProblem: () => string | undefined = () => undefined
  #storageFailure: string | undefined

  /** About to stop, and from then on: requests are served, and their connections are closed. */
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

  /** For good: whatever it shows is not what the disk holds. */
  storageFailed(reason: string): void {
    this.#storageFailure = reason
  }

  /** Tells what is wrong with writes, where the storage is elsewhere. */
  watchWrites(problem: () => string | undefined): void {
    this.#writeProblem = problem
  }

  /** The history is shown and does not count: jobs do not wait for it. */
  async report(storage: Storage, history: HistoryStatus): Promise<HealthReport> {
    const needed = { storage: await this.#checked(storage), engine: { status: this.#engine } }
    const isReady = Object.values(needed).every(({ status }) => status === 'ok')
    return { status: isReady ? 'ready' : 'not_ready', components: { ...needed, history: historyComponent(history) } }
  }

  async #checked(storage: Storage): Promise<Component> {
    if (this.#storageFailure !== undefined) return { status: 'failed', reason: this.#storageFailure }
    const problem = this.#writeProblem()
    if (problem !== undefined) return { status: 'failed', reason: problem }
    try {
      const inTime = await within(ANSWER_MS, storage.list('worker', { limit: 1 }))
      return inTime ? { status: 'ok' } : AWAY
    } catch (error) {
      return isImpresarioError(error, 'STORAGE_REFUSED') ? { status: 'failed', reason: REFUSES_WRITES } : AWAY
    }
  }
}

function historyComponent({ isAway, dropped }: HistoryStatus): Component {
  const lost = dropped === 0 ? [] : [`${dropped} events were lost since the start`]
  const reasons = [...(isAway ? ['its database does not answer, events wait'] : []), ...lost]
  return { status: isAway ? 'failed' : 'ok', ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }) }
}
