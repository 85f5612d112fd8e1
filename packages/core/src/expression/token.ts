import { ImpresarioError, numberFrom } from '@impresario/protocol'
import type { AnyNumber } from '@impresario/protocol'

export interface Token {
  readonly kind: 'name' | 'string' | 'number' | 'symbol' | 'end'
  /** The name, the symbol, or the decoded string. */
  readonly text: string
  readonly value: AnyNumber
  readonly at: number
}

const SYMBOLS = ['==', '!=', '<=', '>=', '&&', '||', '<', '>', '!', '(', ')', '[', ']', ',', '.', '-'] as const
const SPACE = /\s/
const NAME = /[A-Za-z_$][\w$]*/y
const NUMBER = /(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"' }

export function tokenize(source: string): readonly Token[] {
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
  const name = matchAt(NAME, source, at)
  if (name !== undefined) return { token: { kind: 'name', text: name, value: 0, at }, end: at + name.length }
  const number = matchAt(NUMBER, source, at)
  if (number !== undefined) return readNumber(source, at, number)
  const symbol = SYMBOLS.find((known) => source.startsWith(known, at))
  if (symbol === undefined) throw unexpected(source, at, first)
  return { token: { kind: 'symbol', text: symbol, value: 0, at }, end: at + symbol.length }
}

function matchAt(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(source)?.[0]
}

function readNumber(source: string, at: number, text: string): Read {
  const end = at + text.length
  if (/[\w.$]/.test(source.charAt(end))) {
    throw invalid(source, at, `"${text}${source.charAt(end)}" is no number`, 'Quote it if it is a text')
  }
  const value = numberFrom(text)
  if (value === 'overflow') throw invalid(source, at, `${text} is too large`, 'Use a smaller number')
  return { token: { kind: 'number', text, value, at }, end }
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
        throw invalid(
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
  throw invalid(source, at, 'the string has no end', `Close it with ${mark}`)
}

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

function unexpected(source: string, at: number, char: string): ImpresarioError {
  return invalid(source, at, `unexpected "${char}"`, HINTS[char] ?? 'Remove it')
}

/** The one kind of error of the language: what, where, and what to do. */
export function invalid(source: string, at: number, problem: string, hint: string): ImpresarioError {
  const shown = source.length <= 120 ? source : `${source.slice(0, 117)}...`
  return new ImpresarioError('INVALID_EXPRESSION', `Expression "${shown}", position ${at + 1}: ${problem}. ${hint}.`, {
    details: { position: at, hint },
  })
}
