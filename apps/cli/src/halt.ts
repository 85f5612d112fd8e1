import type { Client, Job } from '@impresario/client'
import { COMMAND } from './failure.ts'

/** A worker that is there takes a task at once; one that has just started gets some time. */
const NO_WORKER_MS = 3_000

/**
 * Says, while a job is watched, that it does not go on by itself, and what to do: once for each question, and once for each
 * stay in which no worker takes the work.
 *
 * `look` with every change of the job; the newest one replaces a look that is still to come. `stop` ends it.
 */
export class Halt {
  readonly #client: Client
  readonly #say: (line: string) => void
  #timer: NodeJS.Timeout | undefined
  #said = ''

  constructor(client: Client, say: (line: string) => void) {
    this.#client = client
    this.#say = say
  }

  look(job: Job): void {
    this.stop()
    if (job.status === 'waiting_for_human') {
      this.#once(`${job.id} ${job.approval?.visit}`, `It waits for you: ${COMMAND} jobs approve ${job.id}`)
    } else if (isUntaken(job)) {
      this.#timer = setTimeout(() => {
        void this.#explain(job)
      }, NO_WORKER_MS)
    }
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Never rejects: the watch itself tells of a server that is gone. */
  async #explain({ id, currentState }: Job): Promise<void> {
    try {
      const { tasks } = await this.#client.explain(id)
      const untaken = tasks.find(({ where, explanation }) => {
        const canTake = explanation?.workers.some(({ place }) => place !== undefined) === true
        return where === 'waiting' && explanation !== null && !canTake
      })
      if (untaken === undefined) return
      this.#once(`${id} ${currentState}`, `No worker can take ${untaken.type} now: ${COMMAND} explain ${id}`)
    } catch {
      // The next change of the job is looked at again.
    }
  }

  #once(what: string, line: string): void {
    if (this.#said === what) return
    this.#said = what
    this.#say(line)
  }
}

function isUntaken({ status, work }: Job): boolean {
  const isWaiting = status === 'waiting_for_worker' || status === 'waiting_for_parallel'
  return isWaiting && (work === undefined || work.waiting > 0)
}
