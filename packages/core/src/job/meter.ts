import { addUsage, LIMITS, NO_USAGE } from '@impresario/protocol'
import { findTask } from './branch.ts'
import type { Draft } from './draft.ts'
import type { IgnoredReason } from './effect.ts'
import type { EventOf } from './event.ts'

/**
 * Adds what a task has used to what its job has. A report that comes twice counts once: its id is kept while the try lasts,
 * and after that whatever comes for it is stale.
 */
export function meterTask(draft: Draft, event: EventOf<'metered'>): IgnoredReason | undefined {
  const { job } = draft
  const task = findTask(job, event)
  if (task === undefined) return 'stale_task'
  const { name, branch } = task
  const key = `${event.attempt}/${event.eventId}`
  const known = branch.metered ?? []
  if (known.includes(key)) return 'repeated_event'
  const metered = [...known, key].slice(-LIMITS.workerEventIdsMax)
  draft.job.branches = { ...job.branches, [name]: { ...branch, metered } }
  draft.job.usage = addUsage(job.usage ?? NO_USAGE, event.usage)
  return undefined
}
