import { isImpresarioError } from '@impresario/protocol'
import { NamesInUse } from './names-in-use.ts'
import type { Touches } from './names-in-use.ts'

export interface GroupCommitOptions<Q, A> {
  /** Does what is asked for in one step, and gives an answer to each. */
  readonly send: (requests: readonly Q[]) => Promise<readonly A[]>
  /** Groups under way at the same time. Each has a connection. */
  readonly groupsMax: number
  /** One group at most: more would only make the first ones wait. */
  readonly sizeMax: number
  /** What a request holds, and how much of it one group takes; a heavier one travels alone. Without it only their number counts. */
  readonly weigh?: (request: Q) => number
  readonly weightMax?: number
  /** What a request changes; those that touch the same go one after the other. */
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
 * Another group sets out beside those under way once so many wait for each of them. Fewer are better off in the next group:
 * a group costs the server more than ten times what one more request in it does.
 */
const CROWD = 32
/** So long at most: who is under way may have met a lock, and must not hold up everybody else. */
const PATIENCE_MS = 25
/** How far to look for requests that can go along, in groups. */
const LOOK = 4

/**
 * Requests of one moment travel together, in one round trip and with one flush of the server's disk. Each has its own answer.
 *
 * When nothing is under way they set out at once; meanwhile others gather for the next group. A request waits until no other
 * one that touches the same is before it or under way, so that those to one thing happen in the order in which they were
 * called. When the server refuses a group, each of it goes again alone, so that only the culprit is refused. A group
 * whose outcome is unknown rejects all of it.
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
      // One tick of the event loop: what is asked for in it goes together.
      setImmediate(() => {
        this.#isScheduled = false
        this.#setOut()
      })
    })
  }

  /** Resolves once everything that was asked for before has its answer. */
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
      // What the storage itself refuses is undone; only then may it be sent again.
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
