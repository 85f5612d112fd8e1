import { ImpresarioError, LIMITS, numberFrom } from '@impresario/protocol'
import type { AnyNumber } from '@impresario/protocol'

export interface Token {
  readonly kind: 'name' | 'string' | 'number' | 'duration' | 'json' | 'symbol' | 'end'
  /** The name, the symbol, the decoded string, or the text of a JSON literal. */
  readonly text: string
  /** The number, or the milliseconds of a duration. */
  readonly value: AnyNumber
  readonly at: number
}

/** Longer ones first, because `[?` also begins with `[`. */
const SYMBOLS = '== != <= >= && || [? [] < > ! ( ) [ ] { } , . : | & @ $ * + - / %'.split(' ')
const SPACE = /\s/
const NAME = /[A-Za-z_][\w]*/y
const NUMBER = /(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const UNIT = /(?:ms|[smhdw])\b/y
const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
])
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"' }

export function tokenize(source: string): readonly Token[] {
  if (source.length > LIMITS.expressionCharsMax) {
    const problem = `it is longer than ${LIMITS.expressionCharsMax} characters`
    throw invalid(source, LIMITS.expressionCharsMax, problem, 'Split it over several steps')
  }
  const tokens: Token[] = []
  let at = 0
  while (at < source.length) {
    if (SPACE.test(source.charAt(at))) {
      at += 1
      continue
    }
    const { token, end } = readToken(source, at)
    tokens.push(token)
    at = end
  }
  return tokens
}

interface Read {
  readonly token: Token
  readonly end: number
}

function readToken(source: string, at: number): Read {
  const first = source.charAt(at)
  if (first === "'" || first === '"') return readString(source, at, first)
  if (first === '`') return readJson(source, at)
  const name = matchAt(NAME, source, at)
  if (name !== undefined) return { token: { kind: 'name', text: name, value: 0, at }, end: at + name.length }
  const number = matchAt(NUMBER, source, at)
  if (number !== undefined) return readNumber(source, at, number)
  const symbol = SYMBOLS.find((known) => source.startsWith(known, at))
  if (symbol === undefined) {
    throw invalid(source, at, `unexpected "${first}"`, first === '=' ? 'Use "==" to compare' : 'Remove it')
  }
  return { token: { kind: 'symbol', text: symbol, value: 0, at }, end: at + symbol.length }
}

function matchAt(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(source)?.[0]
}

/** `24h` is a duration; `24` is a number; `24x` is a mistake. */
function readNumber(source: string, at: number, text: string): Read {
  const unit = matchAt(UNIT, source, at + text.length)
  const end = at + text.length + (unit?.length ?? 0)
  if (/[\w$]/.test(source.charAt(end))) {
    const problem = `"${source.slice(at, end + 1)}" is not a number`
    throw invalid(source, at, problem, 'Quote text; durations end with ms, s, m, h, d or w')
  }
  const value = numberFrom(text)
  if (value === 'overflow') throw invalid(source, at, `${text} is too large`, 'Use a smaller number')
  if (unit === undefined) return { token: { kind: 'number', text, value, at }, end }
  return { token: { kind: 'duration', text, value: Number(value) * (UNIT_MS.get(unit) ?? 1), at }, end }
}

function readString(source: string, at: number, mark: string): Read {
  let text = ''
  let next = at + 1
  while (next < source.length) {
    const char = source.charAt(next)
    if (char === mark) return { token: { kind: 'string', text, value: 0, at }, end: next + 1 }
    if (char === '\\') {
      const escaped = ESCAPES[source.charAt(next + 1)]
      if (escaped === undefined) {
        const hint = String.raw`Write a backslash as "\\"`
        throw invalid(source, next, `unknown escape "${source.slice(next, next + 2)}"`, hint)
      }
      text += escaped
      next += 2
    } else {
      text += char
      next += 1
    }
  }
  throw invalid(source, at, 'the string is not closed', `Close it with ${mark}`)
}

/** A JSON value between backquotes, as JMESPath writes literals. */
function readJson(source: string, at: number): Read {
  const end = source.indexOf('`', at + 1)
  if (end === -1) throw invalid(source, at, 'the literal is not closed', 'Close it with `')
  return { token: { kind: 'json', text: source.slice(at + 1, end), value: 0, at }, end: end + 1 }
}

/** The one kind of error of the language: what, where, and what to do. */
export function invalid(source: string, at: number, problem: string, hint: string): ImpresarioError {
  const shown = source.length <= 120 ? source : `${source.slice(0, 117)}...`
  return new ImpresarioError('INVALID_EXPRESSION', `Expression "${shown}", position ${at + 1}: ${problem}. ${hint}.`, {
    details: { position: at, hint },
  })
}
