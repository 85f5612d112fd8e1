import { ExactNumber, invalidExpression, isExactNumber, LIMITS, tokenize } from '@impresario/protocol'
import type { AnyNumber, Data, Token, TokenDialect } from '@impresario/protocol'

export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in'
export type Key = string | number

export type Expression =
  | { readonly kind: 'literal'; readonly value: Data }
  | { readonly kind: 'path'; readonly keys: readonly Key[] }
  | { readonly kind: 'list'; readonly items: readonly Expression[] }
  | { readonly kind: 'not'; readonly operand: Expression }
  | { readonly kind: 'and' | 'or'; readonly left: Expression; readonly right: Expression }
  | { readonly kind: 'compare'; readonly operator: Comparison; readonly left: Expression; readonly right: Expression }

const LITERALS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['null', null],
  ['None', null],
])
const WORDS = new Set(['and', 'or', 'not', 'in'])
/** They lead out of the data and into the language. */
const REFUSED_KEYS = new Set(['__proto__', 'constructor', 'prototype'])

/** How tightly an operator binds; `not` stands between `and` and the comparisons, as in Python. */
const POWER = { or: 1, and: 2, not: 3, compare: 4 } as const

interface Operator {
  readonly kind: 'and' | 'or' | Comparison
  readonly power: number
  /** Tokens that it takes. */
  readonly length: number
}

const OPERATORS: ReadonlyMap<string, Operator> = new Map<string, Operator>([
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
])

const HINTS: Readonly<Record<string, string>> = {
  '=': 'Use "==" to compare',
  '&': 'Use "and"',
  '|': 'Use "or"',
  '+': 'Expressions compare, they do not calculate',
  '*': 'Expressions compare, they do not calculate',
  '/': 'Expressions compare, they do not calculate',
  '%': 'Expressions compare, they do not calculate',
  '{': 'Objects cannot be written here; compare their fields',
  '`': 'Use single or double quotes',
}

const DIALECT: TokenDialect = {
  symbols: ['==', '!=', '<=', '>=', '&&', '||', '<', '>', '!', '(', ')', '[', ']', ',', '.', '-'],
  name: /[A-Za-z_$][\w$]*/y,
  numberHint: 'Quote it if it is text',
  hintFor: (char) => HINTS[char] ?? 'Remove it',
}

/** Reads a whole expression. Checks the name that each path begins with through `checkPath`. */
export function parse(source: string, checkPath: CheckPath): Expression {
  if (source.length > LIMITS.expressionCharsMax) {
    const { expressionCharsMax } = LIMITS
    throw invalidExpression(
      source,
      expressionCharsMax,
      `it is longer than ${expressionCharsMax} characters`,
      'Use a function instead',
    )
  }
  const parser: Parser = { source, tokens: tokenize(source, DIALECT), next: 0, depth: 0, checkPath }
  const expression = parseFrom(parser, 0)
  const rest = peek(parser)
  if (rest.kind !== 'end') throw unexpected(parser, rest, 'Join conditions with "and" or "or"')
  return expression
}

export type CheckPath = (keys: readonly Key[], refuse: (problem: string, hint: string) => never) => readonly Key[]

interface Parser {
  readonly source: string
  readonly tokens: readonly Token[]
  readonly checkPath: CheckPath
  next: number
  depth: number
}

function peek(parser: Parser): Token {
  return tokenAt(parser, parser.next)
}

function tokenAt(parser: Parser, index: number): Token {
  return parser.tokens[index] ?? { kind: 'end', text: '', value: 0, at: parser.source.length }
}

function take(parser: Parser): Token {
  const token = peek(parser)
  if (token.kind !== 'end') parser.next += 1
  return token
}

function isSymbol(token: Token, text: string): boolean {
  return token.kind === 'symbol' && token.text === text
}

function isWord(token: Token, text: string): boolean {
  return token.kind === 'name' && token.text === text
}

function expect(parser: Parser, text: string, hint: string): void {
  const token = take(parser)
  if (!isSymbol(token, text)) throw unexpected(parser, token, hint)
}

function unexpected(parser: Parser, token: Token, hint: string): Error {
  const shown = token.kind === 'end' ? 'it ends too early' : `unexpected "${token.text}"`
  return invalidExpression(parser.source, token.at, shown, hint)
}

