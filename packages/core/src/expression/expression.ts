import { isEqual, isIn, isTrue, orderOf, ownOf } from '@impresario/protocol'
import { parse } from './parser.ts'
import type { CheckPath, Comparison, Expression, Key } from './parser.ts'
import { schemaProblems } from './schema-check.ts'

/** The values that an expression can read, by the name that its paths begin with. */
export type ExpressionScope = Readonly<Record<string, unknown>>

export interface CompiledExpression {
  readonly source: string
  /** What it gives. Never throws: a path that is not there is `null`. */
  evaluate(scope: ExpressionScope): unknown
  /** Whether it holds. `null`, `false`, `0`, `''` and what is empty do not. */
  test(scope: ExpressionScope): boolean
  /** Every path that it reads. */
  readonly paths: readonly string[]
  /** What is wrong with it, given a JSON Schema of what it reads. One sentence per problem, with the fix. */
  problemsUnder(schema: unknown): readonly string[]
}

/** Names of the context, as the documents write them and as the code does. */
const CONTEXT_FIELDS: ReadonlyMap<Key, string> = new Map([
  ...[
    'jobId',
    'currentState',
    'initialData',
    'stateHistory',
    'aggregationResults',
    'client',
    'failure',
    'tracingContext',
  ].map((field): [string, string] => [field, field]),
  ['job_id', 'jobId'],
  ['current_state', 'currentState'],
  ['initial_data', 'initialData'],
  ['state_history', 'stateHistory'],
  ['aggregation_results', 'aggregationResults'],
  ['tracing_context', 'tracingContext'],
  // Its former name.
  ['tracing', 'tracingContext'],
])

export interface ExpressionOptions {
  /** What a path may begin with; `context` without it. */
  readonly roots?: readonly string[]
}

/**
 * Turns a condition such as `context.initial_data.quality == 'low'` into something that can be
 * tested. There is no code in it: it only reads own fields of data, compares, and joins.
 */
export function compileExpression(source: string, options: ExpressionOptions = {}): CompiledExpression {
  const expression = parse(source, pathCheck(options.roots ?? ['context']))
  const evaluate = (scope: ExpressionScope) => valueOf(expression, scope)
  return {
    source,
    evaluate,
    test: (scope) => isTrue(evaluate(scope)),
    paths: [...new Set(pathsOf(expression))],
    problemsUnder: (schema) => schemaProblems(expression, schema),
  }
}

function pathCheck(roots: readonly string[]): CheckPath {
  return (keys, refuse) => {
    const [root, field, ...rest] = keys
    if (!roots.includes(String(root))) {
      return refuse(`"${String(root)}" is not known here`, `Begin with ${roots.join(', ')}; put quotes around a text`)
    }
    if (root !== 'context' || field === undefined) return keys
    const known = CONTEXT_FIELDS.get(field)
    if (known !== undefined) return [root, known, ...rest]
    return refuse(
      `the context has no "${field}"`,
      'It has initial_data, state_history, aggregation_results, client, failure, job_id, current_state and tracing_context',
    )
  }
}

function pathsOf(expression: Expression): readonly string[] {
  switch (expression.kind) {
    case 'literal':
      return []
    case 'path':
      return [expression.keys.join('.')]
    case 'list':
      return expression.items.flatMap(pathsOf)
    case 'not':
      return pathsOf(expression.operand)
    default:
      return [...pathsOf(expression.left), ...pathsOf(expression.right)]
  }
}

function valueOf(expression: Expression, scope: ExpressionScope): unknown {
  switch (expression.kind) {
    case 'literal':
      return expression.value
    case 'path':
      return read(scope, expression.keys)
    case 'list':
      return expression.items.map((item) => valueOf(item, scope))
    case 'not':
      return !isTrue(valueOf(expression.operand, scope))
    case 'and':
      return isTrue(valueOf(expression.left, scope)) && isTrue(valueOf(expression.right, scope))
    case 'or':
      return isTrue(valueOf(expression.left, scope)) || isTrue(valueOf(expression.right, scope))
    case 'compare':
      return compare(expression.operator, valueOf(expression.left, scope), valueOf(expression.right, scope))
  }
}

function read(scope: ExpressionScope, keys: readonly Key[]): unknown {
  let value: unknown = scope
  for (const key of keys) {
    if (typeof value !== 'object' || value === null) return null
    value = ownOf(value, key)
  }
  return value ?? null
}

function compare(operator: Comparison, left: unknown, right: unknown): boolean {
  switch (operator) {
    case '==':
      return isEqual(left, right)
    case '!=':
      return !isEqual(left, right)
    case 'in':
      return isIn(left, right)
    case 'not in':
      return !isIn(left, right)
    default:
      return isOrdered(operator, left, right)
  }
}

/** Only numbers with numbers and texts with texts have an order. */
function isOrdered(operator: '<' | '<=' | '>' | '>=', left: unknown, right: unknown): boolean {
  const order = orderOf(left, right)
  if (order === undefined) return false
  if (operator === '<') return order < 0
  if (operator === '<=') return order <= 0
  return operator === '>' ? order > 0 : order >= 0
}
