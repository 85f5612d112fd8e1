import { ImpresarioError, invalidExpression } from '@impresario/protocol'
import type { Data } from '@impresario/protocol'
import { compileExpression } from '../expression/expression.ts'
import type { Expression } from '../expression/expression.ts'
import { textOf } from '../expression/values.ts'
import { Allowance } from './allowance.ts'

/** Data with `${…}` in its texts, parsed and checked. */
export interface Template {
  /** The data with every expression replaced by its value. Refuses more of them than `allowance` has room for. */
  render(scope: object, allowance?: Allowance): Data
  readonly expressions: readonly Expression[]
}

type Part = string | Expression

/**
 * Parses the `${…}` of every text in a value, keys left out.
 *
 * A text that is exactly one expression becomes its value with its type: `"${params.count}"` gives a number. Inside a longer
 * text the value is written out. `$${` stands for a plain `${`. A path that is not there is an error, unless the expression has
 * a default: `${params.city || 'Berlin'}`.
 */
export function compileTemplate(value: Data, roots: readonly string[]): Template {
  if (typeof value === 'string') return textTemplate(value, roots)
  if (Array.isArray(value)) {
    const items = value.map((item) => compileTemplate(item as Data, roots))
    return joinedTemplate(items, (scope, allowance) => items.map((item) => item.render(scope, allowance)))
  }
  if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
    const entries = Object.entries(value).map(([key, item]) => [key, compileTemplate(item as Data, roots)] as const)
    return joinedTemplate(
      entries.map(([, item]) => item),
      (scope, allowance) => Object.fromEntries(entries.map(([key, item]) => [key, item.render(scope, allowance)])),
    )
  }
  return { render: () => value, expressions: [] }
}

function joinedTemplate(parts: readonly Template[], render: (scope: object, allowance: Allowance) => Data): Template {
  return {
    render: (scope, allowance = new Allowance()) => render(scope, allowance),
    expressions: parts.flatMap((part) => part.expressions),
  }
}

function textTemplate(source: string, roots: readonly string[]): Template {
  if (!source.includes('${')) return { render: () => source, expressions: [] }
  const parts = partsOf(source, roots)
  const expressions = parts.filter((part): part is Expression => typeof part !== 'string')
  const [only] = parts
  if (parts.length === 1 && typeof only === 'object') {
    return { render: (scope, allowance = new Allowance()) => allowance.take(present(only, scope)) as Data, expressions }
  }
  return {
    render: (scope, allowance = new Allowance()) =>
      parts.map((part) => (typeof part === 'string' ? part : textOf(allowance.take(present(part, scope))))).join(''),
    expressions,
  }
}

function present(expression: Expression, scope: object): unknown {
  const value = expression.evaluate(scope)
  if (value !== undefined) return value
  throw new ImpresarioError(
    'INVALID_EXPRESSION',
    `Template "\${${expression.source}}": there is no such value. Give a default with || if it may be missing.`,
  )
}

function partsOf(source: string, roots: readonly string[]): readonly Part[] {
  const parts: Part[] = []
  let text = ''
  let at = 0
  while (at < source.length) {
    if (source.startsWith('$${', at)) {
      text += '${'
      at += 3
    } else if (source.startsWith('${', at)) {
      const end = endOf(source, at + 2)
      if (text !== '') parts.push(text)
      text = ''
      parts.push(compileExpression(source.slice(at + 2, end), roots))
      at = end + 1
    } else {
      text += source.charAt(at)
      at += 1
    }
  }
  if (text !== '' || parts.length === 0) parts.push(text)
  return parts
}

/** Where an expression ends: at the first `}` that closes no brace of its own and stands in no quotes. */
function endOf(source: string, start: number): number {
  let depth = 0
  let quote = ''
  for (let at = start; at < source.length; at += 1) {
    const char = source.charAt(at)
    if (quote !== '') {
      if (char === '\\') at += 1
      else if (char === quote) quote = ''
    } else if (char === "'" || char === '"' || char === '`') quote = char
    else if (char === '{') depth += 1
    else if (char === '}') {
      if (depth === 0) return at
      depth -= 1
    }
  }
  throw invalidExpression(
    source,
    start - 2,
    '"${" is not closed',
    'Close it with "}", or write "$${" for the plain characters',
  )
}
