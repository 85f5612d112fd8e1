import { setTimeout as pause } from 'node:timers/promises'
import { isImpresarioError } from '@impresario/protocol'
import type { Change, FileTask, TaskQueue } from './task.ts'

/** Until an orchestrator with too much work is asked again. */
const PAUSE_MS = 500

/**
 * Lets files into the queue: one task for a file at a time, and when the queue is full, those who bring files wait. A file that
 * changes while its task is under way comes in again when that has ended.
 */
export class Intake {
  readonly #queue: TaskQueue
  readonly #prepare: (path: string, change: Change) => Promise<FileTask | undefined>
  /** What becomes of each file; unknown where an earlier process began, which may have found the file gone already. */
  readonly #underWay = new Map<string, Change | undefined>()
  readonly #again = new Map<string, Change>()
  readonly #waiting: (() => void)[] = []
  readonly #pauseMs: number
  #isClosed = false

  constructor(
    queue: TaskQueue,
    prepare: (path: string, change: Change) => Promise<FileTask | undefined>,
    pauseMs = PAUSE_MS,
  ) {
    this.#queue = queue
    this.#pauseMs = pauseMs
    this.#prepare = prepare
    queue.onEnded(({ path }) => this.#ended(path))
  }

  /** What an earlier process left. */
  resume(tasks: readonly FileTask[]): void {
    for (const { path } of tasks) this.#underWay.set(path, undefined)
  }

  /** Whether a task of this process reads the file. One that deletes it says nothing of a file that came back. */
  isBeingRead(path: string): boolean {
    return this.#underWay.get(path) === 'present'
  }

  get isIdle(): boolean {
    return this.#underWay.size === 0 && this.#again.size === 0
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    if (this.isIdle) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /**
   * Resolves when the file is in the queue, which may take until there is room, and until an orchestrator that has more work than
   * it can do takes some again. Whoever does not want to wait for that hears of it.
   */
  async offer(path: string, change: Change, isPatient = true): Promise<void> {
    if (this.#isClosed) return
    if (this.#underWay.has(path)) {
      this.#again.set(path, change)
      return
    }
    this.#underWay.set(path, change)
    try {
      const task = await this.#prepare(path, change)
      if (task === undefined) this.#ended(path)
      else await this.#enqueue(task, isPatient)
    } catch (error) {
      this.#ended(path)
      throw error
    }
  }

  close(): void {
    this.#isClosed = true
    this.#again.clear()
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  async #enqueue(task: FileTask, isPatient: boolean): Promise<void> {
    while (!this.#isClosed) {
      await this.#queue.room()
      try {
        await this.#queue.enqueue(task)
        return
      } catch (error) {
        // Others were quicker: wait again.
        if (isImpresarioError(error, 'QUEUE_FULL')) continue
        if (!isPatient || !isImpresarioError(error, 'OVERLOADED')) throw error
        await pause(this.#pauseMs, undefined, { ref: false })
      }
    }
    this.#ended(task.path)
  }

  #ended(path: string): void {
    this.#underWay.delete(path)
    const change = this.#again.get(path)
    if (change !== undefined) {
      this.#again.delete(path)
      this.offer(path, change).catch(() => undefined)
      return
    }
    if (!this.isIdle) return
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
