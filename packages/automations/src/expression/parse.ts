import { invalidExpression, LIMITS, numberFrom } from '@impresario/protocol'
import type { Data } from '@impresario/protocol'
import { FUNCTIONS } from './functions.ts'
import type { Arithmetic, Comparison, Node, Over } from './node.ts'
import { pipelineTokens } from './token.ts'
import type { PipelineToken } from './token.ts'

const LITERALS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['null', null],
  ['None', null],
])
/** They lead out of the data and into the language. */
const REFUSED_NAMES = new Set(['__proto__', 'constructor', 'prototype'])
const CURRENT: Node = { kind: 'current' }

type Binary = 'and' | 'or' | 'pipe' | Comparison | Arithmetic

interface Operator {
  readonly kind: Binary
  readonly power: number
  /** Tokens that it takes. */
  readonly length: number
}

const POWER = { pipe: 1, or: 2, and: 3, not: 4, compare: 5, sum: 6, product: 7, negate: 8 } as const

const OPERATORS: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['|', { kind: 'pipe', power: POWER.pipe, length: 1 }],
  ['or', { kind: 'or', power: POWER.or, length: 1 }],
  ['||', { kind: 'or', power: POWER.or, length: 1 }],
  ['and', { kind: 'and', power: POWER.and, length: 1 }],
  ['&&', { kind: 'and', power: POWER.and, length: 1 }],
  ['in', { kind: 'in', power: POWER.compare, length: 1 }],
  ['not', { kind: 'not in', power: POWER.compare, length: 2 }],
  ...(['==', '!=', '<', '<=', '>', '>='] as const).map((kind): [string, Operator] => [
    kind,
    { kind, power: POWER.compare, length: 1 },
  ]),
  ...(['+', '-'] as const).map((kind): [string, Operator] => [kind, { kind, power: POWER.sum, length: 1 }]),
  ...(['*', '/', '%'] as const).map((kind): [string, Operator] => [kind, { kind, power: POWER.product, length: 1 }]),
])

interface Parser {
  readonly source: string
  readonly tokens: readonly PipelineToken[]
  next: number
  depth: number
}

/** Reads a whole expression. */
export function parse(source: string): Node {
  const parser: Parser = { source, tokens: pipelineTokens(source), next: 0, depth: 0 }
  if (parser.tokens.length === 0) throw invalidExpression(source, 0, 'it is empty', 'Write a path such as params.name')
  const node = parseFrom(parser, 0)
  const rest = peek(parser)
  if (rest.kind !== 'end') throw unexpected(parser, rest, 'Join parts with an operator, or quote text')
  return node
}

function peek(parser: Parser, ahead = 0): PipelineToken {
  return parser.tokens[parser.next + ahead] ?? { kind: 'end', text: '', value: 0, at: parser.source.length }
}

function take(parser: Parser): PipelineToken {
  const token = peek(parser)
  if (token.kind !== 'end') parser.next += 1
  return token
}

function isSymbol(token: PipelineToken, text: string): boolean {
  return token.kind === 'symbol' && token.text === text
}

function takeSymbol(parser: Parser, text: string): boolean {
  if (!isSymbol(peek(parser), text)) return false
  parser.next += 1
  return true
}

function expect(parser: Parser, text: string, hint: string): void {
  const token = take(parser)
  if (!isSymbol(token, text)) throw unexpected(parser, token, hint)
}

function unexpected(parser: Parser, token: PipelineToken, hint: string): Error {
  const shown = token.kind === 'end' ? 'it ends too early' : `unexpected "${token.text}"`
  return invalidExpression(parser.source, token.at, shown, hint)
}

/** Pratt's loop: an operand, then every operator that binds more tightly than the caller's. */
function parseFrom(parser: Parser, power: number): Node {
  parser.depth += 1
  if (parser.depth > LIMITS.expressionDepthMax) {
    const problem = `it is nested deeper than ${LIMITS.expressionDepthMax} levels`
    throw invalidExpression(parser.source, peek(parser).at, problem, 'Split it over several steps')
  }
  let left = parseOperand(parser)
  for (let found = operatorAt(parser); found !== undefined && found.power > power; found = operatorAt(parser)) {
    left = parseOperation(parser, left, found)
  }
  parser.depth -= 1
  return left
}

