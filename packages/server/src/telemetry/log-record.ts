import type { LogFields } from '@impresario/core'
import { SECRETS } from '../runtime/log.ts'
import type { WrittenLevel } from '../runtime/log.ts'

/** A line of the log, as it is sent to the collector. */
export interface LogRecord {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly level: WrittenLevel
  readonly message: string
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  readonly traceId?: string | undefined
  readonly spanId?: string | undefined
}

const MESSAGE_CHARS_MAX = 8_192
const TEXT_CHARS_MAX = 4_096
const STACK_CHARS_MAX = 16_384
const KEY_CHARS_MAX = 128
const ATTRIBUTES_MAX = 64
const HIDDEN = '[hidden]'
const TRACE_ID = /^(?!0+$)[\da-f]{32}$/
const SPAN_ID = /^(?!0+$)[\da-f]{16}$/

/** Handlers may write any field: all of it is bounded, and secrets are hidden as in the log itself. */
export function logRecord(at: number, level: WrittenLevel, message: string, fields: LogFields = {}): LogRecord {
  const { trace_id: trace, span_id: span, ...rest } = fields
  const traceId = typeof trace === 'string' && TRACE_ID.test(trace) ? trace : undefined
  const spanId = traceId !== undefined && typeof span === 'string' && SPAN_ID.test(span) ? span : undefined
  const named = traceId === undefined ? fields : rest
  const attributes: Record<string, string | number | boolean> = {}
  for (const [key, value] of Object.entries(named).slice(0, ATTRIBUTES_MAX)) {
    const shown = SECRETS.includes(key) ? HIDDEN : attributeOf(key, value)
    if (shown !== undefined) attributes[key.slice(0, KEY_CHARS_MAX)] = shown
  }
  return { at, level, message: message.slice(0, MESSAGE_CHARS_MAX), attributes, traceId, spanId }
}

function attributeOf(key: string, value: unknown): string | number | boolean | undefined {
  if (value === undefined || typeof value === 'function') return undefined
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return value
  return textOf(value).slice(0, key === 'stack' ? STACK_CHARS_MAX : TEXT_CHARS_MAX)
}

/** Lists and objects as JSON: not every collector keeps what is nested. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'symbol') return String(value)
  if (value instanceof Error) return value.message
  try {
    return JSON.stringify(value, (key, inner: unknown) => (SECRETS.includes(key) ? HIDDEN : inner)) ?? ''
  } catch {
    return '[not JSON]'
  }
}
