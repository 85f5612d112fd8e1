import { DURATION_BOUNDS } from './statistics.ts'
import type { TaskFigures } from './statistics.ts'
import type { EngineState } from './state.ts'

interface Sample {
  /** What follows the name, such as `_bucket`; empty for most. */
  readonly suffix: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** One metric, for whatever collects metrics. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: readonly Sample[]
}

export interface MetricSource {
  readonly state: EngineState
  readonly figures: TaskFigures
  readonly tasksPerSecond: number
  readonly workers: number
}

/** Under the names of the specification, and once more under ours. */
const PREFIXES = ['stroidex', 'impresario_documents'] as const

export function metricsOf(source: MetricSource): readonly Metric[] {
  return PREFIXES.flatMap((prefix) => named(prefix, source))
}

function named(prefix: string, { state, figures, tasksPerSecond, workers }: MetricSource): readonly Metric[] {
  const plain = (value: number): readonly Sample[] => [{ suffix: '', labels: {}, value }]
  const processed = Object.entries(figures.processed).map(([key, value]) => {
    const [type = '', status = ''] = key.split(' ')
    return { suffix: '', labels: { type, status }, value }
  })
  const errors = processed
    .filter(({ labels }) => labels.status !== 'completed')
    .reduce((sum, { value }) => sum + value, 0)
  return [
    metric(`${prefix}_tasks_processed_total`, 'Total number of tasks processed', 'counter', processed),
    metric(`${prefix}_task_duration_seconds`, 'Duration of task processing', 'histogram', durations(figures)),
    metric(`${prefix}_queue_size`, 'Current queue size', 'gauge', plain(state.queue_size)),
    metric(`${prefix}_workers_busy`, 'Tasks that are being done', 'gauge', plain(state.workers_busy)),
    metric(
      `${prefix}_worker_utilization`,
      'Share of the workers that are busy',
      'gauge',
      plain(state.workers_busy / workers),
    ),
    metric(`${prefix}_errors_total`, 'Tries of tasks that failed', 'counter', plain(errors)),
    metric(`${prefix}_tasks_per_second`, 'Tasks a second, over the last minute', 'gauge', plain(tasksPerSecond)),
  ]
}

function metric(name: string, help: string, type: Metric['type'], samples: readonly Sample[]): Metric {
  return { name, help, type, samples }
}

function durations({ durations: byType }: TaskFigures): readonly Sample[] {
  return Object.entries(byType).flatMap(([type, { count, sum, buckets }]) => [
    ...DURATION_BOUNDS.map((bound, index) => ({
      suffix: '_bucket',
      labels: { type, le: String(bound) },
      value: buckets[index] ?? 0,
    })),
    { suffix: '_bucket', labels: { type, le: '+Inf' }, value: count },
    { suffix: '_sum', labels: { type }, value: sum },
    { suffix: '_count', labels: { type }, value: count },
  ])
}

/** The sum of the same metrics of several indexes. Shares of the workers add up too: all indexes have the same workers. */
export function addedUp(all: readonly (readonly Metric[])[]): readonly Metric[] {
  const sums = new Map<string, Metric>()
  for (const one of all.flat()) {
    const known = sums.get(one.name)
    sums.set(one.name, known === undefined ? one : { ...known, samples: plus(known.samples, one.samples) })
  }
  return [...sums.values()]
}

function plus(one: readonly Sample[], other: readonly Sample[]): readonly Sample[] {
  const sums = new Map<string, Sample>()
  for (const sample of [...one, ...other]) {
    const key = `${sample.suffix}${labelsText(sample.labels)}`
    const known = sums.get(key)
    sums.set(key, known === undefined ? sample : { ...known, value: known.value + sample.value })
  }
  return [...sums.values()]
}

/** As Prometheus reads them (text format 0.0.4). */
export function metricsText(metrics: readonly Metric[]): string {
  const lines = metrics.flatMap(({ name, help, type, samples }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(({ suffix, labels, value }) => `${name}${suffix}${labelsText(labels)} ${value}`),
  ])
  return `${lines.join('\n')}\n`
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}
