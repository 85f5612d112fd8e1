import { isImpresarioError } from '@impresario/protocol'
import { NamesInUse } from './names-in-use.ts'
import type { Touches } from './names-in-use.ts'

export interface GroupCommitOptions<Q, A> {
  /** Executes the requests in one step and returns a result for each. */
  readonly send: (requests: readonly Q[]) => Promise<readonly A[]>
  /** Groups in progress at the same time. Each has a connection. */
  readonly groupsMax: number
  /** Maximum size of a group: more would only make the first requests wait. */
  readonly sizeMax: number
  /**
   * The weight of a request, and the total that one group takes; a heavier request is sent alone. Without it only the
   * number counts.
   */
  readonly weigh?: (request: Q) => number
  readonly weightMax?: number
  /** The names that a request changes. Requests that touch the same name run one after the other. */
  readonly touches?: (request: Q) => Touches
}

interface Waiting<Q, A> {
  readonly request: Q
  readonly touches: Touches | undefined
  readonly weight: number
  readonly resolve: (answer: A) => void
  readonly reject: (error: unknown) => void
}

/**
 * Another group is started beside those in progress once this many requests wait for each of them. Fewer are better off
 * in the next group: a group costs the server more than ten times as much as one more request in it.
 */
const CROWD = 32
/** Maximum wait: a group in progress may be waiting for a lock, and must not delay all other requests. */
const PATIENCE_MS = 25
/** How far to scan for requests that can join a group, in groups. */
const LOOK = 4

/**
 * Requests that are made at the same time are sent together, in one round trip and with one disk flush of the server.
 * Each gets its own result.
 *
 * If nothing is in progress they are sent at once; meanwhile others collect for the next group. A request waits until
 * no other request that touches the same name is before it or in progress, so that requests for one name take effect in
 * call order. If the server refuses a group, each of its requests is retried alone, so that only the faulty one is
 * refused. If the outcome of a group is unknown, all its requests are rejected.
 */
export class GroupCommit<Q, A> {
  readonly #options: GroupCommitOptions<Q, A>
  readonly #busy = new NamesInUse()
  readonly #underWay = new Set<Promise<void>>()
  #waiting: Waiting<Q, A>[] = []
  #isScheduled = false
  #patience: NodeJS.Timeout | undefined

  constructor(options: GroupCommitOptions<Q, A>) {
    this.#options = options
  }

  ask(request: Q): Promise<A> {
    return new Promise((resolve, reject) => {
      const { touches, weigh } = this.#options
      const weight = weigh?.(request) ?? 0
      this.#waiting.push({ request, touches: touches?.(request), weight, resolve, reject })
      if (this.#isScheduled) return
      this.#isScheduled = true
      // One tick of the event loop: requests made in it are sent together.
      setImmediate(() => {
        this.#isScheduled = false
        this.#setOut()
      })
    })
  }

  /** Resolves once all earlier requests have their results. */
  async drain(): Promise<void> {
    this.#setOut()
    while (this.#underWay.size > 0) await Promise.race(this.#underWay)
  }

  #setOut(isImpatient = false): void {
    const { groupsMax } = this.#options
    while (this.#underWay.size < groupsMax && this.#waiting.length > 0) {
      if (!isImpatient && this.#waiting.length < this.#underWay.size * CROWD) break
      const group = this.#nextGroup()
      if (group.length === 0) return
      this.#stopTimer()
      const run = this.#run(group).finally(() => {
        this.#underWay.delete(run)
        this.#setOut()
      })
      this.#underWay.add(run)
    }
    if (this.#waiting.length === 0) this.#stopTimer()
    else this.#patience ??= setTimeout(() => this.#loseTime(), PATIENCE_MS)
  }

  #loseTime(): void {
    this.#patience = undefined
    this.#setOut(true)
  }

  #stopTimer(): void {
    clearTimeout(this.#patience)
    this.#patience = undefined
  }

  #nextGroup(): readonly Waiting<Q, A>[] {
    const { sizeMax, weightMax = Infinity } = this.#options
    const group: Waiting<Q, A>[] = []
    const left: Waiting<Q, A>[] = []
    const ahead = new NamesInUse()
    let weight = 0
    for (const [index, one] of this.#waiting.entries()) {
      if (group.length >= sizeMax || index >= sizeMax * LOOK) {
        left.push(...this.#waiting.slice(index))
        break
      }
      const { touches } = one
      const hasRoom = group.length === 0 || weight + one.weight <= weightMax
      if (hasRoom && (touches === undefined || (this.#busy.isFree(touches) && ahead.isFree(touches)))) {
        group.push(one)
        weight += one.weight
      } else left.push(one)
      if (touches !== undefined) ahead.take(touches)
    }
    this.#waiting = left
    for (const { touches } of group) if (touches !== undefined) this.#busy.take(touches)
    return group
  }

  async #run(group: readonly Waiting<Q, A>[]): Promise<void> {
    try {
      const answers = await this.#options.send(group.map(({ request }) => request))
      for (const [index, { resolve, reject }] of group.entries()) {
        const answer = answers[index]
        if (answer === undefined) reject(new Error('A request that travelled with others got no answer'))
        else resolve(answer)
      }
    } catch (error) {
      // If the storage itself refuses a group, the group is rolled back; only then may it be retried.
      if (group.length === 1 || isImpresarioError(error)) for (const { reject } of group) reject(error)
      else await this.#runAlone(group)
    } finally {
      for (const { touches } of group) if (touches !== undefined) this.#busy.free(touches)
    }
  }

  async #runAlone(group: readonly Waiting<Q, A>[]): Promise<void> {
    for (const one of group) await this.#run([{ ...one, touches: undefined }])
  }
}