/** Pratt's loop: an operand, then every operator that binds more tightly than the caller's. */
function parseFrom(parser: Parser, power: number): Expression {
  parser.depth += 1
  if (parser.depth > LIMITS.expressionDepthMax) {
    const problem = `it is nested deeper than ${LIMITS.expressionDepthMax} levels`
    throw invalidExpression(parser.source, peek(parser).at, problem, 'Split it over several states')
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
  if (operator?.kind === 'not in' && !isWord(tokenAt(parser, parser.next + 1), 'in')) return undefined
  return operator
}

function parseOperation(parser: Parser, left: Expression, { kind, power, length }: Operator): Expression {
  const { at } = peek(parser)
  parser.next += length
  const right = parseFrom(parser, power)
  if (kind === 'and' || kind === 'or') return { kind, left, right }
  if (operatorAt(parser)?.power === POWER.compare) {
    throw invalidExpression(parser.source, at, 'comparisons cannot be chained', 'Join two of them with "and"')
  }
  return { kind: 'compare', operator: kind, left, right }
}

function parseOperand(parser: Parser): Expression {
  const token = take(parser)
  switch (token.kind) {
    case 'string':
      return { kind: 'literal', value: token.text }
    case 'number':
      return { kind: 'literal', value: token.value }
    case 'name':
      return parseName(parser, token)
    case 'symbol':
      return parseSymbol(parser, token)
    case 'end':
      throw unexpected(parser, token, 'Something to compare is missing')
  }
}

function parseName(parser: Parser, token: Token): Expression {
  if (token.text === 'not') return { kind: 'not', operand: parseFrom(parser, POWER.not) }
  const literal = LITERALS.get(token.text)
  if (literal !== undefined) return { kind: 'literal', value: literal }
  if (WORDS.has(token.text)) throw unexpected(parser, token, 'Something to compare is missing before it')
  const keys = parsePath(parser, token)
  return {
    kind: 'path',
    keys: parser.checkPath(keys, (problem, hint) => {
      throw invalidExpression(parser.source, token.at, problem, hint)
    }),
  }
}

function parseSymbol(parser: Parser, token: Token): Expression {
  switch (token.text) {
    case '!':
      return { kind: 'not', operand: parseFrom(parser, POWER.not) }
    case '-': {
      const number = take(parser)
      if (number.kind !== 'number') throw unexpected(parser, number, 'A minus stands only before a number')
      return { kind: 'literal', value: negated(number.value) }
    }
    case '(': {
      const inner = parseFrom(parser, 0)
      expect(parser, ')', 'Close the parenthesis with ")"')
      return inner
    }
    case '[':
      return { kind: 'list', items: parseItems(parser) }
    default:
      throw unexpected(parser, token, 'A value is missing before it')
  }
}

function parseItems(parser: Parser): readonly Expression[] {
  const items: Expression[] = []
  while (!isSymbol(peek(parser), ']')) {
    if (items.length > 0) expect(parser, ',', 'Put "," between the items and "]" after the last')
    items.push(parseFrom(parser, 0))
  }
  take(parser)
  return items
}

function parsePath(parser: Parser, root: Token): readonly Key[] {
  const keys: Key[] = [checkedKey(parser, root)]
  for (;;) {
    if (isSymbol(peek(parser), '.')) {
      take(parser)
      const name = take(parser)
      if (name.kind !== 'name') throw unexpected(parser, name, 'A name follows a dot; other keys go in brackets')
      keys.push(checkedKey(parser, name))
    } else if (isSymbol(peek(parser), '[')) {
      take(parser)
      const key = take(parser)
      keys.push(key.kind === 'number' ? indexOf(parser, key) : checkedKey(parser, key))
      expect(parser, ']', 'Close the bracket with "]"')
    } else {
      if (isSymbol(peek(parser), '(')) throw unexpected(parser, peek(parser), 'Functions cannot be called here')
      return keys
    }
  }
}

function negated(value: AnyNumber): AnyNumber {
  return isExactNumber(value) ? new ExactNumber(`-${value.text}`) : -value
}

function indexOf(parser: Parser, token: Token): number {
  if (typeof token.value === 'number' && Number.isSafeInteger(token.value)) return token.value
  throw invalidExpression(parser.source, token.at, `${token.text} is not an index`, 'Use 0, 1, 2, …')
}

function checkedKey(parser: Parser, token: Token): string {
  if (token.kind !== 'name' && token.kind !== 'string') {
    throw unexpected(parser, token, 'A number or a quoted key belongs in brackets')
  }
  if (!REFUSED_KEYS.has(token.text)) return token.text
  throw invalidExpression(
    parser.source,
    token.at,
    `"${token.text}" is not allowed as a key`,
    'Name a field of the data',
  )
}
