import { ImpresarioError } from '@impresario/protocol'
import type { Schema } from '@impresario/protocol'
import { compileExpression } from '../expression/expression.ts'
import type { CompiledExpression } from '../expression/expression.ts'

interface ConditionSchemas {
  readonly state: string
  readonly input: Schema | undefined
  readonly history: Schema | undefined
}

/** Reads a condition that is written as text, and holds it against what is known of the context. */
export function compileCondition(source: string, schemas: ConditionSchemas): CompiledExpression {
  const expression = compileExpression(source)
  const problems = expression.problemsUnder(scopeSchema(schemas))
  if (problems.length === 0) return expression
  throw new ImpresarioError('INVALID_BLUEPRINT', `the condition "${source}" is wrong: ${problems.join('; ')}.`)
}

const TEXT = { type: 'string' } as const

function scopeSchema({ state, input, history }: ConditionSchemas): object {
  // The names of other fields are checked when the expression is read; what is in them is not known here.
  const context = object({
    jobId: TEXT,
    currentState: { const: state },
    initialData: jsonSchemaOf(input),
    stateHistory: historySchema(jsonSchemaOf(history)),
    client: { ...object({ id: TEXT, plan: { type: ['string', 'null'] }, params: {} }), additionalProperties: false },
    tracingContext: { type: 'object', additionalProperties: TEXT },
  })
  return object({ context })
}

function object(properties: Readonly<Record<string, object>>): object {
  return { type: 'object', properties, required: Object.keys(properties) }
}

/** Any key may not have been written yet, and a person's decision is there in any case. */
function historySchema(schema: Readonly<Record<string, unknown>>): object {
  if (typeof schema['properties'] !== 'object') return schema
  return { ...schema, properties: { decision: {}, ...schema['properties'] }, required: [] }
}

interface Converter {
  readonly input: (options: object) => Readonly<Record<string, unknown>>
  readonly output: (options: object) => Readonly<Record<string, unknown>>
}

/** Boundary: the part of Standard JSON Schema that is used here. */
function converterOf(schema: Schema | undefined): Converter | undefined {
  const standard: object = { ...schema?.['~standard'] }
  return 'jsonSchema' in standard ? (standard.jsonSchema as Converter) : undefined
}

/** What a schema says of itself, if it can: zod and others that follow Standard JSON Schema. An empty schema takes anything. */
export function jsonSchemaOf(
  schema: Schema | undefined,
  side: 'input' | 'output' = 'output',
): Readonly<Record<string, unknown>> {
  try {
    const options = { target: 'draft-2020-12', libraryOptions: { unrepresentable: 'any' } }
    return converterOf(schema)?.[side](options) ?? {}
  } catch {
    return {} // What has no JSON Schema is not known.
  }
}
