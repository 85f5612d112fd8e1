import { ImpresarioError } from './errors.ts'
import { numberFrom } from './exact/exact-number.ts'
import type { AnyNumber } from './exact/exact-number.ts'

/** The kinds of token that every expression language has, and those that a dialect adds. */
export interface Token<Added extends string = never> {
  readonly kind: 'name' | 'string' | 'number' | 'symbol' | 'end' | Added
  /** The name, the symbol, or the decoded string. */
  readonly text: string
  readonly value: AnyNumber
  readonly at: number
}

export interface ReadToken<Added extends string = never> {
  readonly token: Token<Added>
  readonly end: number
}

/** In what the expression languages differ before they are parsed. */
export interface TokenDialect<Added extends string = never> {
  /** Longer ones before those that they begin with. */
  readonly symbols: readonly string[]
  /** Sticky. */
  readonly name: RegExp
  /** What to write instead of a number that goes on with letters. */
  readonly numberHint: string
  /** What to do about a character that begins no token. */
  hintFor(char: string): string
  /** Reads the tokens that the dialect adds. */
  readAdded?(source: string, at: number): ReadToken<Added> | undefined
}

const SPACE = /\s/
const NUMBER = /(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"' }

export function tokenize<Added extends string = never>(
  source: string,
  dialect: TokenDialect<Added>,
): readonly Token<Added>[] {
  const tokens: Token<Added>[] = []
  let at = 0
  while (at < source.length) {
    if (SPACE.test(source.charAt(at))) {
      at += 1
      continue
    }
    const { token, end } = dialect.readAdded?.(source, at) ?? readToken(source, at, dialect)
    tokens.push(token)
    at = end
  }
  return tokens
}

function readToken(source: string, at: number, dialect: TokenDialect<string>): ReadToken {
  const first = source.charAt(at)
  if (first === "'" || first === '"') return readString(source, at, first)
  const name = matchAt(dialect.name, source, at)
  if (name !== undefined) return { token: { kind: 'name', text: name, value: 0, at }, end: at + name.length }
  const number = matchAt(NUMBER, source, at)
  if (number !== undefined) return readNumber(source, at, number, dialect.numberHint)
  const symbol = dialect.symbols.find((known) => source.startsWith(known, at))
  if (symbol === undefined) throw invalidExpression(source, at, `unexpected "${first}"`, dialect.hintFor(first))
  return { token: { kind: 'symbol', text: symbol, value: 0, at }, end: at + symbol.length }
}

/** What a sticky pattern finds at this place. */
export function matchAt(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(source)?.[0]
}

function readNumber(source: string, at: number, text: string, hint: string): ReadToken {
  const end = at + text.length
  if (/[\w.$]/.test(source.charAt(end))) {
    throw invalidExpression(source, at, `"${text}${source.charAt(end)}" is not a number`, hint)
  }
  const value = numberFrom(text)
  if (value === 'overflow') throw invalidExpression(source, at, `${text} is too large`, 'Use a smaller number')
  return { token: { kind: 'number', text, value, at }, end }
}

function readString(source: string, at: number, mark: string): ReadToken {
  let text = ''
  let next = at + 1
  while (next < source.length) {
    const char = source.charAt(next)
    if (char === mark) return { token: { kind: 'string', text, value: 0, at }, end: next + 1 }
    if (char === '\\') {
      const escaped = ESCAPES[source.charAt(next + 1)]
      if (escaped === undefined) {
        throw invalidExpression(
          source,
          next,
          `unknown escape "${source.slice(next, next + 2)}"`,
          String.raw`Write a backslash as "\\"`,
        )
      }
      text += escaped
      next += 2
    } else {
      text += char
      next += 1
    }
  }
  throw invalidExpression(source, at, 'the string is not closed', `Close it with ${mark}`)
}

/** The one kind of error of expressions: what, where, and what to do. */
export function invalidExpression(source: string, at: number, problem: string, hint: string): ImpresarioError {
  const shown = source.length <= 120 ? source : `${source.slice(0, 117)}...`
  return new ImpresarioError('INVALID_EXPRESSION', `Expression "${shown}", position ${at + 1}: ${problem}. ${hint}.`, {
    details: { position: at, hint },
  })
}
