import { rehearse } from '@impresario/automations'
import type { AutomationDefinition, RehearsedStep } from '@impresario/automations'
import type { DataObject, Json, JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import { kept, object } from './wire-automation.ts'

export const previewRunRequest = z
  .object({
    definition: z
      .looseObject({ title: z.string().min(1).max(200), pipeline: z.array(object).max(100) })
      .describe('An automation as it is written.'),
    params: object.optional().describe('In place of single params.'),
    event: object.optional().describe('What `event` is in templates.'),
    steps: object.optional().describe('Supposed outputs of steps, by their names.'),
  })
  .describe('A definition, and what a run of it would read.')

interface RehearsedStepBody {
  readonly id: string
  readonly kind: RehearsedStep['kind']
  readonly uses: string | null
  readonly condition: { readonly source: string; readonly values: JsonObject; readonly holds: boolean | null } | null
  readonly input: Json
  readonly items: number | null
  readonly open: string[]
  readonly steps: RehearsedStepBody[]
}

const rehearsedStepBody = z.object({
  id: z.string(),
  kind: z.enum(['tool', 'approval', 'pipeline', 'parallel']),
  uses: z.string().nullable().describe('The tool.'),
  condition: z
    .object({
      source: z.string(),
      values: object,
      holds: z.boolean().nullable().describe('Null where it reads something that is not known before the run.'),
    })
    .nullable(),
  input: z.unknown().describe('With templates filled in. What is not known stays as it is written.'),
  items: z.number().nullable().describe('Items of its loop; the input is that of the first one.'),
  open: z.array(z.string()).describe('Why something is not known.'),
  steps: z.array(object).describe('The steps inside of it, in the same shape.'),
})
export const previewRunBody = z.object({ steps: z.array(rehearsedStepBody) })

export interface PreviewRunRequest {
  readonly definition: DataObject
  readonly params?: DataObject
  readonly event?: DataObject
  readonly steps?: DataObject
}

/** What a run of this definition would do at this time. */
export function wirePreviewRun(
  definition: AutomationDefinition,
  given: Omit<PreviewRunRequest, 'definition'>,
  now: number,
): { steps: RehearsedStepBody[] } {
  const steps = rehearse(definition.pipeline, {
    params: { ...definition.params, ...given.params },
    event: given.event ?? {},
    steps: given.steps ?? {},
    now: new Date(now).toISOString(),
    automation: { id: 'preview', title: definition.title },
  })
  return { steps: steps.map(wireRehearsed) }
}

function wireRehearsed({ condition, steps, ...step }: RehearsedStep): RehearsedStepBody {
  const { input } = kept({ input: step.input })
  return {
    id: step.id,
    kind: step.kind,
    uses: step.uses ?? null,
    condition:
      condition === undefined
        ? null
        : { source: condition.source, values: kept(condition.values), holds: condition.holds ?? null },
    input: input ?? null,
    items: step.items ?? null,
    open: [...step.open],
    steps: steps.map(wireRehearsed),
  }
}
