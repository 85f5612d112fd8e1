import type { LogRecord } from './log-record.ts'
import type { Span } from './span.ts'

/*
 * Spans and lines of the log in the JSON of OTLP, written at once and kept as bytes. A busy server makes tens of thousands of
 * them in a second: objects that wait for their turn cost more than their work. Measured on 2 cores with five spans for each
 * job: the objects and the serializer of the SDK took a third of the throughput.
 */

type Value = string | number | boolean

export function spanJson(span: Span): string {
  const { name, kind, traceId, spanId, parentId, traceState, error, links } = span
  const parent = parentId === undefined ? '' : `,"parentSpanId":"${parentId}"`
  const state = traceState === undefined ? '' : `,"traceState":${JSON.stringify(traceState)}`
  const status = error === undefined ? '{"code":1}' : `{"code":2,"message":${JSON.stringify(error)}}`
  const linked = links?.map((id) => `{"traceId":"${traceId}","spanId":"${id}"}`).join(',') ?? ''
  return (
    `{"traceId":"${traceId}","spanId":"${spanId}"${parent}${state},"name":${JSON.stringify(name)},"kind":${KINDS[kind]},` +
    `"startTimeUnixNano":"${nanos(span.startedAt)}","endTimeUnixNano":"${nanos(span.endedAt)}",` +
    `"attributes":${attributesJson(span.attributes)},"status":${status},"links":[${linked}],"flags":1}`
  )
}

export function recordJson({ at, level, message, attributes, traceId, spanId }: LogRecord): string {
  const trace = traceId === undefined ? '' : `,"traceId":"${traceId}"`
  // A line may belong to a trace and to no span of it.
  const span = spanId === undefined ? '' : `,"spanId":"${spanId}","flags":1`
  const time = nanos(at)
  return (
    `{"timeUnixNano":"${time}","observedTimeUnixNano":"${time}","severityNumber":${SEVERITIES[level]},` +
    `"severityText":"${level.toUpperCase()}","body":{"stringValue":${JSON.stringify(message)}},` +
    `"attributes":${attributesJson(attributes)}${trace}${span}}`
  )
}

export function attributesJson(attributes: Readonly<Record<string, Value>>): string {
  let text = ''
  for (const key of Object.keys(attributes)) {
    const value = attributes[key]
    if (value === undefined) continue
    text += `${text === '' ? '' : ','}{"key":${keyJson(key)},"value":${valueJson(value)}}`
  }
  return `[${text}]`
}

/** Those of spans are few. Handlers may make up any for their lines, so that their number is bounded. */
const keys = new Map<string, string>()
const KEYS_MAX = 1_000

function keyJson(key: string): string {
  const known = keys.get(key)
  if (known !== undefined) return known
  const json = JSON.stringify(key)
  if (keys.size < KEYS_MAX) keys.set(key, json)
  return json
}

function valueJson(value: Value): string {
  if (typeof value === 'string') return `{"stringValue":${JSON.stringify(value)}}`
  if (typeof value === 'boolean') return `{"boolValue":${value}}`
  if (Number.isSafeInteger(value)) return `{"intValue":${value}}`
  return Number.isFinite(value) ? `{"doubleValue":${value}}` : `{"stringValue":"${value}"}`
}

/** Milliseconds, which may have a fraction, as whole nanoseconds. They are larger than a number can hold exactly. */
function nanos(ms: number): string {
  const whole = Math.floor(ms)
  if (whole === ms) return `${whole}000000`
  const rest = Math.round((ms - whole) * 1_000_000)
  return rest === 1_000_000 ? `${whole + 1}000000` : `${whole}${String(rest).padStart(6, '0')}`
}

/* The enums of OTLP. */
const KINDS: Readonly<Record<Span['kind'], number>> = { internal: 1, server: 2, client: 3, producer: 4 }
const SEVERITIES: Readonly<Record<LogRecord['level'], number>> = { debug: 5, info: 9, warn: 13, error: 17 }
