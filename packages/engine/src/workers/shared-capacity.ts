import { deliveryId, parseDeliveryId, taskId } from '@impresario/core'
import type { Lease, Log, Storage, WorkerRecord } from '@impresario/core'
import type { Custody } from './custody.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Holdings } from './holdings.ts'
import { readTask } from '../job/payload.ts'
import type { Signals } from '../service/signals.ts'

export interface SharedCapacityOptions {
  readonly storage: Storage
  readonly holdings: Holdings
  readonly custody: Custody
  readonly dispatcher: Dispatcher
  readonly signals: Signals
  readonly log: Log
}

/** The record of a worker, as it was seen last. */
interface Known {
  readonly version: number
  readonly held: ReadonlySet<string>
}

/**
 * Who takes more tasks than this at a time is counted by each instance for itself: its record would be longer than its tasks
 * are, and one task more or less does not matter to it. It asks for no more than it has room for in any case.
 */
const EXACT_MAX = 64
/** The record of a worker that gets nothing for so long is gone; what it holds is named by its heartbeats. */
const RECORD_MS = 86_400_000
const WORKERS_MAX = 50_000
/** Each conflict is a handout of another instance to the same worker, which has few places. */
const CONFLICTS_MAX = 20

/**
 * Keeps a worker from getting more tasks than it has room for when it asks at several instances.
 *
 * What was handed to it stands in one record, written with its version before anything is handed over: two instances that
 * have a task for its last free place cannot both have it. While a worker stays with one instance that costs a small commit
 * for each handout, and nothing while that instance is alone on its storage.
 *
 * Beside that, instances tell each other who has got and who has ended what, so that each knows how busy a worker is when it
 * chooses one. That may be late: it steers the choice and never the truth.
 */
export class SharedCapacity {
  readonly #options: SharedCapacityOptions
  readonly #known = new Map<string, Known>()

  constructor(options: SharedCapacityOptions) {
    this.#options = options
    const { signals, dispatcher, holdings } = options
    signals.on('took', (id = '', workerId = '') => dispatcher.assign(id, workerId))
    signals.on('ended', (id = '') => this.#onEnded(id))
    signals.on('anew', (workerId = '') => holdings.clear(workerId))
  }

  /** The claimed tasks that the worker has room for, counting those of all instances. The others go back at once. */
  async fit(worker: WorkerRecord, leases: readonly Lease[]): Promise<readonly Lease[]> {
    const { signals, storage } = this.#options
    if (leases.length === 0 || !signals.hasPeers || !isCountedOverAll(worker)) return leases
    let fitting: readonly Lease[] = []
    try {
      fitting = await this.#reserve(worker, leases)
      return fitting
    } finally {
      const others = leases.slice(fitting.length)
      if (others.length > 0) await storage.renew(others, 0)
    }
  }

  /** A task does not come back after its result, so that nothing newer is meant by its id. */
  #onEnded(id: string): void {
    const { dispatcher, holdings, custody } = this.#options
    const workerId = dispatcher.workerOf(id)
    if (workerId === undefined) return
    dispatcher.release(id)
    const holding = holdings.of(workerId).get(id)
    if (holding !== undefined) custody.release(workerId, holding.lease)
  }

  async #reserve({ id, concurrencyMax }: WorkerRecord, leases: readonly Lease[]): Promise<readonly Lease[]> {
    const { storage, holdings, log } = this.#options
    let known = this.#known.get(id) ?? (await this.#look(id))
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const before = [...holdings.of(id).values()].map((holding) => holding.deliveryId)
      const fitting = leases.slice(0, Math.max(0, concurrencyMax - before.length))
      if (fitting.length === 0) return fitting
      const held = [...before, ...fitting.map(idOf)]
      const version = known.version + 1
      const put = [{ kind: 'hands', id, version, value: { held }, expiresMs: RECORD_MS } as const]
      if ((await storage.commit({ put })) === 'committed') {
        this.#remember(id, { version, held: new Set(held) })
        return fitting
      }
      known = await this.#look(id)
    }
    log.warn('a worker asks for tasks at too many places at once and gets none', { worker_id: id })
    return []
  }

  /** Learns what others have handed out. What stood there before and is not in the worker's hands any more has ended here. */
  async #look(id: string): Promise<Known> {
    const { storage, holdings, custody } = this.#options
    const stored = await storage.read('hands', id)
    const listed = stored?.value.held ?? []
    const before = this.#known.get(id)?.held
    const own = new Set([...holdings.of(id).values()].map((holding) => holding.deliveryId))
    const refs = listed.flatMap((one) =>
      own.has(one) || before?.has(one) === true ? [] : (parseDeliveryId(one) ?? []),
    )
    const views = await storage.peek(
      'tasks',
      refs.map(({ jobId, visit, branch }) => taskId(jobId, visit, branch)),
    )
    for (const [index, ref] of refs.entries()) if (views[index]?.lease?.token === ref.token) custody.hold(id, ref)
    const known: Known = { version: stored?.version ?? 0, held: new Set(listed) }
    this.#remember(id, known)
    return known
  }

  /** Deleted and set, so that the order of the map is the order of use; the oldest goes first. */
  #remember(id: string, known: Known): void {
    this.#known.delete(id)
    this.#known.set(id, known)
    if (this.#known.size > WORKERS_MAX) for (const oldest of this.#known.keys()) if (this.#known.delete(oldest)) break
  }
}

/** Whether what all instances hand to the worker is counted in one record. */
export function isCountedOverAll({ isOpenEnded, concurrencyMax }: WorkerRecord): boolean {
  return isOpenEnded !== true && concurrencyMax <= EXACT_MAX
}

/** As the worker will know it. */
function idOf({ payload, token }: Lease): string {
  const { jobId, visit, branch, attempt } = readTask(payload)
  return deliveryId({ jobId, visit, branch, attempt, token })
}
