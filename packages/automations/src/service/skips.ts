import { isoInstant } from '@impresario/core'
import type { Put, Random } from '@impresario/core'
import type { SkippedRuns } from '@impresario/recurrence'
import { putAudit, SYSTEM_ACTOR } from './audit.ts'
import { nearId } from './record.ts'
import type { AutomationRecord } from './record.ts'

/** Occurrences that did not run, and why. */
export type Skipped = Omit<SkippedRuns, 'reason'> & { readonly reason: SkippedRuns['reason'] | 'paused' }

/** One entry for each stretch of occurrences that did not run. */
export function skipEntries(
  { id, owner }: AutomationRecord,
  skips: readonly Skipped[],
  at: number,
  random: Random,
): readonly Put[] {
  return skips.map(({ reason, first, last, count, isMore, calendar, label }) =>
    putAudit({
      id: nearId(random.id(), id),
      at,
      actor: SYSTEM_ACTOR,
      action: 'run.skipped',
      subject: id,
      owner,
      details: {
        reason,
        trigger: 'time',
        count,
        first: isoInstant(first),
        last: isoInstant(last),
        ...(isMore ? { is_more: true } : {}),
        ...(calendar === undefined ? {} : { calendar }),
        ...(label === undefined ? {} : { label }),
      },
    }),
  )
}
