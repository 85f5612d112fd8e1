import type { CalendarRecord, ConditionView } from '@impresario/automations'
import { jsonObjectCopy } from '@impresario/core'
import type { JsonObject } from '@impresario/protocol'
import type { CalendarEntry } from '@impresario/recurrence'
import { z } from 'zod'
import { page } from './wire-automation.ts'

const moment = z.number().describe('Unix seconds.')

export const observeRequest = z.object({
  values: z
    .record(z.string(), z.unknown())
    .describe('What was measured. The expression of the condition reads it as `output`.'),
})

export const conditionBody = z.object({
  trigger: z.number().describe('Its place among the triggers, from 0.'),
  expression: z.string(),
  state: z.enum(['clear', 'pending', 'raised']).describe('`pending`: it holds, but not yet for `for_seconds`.'),
  since: moment.nullable().describe('When it came into this state; null before the first value.'),
  values: z.looseObject({}).describe('What the expression read last.'),
  holds: z.boolean().nullable().describe('What came of it; null when it could not be computed.'),
  error: z.string().nullable().describe('Why it could not be computed.'),
  observed_at: moment.nullable(),
  crossed_at: moment.nullable().describe('When it was raised or cleared last.'),
  fired_at: moment.nullable(),
  run_id: z.string().nullable().describe('The run that it asked for last.'),
})
export const conditionList = z.array(conditionBody)

export function wireCondition({ at, trigger, record }: ConditionView): z.infer<typeof conditionBody> {
  const { edge, seen, crossing, fired } = record
  return {
    trigger: at,
    expression: trigger.expression,
    state: edge.phase,
    since: edge.since === 0 ? null : edge.since / 1_000,
    values: kept(seen?.values ?? {}),
    holds: seen?.holds ?? null,
    error: seen?.error ?? null,
    observed_at: seconds(seen?.at),
    crossed_at: seconds(crossing?.at),
    fired_at: seconds(fired?.at),
    run_id: fired?.runId ?? null,
  }
}

function seconds(ms: number | undefined): number | null {
  return ms === undefined ? null : ms / 1_000
}

/** As it is stored: the codec at the edge writes numbers as they were. */
function kept(value: object): JsonObject {
  return jsonObjectCopy(value, 'The answer')
}

export const calendarParams = z.object({ calendar: z.string().describe('Name of a calendar.') })
export const calendarListQuery = z.looseObject(page)

/** What is inside is checked by the reader of calendars, which names every problem. */
export const calendarRequest = z
  .looseObject({
    description: z.string().max(500).optional(),
    timezone: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .describe('Of days and local times; without it, that of the automation.'),
    entries: z
      .array(z.record(z.string(), z.unknown()))
      .max(5_000)
      .optional()
      .describe('See the guide for their forms.'),
    ics: z.string().min(1).optional().describe('An iCalendar file (RFC 5545), whose events are added.'),
  })
  .describe('A calendar as it is written.')

export const calendarBody = z.object({
  name: z.string(),
  owner: z.string(),
  description: z.string(),
  timezone: z.string().nullable(),
  entries: z.array(z.looseObject({})),
  updated_at: moment,
  updated_by: z.string(),
  unread: z.array(z.string()).optional().describe('What of an iCalendar file could not be read.'),
})
export const calendarList = z.array(calendarBody)

export function wireCalendar(record: CalendarRecord, unread: readonly string[] = []): z.infer<typeof calendarBody> {
  const { name, owner, description, spec, updatedAt, updatedBy } = record
  return {
    name,
    owner,
    description,
    timezone: spec.timezone ?? null,
    entries: spec.entries.map(wireEntry),
    updated_at: updatedAt / 1_000,
    updated_by: updatedBy,
    ...(unread.length === 0 ? {} : { unread: [...unread] }),
  }
}

/** In the form in which it can be sent again. */
function wireEntry(entry: CalendarEntry): JsonObject {
  const label = entry.label === undefined ? {} : { label: entry.label }
  switch (entry.kind) {
    case 'days':
      return kept({ date: entry.first, ...(entry.last === undefined ? {} : { until: entry.last }), ...label })
    case 'weekdays':
      return kept({ weekdays: entry.weekdays, ...label })
    case 'window':
      return kept({ start: entry.start, end: entry.end, ...label })
    case 'rule': {
      const { rrule, dtstart, durationMs, timezone, exdates: exdate, rdates: rdate } = entry
      const length = durationMs === undefined ? undefined : durationMs / 1_000
      const all = { rrule, dtstart, duration_seconds: length, timezone, exdate, rdate, ...label }
      return kept(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)))
    }
  }
}
