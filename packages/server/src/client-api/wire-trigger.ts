import type { ConditionView } from '@impresario/automations'
import { jsonObjectCopy } from '@impresario/core'
import type { JsonObject } from '@impresario/protocol'
import { z } from 'zod'

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
