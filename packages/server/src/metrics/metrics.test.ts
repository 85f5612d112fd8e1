import { expect, test } from 'vitest'
import { METRICS } from './metric-catalogue.ts'
import { Metrics, SERIES_MAX } from './metrics.ts'

test('[I-03] counters, gauges and histograms are written as Prometheus reads them', () => {
  const metrics = new Metrics()
  metrics.count('orchestrator_jobs_total', { blueprint: 'a"b\\c\nd' })
  metrics.count('orchestrator_jobs_total', { blueprint: 'a"b\\c\nd' }, 2)
  metrics.set('orchestrator_active_workers', {}, 3)
  metrics.observe('impresario_task_duration_seconds', { blueprint: 'p' }, 0.04)
  metrics.observe('impresario_task_duration_seconds', { blueprint: 'p' }, 99_999)
  const text = metrics.text()
  expect(text).toContain('# TYPE orchestrator_jobs_total counter\n')
  expect(text).toContain(String.raw`orchestrator_jobs_total{blueprint="a\"b\\c\nd"} 3`)
  expect(text).toContain('\norchestrator_active_workers 3\n')
  expect(text).toContain('impresario_task_duration_seconds_bucket{blueprint="p",le="0.01"} 0\n')
  expect(text).toContain('impresario_task_duration_seconds_bucket{blueprint="p",le="0.05"} 1\n')
  expect(text).toContain('impresario_task_duration_seconds_bucket{blueprint="p",le="7200"} 1\n')
  expect(text).toContain('impresario_task_duration_seconds_bucket{blueprint="p",le="+Inf"} 2\n')
  expect(text).toContain('impresario_task_duration_seconds_sum{blueprint="p"} 99999.04\n')
  expect(text).toContain('impresario_task_duration_seconds_count{blueprint="p"} 2\n')
})

test('[I-03] the number of series is bounded, and nothing is lost beyond it', () => {
  const metrics = new Metrics()
  for (let index = 0; index < 10_000; index += 1) {
    metrics.count('orchestrator_jobs_timeouts_total', { blueprint: `made-up-${index}`, type: 'dispatch' })
  }
  metrics.count('orchestrator_jobs_total', { blueprint: 'x'.repeat(100_000) })
  const lines = metrics.text().split('\n')
  const series = lines.filter((line) => line.startsWith('orchestrator_jobs_timeouts_total{'))
  expect(series).toHaveLength(SERIES_MAX + 1)
  expect(series.at(-1)).toBe(`orchestrator_jobs_timeouts_total{blueprint="other",type="other"} ${10_000 - SERIES_MAX}`)
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(400)
})

test('[I-03] a gauge by label shows only what there is now', () => {
  const metrics = new Metrics()
  metrics.setAll('impresario_jobs', [
    [{ status: 'running' }, 2],
    [{ status: 'finished' }, 1],
  ])
  metrics.setAll('impresario_jobs', [[{ status: 'finished' }, 3]])
  expect(metrics.text()).toContain('impresario_jobs{status="finished"} 3')
  expect(metrics.text()).not.toContain('running')
})

test('[I-03] names follow the rules of Prometheus: counters end with _total, times are in seconds, sizes in bytes', () => {
  for (const [name, { type, labels }] of Object.entries(METRICS)) {
    expect({ name, isTotal: name.endsWith('_total') }).toEqual({ name, isTotal: type === 'counter' })
    expect(name).toMatch(/^[a-z][a-z0-9_]*$/)
    expect(name).not.toMatch(/_(?:ms|milliseconds|mb|kb)(?:_|$)/)
    expect(labels.filter((label) => /id$|token|client/.test(label))).toEqual([])
  }
})

test('[I-03] metrics that come as text are given as data too', () => {
  const metrics = new Metrics()
  metrics.count('orchestrator_jobs_total', { blueprint: 'a"b\\c\nd' })
  metrics.set('orchestrator_active_workers', {}, 3)
  for (const seconds of [0.04, 0.04, 7, 99_999]) {
    metrics.observe('impresario_task_duration_seconds', { blueprint: 'p' }, seconds)
  }
  const other = new Metrics()
  other.addSource(() => `${metrics.text()}not a sample\n# TYPE odd summary\nodd 1\n`)
  expect(other.families()).toEqual(
    metrics.families().map(({ series, ...family }) => ({
      ...family,
      series: series.map((one) => (family.type === 'histogram' ? one : { ...one, buckets: [] })),
    })),
  )
})

test('[I-03] OpenMetrics: counters are named without _total, buckets have the newest job as their example, and it ends with EOF', () => {
  const metrics = new Metrics()
  const tracing = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
  metrics.count('orchestrator_jobs_total', { blueprint: 'p' })
  const labels = { blueprint: 'p' }
  metrics.observe('impresario_task_duration_seconds', labels, 0.04, { id: 'job-1' })
  metrics.observe('impresario_task_duration_seconds', labels, 0.03, { id: 'job-2', tracing })
  metrics.observe('impresario_task_duration_seconds', labels, 99_999, { id: 'job-3' })
  metrics.observe('impresario_task_duration_seconds', labels, 5, { id: 'j"} 1\nforged 1' })
  metrics.observe('impresario_task_duration_seconds', labels, 5, { id: 'x'.repeat(123) })
  metrics.addSource(() => '# HELP odd Odd.\n# TYPE odd counter\nodd 1\n')
  const text = metrics.openText()
  expect(text).toContain('# TYPE orchestrator_jobs counter\norchestrator_jobs_total{blueprint="p"} 1\n')
  expect(text).toMatch(
    /le="0\.05"\} 2 # \{job_id="job-2",trace_id="0af7651916cd43dd8448eb211c80319c"\} 0\.03 \d+\.\d{3}\n/,
  )
  expect(text).toMatch(/le="\+Inf"\} 5 # \{job_id="job-3"\} 99999 \d+\.\d{3}\n/)
  expect(text).not.toMatch(/forged|xxx|job-1/)
  expect(text).toMatch(/# TYPE odd unknown\nodd 1\n# EOF\n$/)
  expect(metrics.text()).not.toContain('job-2')
})