function operatorAt(parser: Parser): Operator | undefined {
  const token = peek(parser)
  if (token.kind !== 'name' && token.kind !== 'symbol') return undefined
  const operator = OPERATORS.get(token.text)
  if (operator?.kind === 'not in' && peek(parser, 1).text !== 'in') return undefined
  return operator
}

function parseOperation(parser: Parser, left: Node, { kind, power, length }: Operator): Node {
  const { at } = peek(parser)
  parser.next += length
  const right = parseFrom(parser, power)
  switch (kind) {
    case 'pipe':
      return { kind: 'pipe', of: left, into: right }
    case 'and':
    case 'or':
      return { kind, left, right }
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
      return { kind: 'arithmetic', operator: kind, left, right }
    default:
      if (operatorAt(parser)?.power === POWER.compare) {
        throw invalidExpression(parser.source, at, 'comparisons cannot be chained', 'Join two of them with "and"')
      }
      return { kind: 'compare', operator: kind, left, right }
  }
}

function parseOperand(parser: Parser): Node {
  const token = take(parser)
  switch (token.kind) {
    case 'string':
      return parsePath(parser, { kind: 'literal', value: token.text })
    case 'number':
      return { kind: 'literal', value: token.value }
    case 'duration':
      return { kind: 'duration', ms: Number(token.value) }
    case 'json':
      return parsePath(parser, { kind: 'literal', value: jsonLiteral(parser, token) })
    case 'name':
      return parseName(parser, token)
    case 'symbol':
      return parseSymbol(parser, token)
    case 'end':
      throw unexpected(parser, token, 'A value is missing')
  }
}

function jsonLiteral(parser: Parser, token: PipelineToken): Data {
  try {
    return JSON.parse(token.text) as Data
  } catch {
    const number = numberFrom(token.text)
    if (typeof number === 'number') return number
    throw invalidExpression(
      parser.source,
      token.at,
      'the literal is not JSON',
      'Write text as "…" inside the backquotes',
    )
  }
}

function parseName(parser: Parser, token: PipelineToken): Node {
  if (token.text === 'not') return { kind: 'not', operand: parseFrom(parser, POWER.not) }
  const literal = LITERALS.get(token.text)
  if (literal !== undefined) return { kind: 'literal', value: literal }
  if (OPERATORS.has(token.text)) throw unexpected(parser, token, 'A value is missing before it')
  if (isSymbol(peek(parser), '(')) return parsePath(parser, parseCall(parser, token))
  return parsePath(parser, field(parser, CURRENT, token))
}

function field(parser: Parser, of: Node, token: PipelineToken): Node {
  if (REFUSED_NAMES.has(token.text)) throw unexpected(parser, token, 'This name cannot be read')
  return { kind: 'field', of, name: token.text }
}

function parseCall(parser: Parser, name: PipelineToken): Node {
  const known = FUNCTIONS.get(name.text)
  if (known === undefined) {
    const all = [...FUNCTIONS.keys()].toSorted().join(', ')
    throw invalidExpression(parser.source, name.at, `there is no function "${name.text}"`, `Functions: ${all}`)
  }
  parser.next += 1
  const args = parseItems(parser, ')')
  if (args.length < known.argsMin || args.length > known.argsMax) {
    const wanted = known.argsMin === known.argsMax ? `${known.argsMin}` : `${known.argsMin} to ${known.argsMax}`
    throw invalidExpression(parser.source, name.at, `${name.text}() takes ${wanted} arguments`, `It got ${args.length}`)
  }
  return { kind: 'call', name: name.text, args, at: name.at }
}

function parseItems(parser: Parser, end: string): readonly Node[] {
  const items: Node[] = []
  if (takeSymbol(parser, end)) return items
  do {
    items.push(takeSymbol(parser, '&') ? { kind: 'reference', to: parseFrom(parser, 0) } : parseFrom(parser, 0))
  } while (takeSymbol(parser, ','))
  expect(parser, end, `Close it with "${end}"`)
  return items
}

function parseSymbol(parser: Parser, token: PipelineToken): Node {
  switch (token.text) {
    case '(': {
      const inner = parseFrom(parser, 0)
      expect(parser, ')', 'Close it with ")"')
      return parsePath(parser, inner)
    }
    case '!':
      return { kind: 'not', operand: parseFrom(parser, POWER.negate) }
    case '-':
      return { kind: 'negate', operand: parseFrom(parser, POWER.negate) }
    case '@':
      return parsePath(parser, CURRENT)
    case '$':
      return parsePath(parser, { kind: 'root' })
    case '[]':
      return { kind: 'list', items: [] }
    case '[':
      return parsePath(parser, { kind: 'list', items: parseItems(parser, ']') })
    case '{':
      return parsePath(parser, parseObject(parser))
    default:
      throw unexpected(parser, token, 'A value is missing')
  }
}

