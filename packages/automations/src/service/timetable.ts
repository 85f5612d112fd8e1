import { anyOf, planMisfires } from '@impresario/recurrence'
import type { MisfirePlan, MisfirePolicy, Restriction, Zones } from '@impresario/recurrence'
import { timeTriggers } from '../trigger/spec.ts'
import type { AutomationRecord } from './record.ts'

/** What has come due of an automation, and what comes next. Nothing for one that the clock does not start. */
export function planOf(
  record: AutomationRecord,
  now: number,
  zones: Zones,
  restriction: Restriction,
  policy: MisfirePolicy = record.definition.misfire,
): MisfirePlan | undefined {
  const { definition, handledUpTo, id } = record
  const triggers = timeTriggers(definition.triggers, zones)
  if (triggers.length === 0) return undefined
  const maxMs = definition.jitterSeconds * 1_000
  return planMisfires({
    series: anyOf(triggers.map(({ series }) => series)),
    restriction,
    handledUpTo,
    now,
    policy,
    ...(maxMs === 0 ? {} : { jitter: { maxMs, seed: id } }),
  })
}

/** None of what was missed runs, however little it is late. */
export const NOTHING_RUNS: MisfirePolicy = { kind: 'skip', graceMs: 0 }
