import type { Batch } from '@impresario/core'
import { touchesOf } from './batch-message.ts'
import type { Touches } from './batch-message.ts'
import { NamesInUse } from './names-in-use.ts'

export type Outcome = 'committed' | 'conflict'

export interface GroupCommitOptions {
  /** Writes batches that touch different things, and gives back the numbers of those that conflict. */
  readonly write: (batches: readonly Batch[]) => Promise<ReadonlySet<number>>
  /** Groups under way at the same time. Each has a connection. */
  readonly groupsMax: number
}

interface Waiting {
  readonly batch: Batch
  readonly touches: Touches
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

/** One round trip and one flush of the server's disk for so many batches; more would only make the first ones wait. */
const GROUP_MAX = 128
/** How far to look for batches that can go along. */
const LOOK_MAX = 512

/**
 * Commits of one moment travel together. Each has its own outcome.
 *
 * A batch waits until no other one that touches the same is before it or under way, so that commits to one thing happen in
 * the order in which they were called. A group that could not be written as a whole rejects all of its batches.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions
  readonly #busy = new NamesInUse()
  readonly #underWay = new Set<Promise<void>>()
  #waiting: Waiting[] = []
  #isScheduled = false

  constructor(options: GroupCommitOptions) {
    this.#options = options
  }

  commit(batch: Batch): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ batch, touches: touchesOf(batch), resolve, reject })
      if (this.#isScheduled) return
      this.#isScheduled = true
      // One turn of the event loop: what is committed in it goes together.
      setImmediate(() => {
        this.#isScheduled = false
        this.#send()
      })
    })
  }

  /** Resolves once everything that was committed before has its outcome. */
  async drain(): Promise<void> {
    this.#send()
    while (this.#underWay.size > 0) await Promise.race(this.#underWay)
  }

  #send(): void {
    while (this.#underWay.size < this.#options.groupsMax) {
      const group = this.#nextGroup()
      if (group.length === 0) return
      const run = this.#run(group).finally(() => {
        this.#underWay.delete(run)
        this.#send()
      })
      this.#underWay.add(run)
    }
  }

  #nextGroup(): readonly Waiting[] {
    const group: Waiting[] = []
    const left: Waiting[] = []
    const ahead = new NamesInUse()
    for (const [index, one] of this.#waiting.entries()) {
      if (group.length >= GROUP_MAX || index >= LOOK_MAX) {
        left.push(...this.#waiting.slice(index))
        break
      }
      if (this.#busy.isFree(one.touches) && ahead.isFree(one.touches)) group.push(one)
      else left.push(one)
      ahead.take(one.touches)
    }
    this.#waiting = left
    for (const { touches } of group) this.#busy.take(touches)
    return group
  }

  async #run(group: readonly Waiting[]): Promise<void> {
    try {
      const conflicts = await this.#options.write(group.map(({ batch }) => batch))
      for (const [index, { resolve }] of group.entries()) resolve(conflicts.has(index) ? 'conflict' : 'committed')
    } catch (error) {
      for (const { reject } of group) reject(error)
    } finally {
      for (const { touches } of group) this.#busy.free(touches)
    }
  }
}
