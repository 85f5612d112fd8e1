import { invalidExpression, isTrue } from '@impresario/protocol'
import { evaluate } from './evaluate.ts'
import { partsOf } from './node.ts'
import type { Node } from './node.ts'
import { parse } from './parse.ts'

/** An expression that was parsed and checked. */
export interface Expression {
  readonly source: string
  /** What it gives over these values; `undefined` when it reads something that is not there. */
  evaluate(scope: object): unknown
  /** Whether it holds. What is not there does not. */
  test(scope: object): boolean
  /** Whether it holds; throws when it compares the size of what is not there, or has no size. */
  judge(scope: object): boolean
  /** Every path that it reads from the outermost values, as lists of names: `steps.weather.temperature`. */
  readonly paths: readonly (readonly string[])[]
}

/**
 * Parses an expression over named values.
 *
 * The language is JMESPath's for paths, filters and functions, with bare numbers, `and`/`or`/`not`, arithmetic and durations
 * (`now + 24h`). It reads data and never runs code; every evaluation is bounded.
 */
export function compileExpression(source: string, roots: readonly string[]): Expression {
  const text = unwrapped(source)
  const node = parse(text)
  const paths = pathsOf(node)
  for (const [root = ''] of paths) {
    if (!roots.includes(root)) {
      const hint = `Known names: ${roots.join(', ')}; put quotes around text`
      throw invalidExpression(text, Math.max(0, text.indexOf(root)), `"${root}" is not known here`, hint)
    }
  }
  const value = (scope: object): unknown => evaluate(node, text, scope)
  const judge = (scope: object): boolean => isTrue(evaluate(node, text, scope, true))
  return { source: text, evaluate: value, test: (scope) => isTrue(value(scope)), judge, paths }
}

/** A condition may stand inside `${…}`, as it does in templates. */
function unwrapped(source: string): string {
  const text = source.trim()
  return text.startsWith('${') && text.endsWith('}') ? text.slice(2, -1).trim() : text
}

/** Paths from the outermost values. Inside a projection a name belongs to each item, unless it begins with `$`. */
function pathsOf(node: Node, isOutermost = true): readonly (readonly string[])[] {
  const path = isOutermost ? pathFrom(node, 'current') : pathFrom(node, 'root')
  if (path !== undefined) return path.length === 0 ? [] : [path]
  switch (node.kind) {
    case 'project':
      return [
        ...pathsOf(node.of, isOutermost),
        ...(node.over.by === 'matching' ? pathsOf(node.over.condition, false) : []),
        ...pathsOf(node.each, false),
      ]
    case 'pipe':
      return [...pathsOf(node.of, isOutermost), ...pathsOf(node.into, false)]
    case 'reference':
      return pathsOf(node.to, false)
    default:
      return partsOf(node).flatMap((part) => pathsOf(part, isOutermost))
  }
}

/** The names of a plain path; positions in lists are left out. */
function pathFrom(node: Node, start: 'current' | 'root'): readonly string[] | undefined {
  switch (node.kind) {
    case 'root':
      return []
    case 'current':
      return start === 'current' ? [] : undefined
    case 'field': {
      const before = pathFrom(node.of, start)
      return before === undefined ? undefined : [...before, node.name]
    }
    case 'index':
      return pathFrom(node.of, start)
    default:
      return undefined
  }
}
