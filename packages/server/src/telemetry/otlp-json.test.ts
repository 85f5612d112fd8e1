import { expect, test } from 'vitest'
import { attributesIn } from '../../../../test/servers/collector.ts'
import type { OtlpSpan } from '../../../../test/servers/collector.ts'
import { spanJson } from './otlp-json.ts'
import type { Span } from './span.ts'
import { randomSpanIds } from './random-ids.ts'
import { jobSpanId, traceOf, trySpanId, visitSpanId } from './trace-identity.ts'

const SPAN: Span = {
  name: 'Job:x',
  kind: 'server',
  traceId: 'a'.repeat(32),
  spanId: 'b'.repeat(16),
  startedAt: 1_700_000_000_000,
  endedAt: 1_700_000_000_001.25,
  attributes: {},
}

function written(span: Partial<Span>): OtlpSpan {
  return JSON.parse(spanJson({ ...SPAN, ...span })) as OtlpSpan
}

test('[I-04] a span is written as OTLP has it, whatever stands in its texts', () => {
  const hostile = '"\\\n\u0000\u2028\uD800</script>😀'
  const attributes = { 'job.id': hostile, [hostile]: 1, share: 0.5, big: 2 ** 60, odd: Number.NaN }
  const span = written({ name: hostile, error: hostile, traceState: 'a="b', attributes, links: ['c'.repeat(16)] })
  expect(span).toMatchObject({
    name: hostile,
    kind: 2,
    status: { code: 2, message: hostile },
    traceState: 'a="b',
    startTimeUnixNano: '1700000000000000000',
    endTimeUnixNano: '1700000000001250000',
    links: [{ traceId: SPAN.traceId, spanId: 'c'.repeat(16) }],
  })
  expect(attributesIn(span.attributes)).toEqual({ ...attributes, odd: 'NaN' })
  expect(written({})).toMatchObject({ status: { code: 1 }, links: [] })
  expect(written({ startedAt: 1.9999999 }).startTimeUnixNano).toBe('2000000')
})

test('[I-04] ids of spans and traces differ, and are the same on every instance', () => {
  const sampling = { sampler: 'always_on', share: 1 } as const
  const ids = new Set<string>()
  const traces = new Set<string>()
  for (let job = 0; job < 20_000; job += 1) {
    const id = `0198c0de-0000-7000-8000-${job.toString(16).padStart(12, '0')}`
    const task = `${id}.1.0`
    for (const one of [jobSpanId(id), visitSpanId(id, 1), visitSpanId(id, 2), trySpanId(task, 1), trySpanId(task, 2)]) {
      ids.add(one)
    }
    traces.add(traceOf({ id }, sampling).traceId)
  }
  expect([ids.size, traces.size]).toEqual([100_000, 20_000])
  for (const id of ids) if (!/^[\da-f]{16}$/.test(id)) throw new Error(id)
  for (const id of traces) if (!/^[\da-f]{32}$/.test(id)) throw new Error(id)
  // Half of the bits are set, in every place: a sampler that looks at a part of them is fair.
  const share = [...traces].filter((id) => Number.parseInt(id.slice(-8), 16) < 2 ** 31).length / traces.size
  expect(Math.abs(share - 0.5)).toBeLessThan(0.02)
  expect(jobSpanId('0198c0de-0000-7000-8000-000000000001')).toMatchInlineSnapshot(`"79b3b17626bbbc09"`)
  const child = traceOf({ id: '0198c0de-0000-7000-8000-000000000001-1.0' }, sampling).traceId
  expect(traceOf({ id: '0198c0de-0000-7000-8000-000000000001' }, sampling).traceId).toBe(child)
  const fresh = randomSpanIds()
  expect(new Set(Array.from({ length: 2_000 }, fresh)).size).toBe(2_000)
})
