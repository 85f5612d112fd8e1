import { isDraft, partsOf, textOf } from './draft.ts'
import type { Draft } from './draft.ts'

/** What a step does: calls a tool, asks a person, or has further steps. */
export const STEP_KINDS = ['tool', 'approval', 'pipeline', 'parallel'] as const
export type StepKind = (typeof STEP_KINDS)[number]

/** Steps can be nested so deep. */
export const DEPTH_MAX = 4

const BODY_FIELDS: ReadonlySet<string> = new Set(['uses', 'with', 'approval', 'pipeline', 'parallel'])

export function stepKindOf(step: Draft): StepKind {
  return STEP_KINDS.find((kind) => kind !== 'tool' && kind in step) ?? 'tool'
}

/** The same step with another body. Its id, its condition and what happens when it fails stay. */
export function stepOfKind(kind: StepKind, step: Draft): Draft {
  const kept = Object.fromEntries(Object.entries(step).filter(([name]) => !BODY_FIELDS.has(name)))
  const inner = (number: number): Draft => newStep(`${textOf(step['id']) || 'step'}_${number}`)
  switch (kind) {
    case 'approval':
      return { ...kept, approval: { message: '' } }
    case 'pipeline':
      return { ...kept, pipeline: [inner(1)] }
    case 'parallel':
      return { ...kept, parallel: [inner(1), inner(2)] }
    default:
      return { ...kept, ...newStep(''), id: step['id'] ?? '' }
  }
}

export function newStep(id: string): Draft {
  return { id, uses: 'log', with: { message: '' } }
}

/** Every id in these steps and in those inside of them. */
export function idsIn(steps: readonly Draft[]): readonly string[] {
  return steps.flatMap((step) => [
    textOf(step['id']),
    ...idsIn(partsOf(step, 'pipeline')),
    ...idsIn(partsOf(step, 'parallel')),
  ])
}

/** A field that is written short as one value, or as an object with that value under a name. */
export function longForm(value: unknown, name: string): Draft {
  if (isDraft(value)) return value
  return value === undefined ? {} : { [name]: value }
}

/** Nothing for an object without the field that it is about. */
export function shortForm(value: Draft, name: string): unknown {
  const fields = Object.entries(value).filter(([, one]) => one !== undefined && one !== '')
  if (!fields.some(([key]) => key === name)) return undefined
  return fields.length === 1 ? value[name] : Object.fromEntries(fields)
}

export function decisionsIn(text: string): readonly string[] | undefined {
  const named = text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
  return named.length === 0 ? undefined : named
}
