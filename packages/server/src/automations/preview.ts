import { timeTriggers } from '@impresario/automations'
import type { AutomationRecord } from '@impresario/automations'
import { preview as previewOf } from '@impresario/recurrence'
import type { Preview, Restriction, Zones } from '@impresario/recurrence'

/** The next firings of an automation by the clock. */
export function preview(
  { definition }: Pick<AutomationRecord, 'definition'>,
  zones: Zones,
  restriction: Restriction,
  after: number,
  count: number,
): Preview {
  return previewOf({ triggers: timeTriggers(definition.triggers, zones), restriction, after, count })
}
