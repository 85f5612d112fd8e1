import { invalidExpression, LIMITS, matchAt, tokenize } from '@impresario/protocol'
import type { ReadToken, Token, TokenDialect } from '@impresario/protocol'

type Added = 'duration' | 'json'

/** The text of a JSON literal is as it was written. The value of a duration is in milliseconds. */
export type PipelineToken = Token<Added>

const DURATION = /(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?:ms|[smhdw])\b/y
const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
])

const DIALECT: TokenDialect<Added> = {
  symbols: '== != <= >= && || [? [] < > ! ( ) [ ] { } , . : | & @ $ * + - / %'.split(' '),
  name: /[A-Za-z_]\w*/y,
  numberHint: 'Quote text; durations end with ms, s, m, h, d or w',
  hintFor: (char) => (char === '=' ? 'Use "==" to compare' : 'Remove it'),
  readAdded: (source, at) => (source.charAt(at) === '`' ? readJson(source, at) : readDuration(source, at)),
}

export function pipelineTokens(source: string): readonly PipelineToken[] {
  if (source.length > LIMITS.expressionCharsMax) {
    const problem = `it is longer than ${LIMITS.expressionCharsMax} characters`
    throw invalidExpression(source, LIMITS.expressionCharsMax, problem, 'Split it over several steps')
  }
  return tokenize(source, DIALECT)
}

/** `24h` is a duration; `24` is a number. */
function readDuration(source: string, at: number): ReadToken<Added> | undefined {
  const text = matchAt(DURATION, source, at)
  if (text === undefined) return undefined
  const unit = /[a-z]+$/.exec(text)?.[0] ?? ''
  const ms = Number(text.slice(0, -unit.length)) * (UNIT_MS.get(unit) ?? 1)
  return { token: { kind: 'duration', text, value: ms, at }, end: at + text.length }
}

/** A JSON value between backquotes, as JMESPath writes literals. */
function readJson(source: string, at: number): ReadToken<Added> {
  const end = source.indexOf('`', at + 1)
  if (end === -1) throw invalidExpression(source, at, 'the literal is not closed', 'Close it with `')
  return { token: { kind: 'json', text: source.slice(at + 1, end), value: 0, at }, end: end + 1 }
}
