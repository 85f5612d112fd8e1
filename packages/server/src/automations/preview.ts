import { timeTriggers } from '@impresario/automations'
import type { AutomationRecord } from '@impresario/automations'
import { preview as previewOf } from '@impresario/recurrence'
import type { Preview, Restriction, Trigger, Zones } from '@impresario/recurrence'

export function timeTriggersOf({ definition }: Pick<AutomationRecord, 'definition'>, zones: Zones): readonly Trigger[] {
  return timeTriggers(definition.triggers, zones)
}

/** The next firings of an automation by the clock. */
export function preview(
  record: Pick<AutomationRecord, 'definition'>,
  zones: Zones,
  restriction: Restriction,
  after: number,
  count: number,
): Preview {
  return previewOf({ triggers: timeTriggersOf(record, zones), restriction, after, count })
}