function parseObject(parser: Parser): Node {
  const entries: { key: string; value: Node }[] = []
  if (takeSymbol(parser, '}')) return { kind: 'object', entries }
  do {
    const key = take(parser)
    if (key.kind !== 'name' && key.kind !== 'string') throw unexpected(parser, key, 'Write {name: value}')
    expect(parser, ':', 'Write {name: value}')
    entries.push({ key: key.text, value: parseFrom(parser, 0) })
  } while (takeSymbol(parser, ','))
  expect(parser, '}', 'Close it with "}"')
  return { kind: 'object', entries }
}

/**
 * Everything that follows a value: `.name`, `[0]`, `[*]`, `[?…]`, `[]`, `[1:3]`, `.*`. Inside a projection (`isEach`) it stops
 * at `[]`, which flattens what the whole projection gives.
 */
function parsePath(parser: Parser, of: Node, isEach = false): Node {
  if (takeSymbol(parser, '.')) {
    if (takeSymbol(parser, '*')) return project(parser, of, { by: 'values' }, isEach)
    const name = take(parser)
    if (name.kind !== 'name' && name.kind !== 'string') throw unexpected(parser, name, 'A name must follow the dot')
    if (name.kind === 'name' && isSymbol(peek(parser), '(')) {
      return parsePath(parser, { kind: 'pipe', of, into: parseCall(parser, name) }, isEach)
    }
    return parsePath(parser, field(parser, of, name), isEach)
  }
  if (isSymbol(peek(parser), '[]')) {
    if (isEach) return of
    parser.next += 1
    return project(parser, of, { by: 'flattened' }, isEach)
  }
  if (takeSymbol(parser, '[?')) {
    const condition = parseFrom(parser, 0)
    expect(parser, ']', 'Close the filter with "]"')
    return project(parser, of, { by: 'matching', condition }, isEach)
  }
  return takeSymbol(parser, '[') ? parseBracket(parser, of, isEach) : of
}

function parseBracket(parser: Parser, of: Node, isEach: boolean): Node {
  if (takeSymbol(parser, '*')) {
    expect(parser, ']', 'Close it with "]"')
    return project(parser, of, { by: 'items' }, isEach)
  }
  const token = peek(parser)
  if (token.kind === 'string') {
    parser.next += 1
    expect(parser, ']', 'Close it with "]"')
    return parsePath(parser, field(parser, of, token), isEach)
  }
  const from = takeInteger(parser)
  if (takeSymbol(parser, ':')) {
    const to = takeInteger(parser)
    const step = takeSymbol(parser, ':') ? (takeInteger(parser) ?? 1) : 1
    expect(parser, ']', 'Close it with "]"')
    if (step === 0) throw invalidExpression(parser.source, token.at, 'the step of a slice cannot be 0', 'Use 1 or -1')
    return project(parser, of, { by: 'slice', from, to, step }, isEach)
  }
  if (from === undefined) throw unexpected(parser, token, 'Write [0], [*], [?condition], [1:3] or ["name"]')
  expect(parser, ']', 'Close it with "]"')
  return parsePath(parser, { kind: 'index', of, index: from }, isEach)
}

function takeInteger(parser: Parser): number | undefined {
  const isNegative = isSymbol(peek(parser), '-') && peek(parser, 1).kind === 'number'
  const token = peek(parser, isNegative ? 1 : 0)
  if (token.kind !== 'number') return undefined
  parser.next += isNegative ? 2 : 1
  if (typeof token.value !== 'number' || !Number.isSafeInteger(token.value)) {
    throw unexpected(parser, token, 'Positions are whole numbers')
  }
  return isNegative ? -token.value : token.value
}

/** What follows a projection is read from each of its items. */
function project(parser: Parser, of: Node, over: Over, isEach: boolean): Node {
  const node: Node = { kind: 'project', of, over, each: parsePath(parser, CURRENT, true) }
  return isEach ? node : parsePath(parser, node)
}
