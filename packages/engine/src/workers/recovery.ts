import type { DeliveryRef, Storage } from '@impresario/core'
import { readTask } from '../job/payload.ts'

/** Tasks that are looked at together. */
const PAGE = 500

/** A task that a worker holds. */
export interface Held {
  readonly holder: string
  readonly ref: DeliveryRef
}

/**
 * The tasks that workers hold, read after a start. Workers that name their tasks in every heartbeat would tell by
 * themselves what they hold; the oldest do not, and without this their leases would end while they work.
 */
export async function* heldTasks(storage: Storage): AsyncGenerator<Held> {
  const ids = await storage.held('tasks')
  for (let from = 0; from < ids.length; from += PAGE) {
    for (const view of await storage.peek('tasks', ids.slice(from, from + PAGE))) {
      const lease = view?.lease
      if (view === undefined || lease?.holder === undefined) continue
      const { jobId, visit, branch, attempt } = readTask(view.payload)
      yield { holder: lease.holder, ref: { jobId, visit, branch, attempt, token: lease.token } }
    }
  }
}
