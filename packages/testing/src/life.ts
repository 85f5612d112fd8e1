import type { Batch, Claimed, ClaimOptions, Queue, RunnableBlueprint, Storage } from '@impresario/core'
import { unlessAborted } from '@impresario/protocol'
import { TransportError } from '@impresario/worker'
import type { Activity } from './activity.ts'
import type { DueTimes } from './due-times.ts'
import type { FaultSource } from './faults.ts'

export interface LifeParts {
  readonly storage: Storage
  readonly activity: Activity
  readonly dueTimes: DueTimes
  readonly faults: FaultSource
}

/**
 * One run of the orchestrator, from its start to its stop or crash.
 *
 * `alive` → `over`, for good. After that its calls of the storage never return: whatever it was about to do does not happen,
 * as in a process that was killed.
 */
export class Life {
  readonly storage: Storage
  readonly #parts: LifeParts
  readonly #over = new AbortController()

  constructor(parts: LifeParts) {
    this.#parts = parts
    this.storage = this.#gated(parts.storage)
  }

  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  end(): void {
    this.#over.abort()
  }

  /** A call from outside, which fails when the life ends first. */
  reach<T>(call: Promise<T>): Promise<T> {
    const gone = (): Error => new TransportError('unavailable', 'The orchestrator crashed.')
    return unlessAborted(call, this.#over.signal, gone)
  }

  /** The same blueprint, whose handlers count as activity while they run. */
  observed(blueprint: RunnableBlueprint): RunnableBlueprint {
    const { activity } = this.#parts
    const perform: RunnableBlueprint['perform'] = (input) => activity.during(() => blueprint.perform(input))
    return new Proxy(blueprint, {
      get: (target, name) => (name === 'perform' ? perform : (Reflect.get(target, name) as unknown)),
    })
  }

  #gated(storage: Storage): Storage {
    return new Proxy(storage, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name)
        if (typeof method !== 'function') return method
        const run = (given: readonly unknown[]): unknown => Reflect.apply(method, target, given)
        if (name === 'watch' || name === 'close') return (...given: readonly unknown[]) => run(given)
        return (...given: readonly unknown[]) => this.#call(String(name), given, () => promised(run(given)))
      },
    })
  }

  async #call(name: string, given: readonly unknown[], run: () => Promise<unknown>): Promise<unknown> {
    if (this.isOver) return never()
    const { activity, faults } = this.#parts
    const crashes = name === 'commit' && faults.happens('orchestratorCrash')
    if (crashes && faults.isBefore()) {
      this.end()
      return never()
    }
    const reply = await activity.during(run)
    this.#note(name, given, reply)
    if (crashes) this.end()
    return this.isOver ? never() : reply
  }

  /** Boundary: the arguments and replies of the storage's methods, by the name of the method. */
  #note(name: string, given: readonly unknown[], reply: unknown): void {
    const { dueTimes } = this.#parts
    if (name === 'commit') dueTimes.committed(given[0] as Batch)
    if (name === 'renew') dueTimes.add(given[1] as number)
    if (name === 'claim' || name === 'claimExpired') {
      dueTimes.claimed(given[0] as Queue, reply as Claimed, (given[1] as ClaimOptions).leaseMs)
    }
  }
}

function promised(value: unknown): Promise<unknown> {
  return Promise.resolve(value)
}

function never(): Promise<never> {
  return new Promise(() => {})
}
