import { expect, test } from 'vitest'
import { logRecord } from './log-record.ts'
import { recordJson } from './otlp-json.ts'

const TRACE = 'a'.repeat(32)
const SPAN = 'b'.repeat(16)

test('[I-05] whatever fields a handler writes, a line for the collector is bounded and can be written as JSON', () => {
  const loop: Record<string, unknown> = {}
  loop['self'] = loop
  const odd = { loop, big: 2n, not: Number.NaN, none: null, fn: () => 1, gone: undefined, on: true, mark: Symbol('s') }
  const { attributes } = logRecord(1, 'info', 'odd', { ...odd, error: new Error('why') })
  expect(attributes).toEqual({
    loop: '[not JSON]',
    big: '2',
    not: 'NaN',
    none: 'null',
    on: true,
    mark: 'Symbol(s)',
    error: 'why',
  })
  const many = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, index) => [`${index}`.padEnd(999), 'x'.repeat(99_999)]),
  )
  const record = logRecord(1, 'info', 'm'.repeat(1e6), many)
  expect(recordJson(record).length).toBeLessThan(300_000)
  expect(JSON.parse(recordJson(record))).toMatchObject({ severityText: 'INFO' })
})

test('[I-05] only real ids lead to a trace; anything else stays a field', () => {
  expect(logRecord(1, 'warn', 'm', { trace_id: TRACE, span_id: SPAN })).toMatchObject({ traceId: TRACE, spanId: SPAN })
  expect(logRecord(1, 'warn', 'm', { trace_id: TRACE, span_id: 'x' })).toMatchObject({
    traceId: TRACE,
    spanId: undefined,
  })
  for (const bad of ['x', '0'.repeat(32), TRACE.toUpperCase(), 7]) {
    const record = logRecord(1, 'warn', 'm', { trace_id: bad, span_id: SPAN })
    expect(record).toMatchObject({
      traceId: undefined,
      spanId: undefined,
      attributes: { trace_id: bad, span_id: SPAN },
    })
  }
})
