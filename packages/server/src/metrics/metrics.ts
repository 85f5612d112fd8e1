import { METRICS } from './metric-catalogue.ts'
import type { MetricName, MetricSpec } from './metric-catalogue.ts'
import { familiesIn } from './text-families.ts'

/** Series of one metric. A further combination of labels is counted under `other`. */
export const SERIES_MAX = 200
const OTHER = 'other'
const LABEL_CHARS_MAX = 100

type Names = typeof METRICS
type NamesOf<Type extends MetricSpec['type']> = {
  [Name in MetricName]: Names[Name]['type'] extends Type ? Name : never
}[MetricName]
type Values<Name extends MetricName> = { readonly [Label in Names[Name]['labels'][number]]: string }

interface Series {
  readonly labels: readonly string[]
  value: number
  /** Of a histogram: how many were within each bound, without those of the bounds before. */
  readonly buckets: number[]
  count: number
}

/** One metric with all its series, for those who send it elsewhere. */
export interface MetricFamily {
  readonly name: string
  readonly type: MetricSpec['type']
  readonly help: string
  readonly bounds: readonly number[]
  readonly series: readonly {
    readonly labels: Readonly<Record<string, string>>
    /** Of a histogram: the sum of all values. */
    readonly value: number
    /** Of a histogram: how many were within each bound, and beyond the last. */
    readonly buckets: readonly number[]
    readonly count: number
  }[]
}

/**
 * The figures of this process, under the names of the catalogue. Counting is an addition in memory: nothing waits for it,
 * and a scrape reads what is there. The number of series is bounded, whatever names blueprints and requests have.
 */
export class Metrics {
  readonly #series = new Map<MetricName, Map<string, Series>>()
  readonly #sources: (() => string)[] = []

  count<Name extends NamesOf<'counter'>>(name: Name, labels: Values<Name>, by = 1): void {
    this.#at(name, labels).value += by
  }

  /** For counters that something else counts. */
  setTotal<Name extends NamesOf<'counter'>>(name: Name, labels: Values<Name>, total: number): void {
    this.#at(name, labels).value = total
  }

  set<Name extends NamesOf<'gauge'>>(name: Name, labels: Values<Name>, value: number): void {
    this.#at(name, labels).value = value
  }

  /** Replaces all series of a gauge: what is not in the new ones is gone. */
  setAll<Name extends NamesOf<'gauge'>>(name: Name, all: readonly (readonly [Values<Name>, number])[]): void {
    this.#series.delete(name)
    for (const [labels, value] of all) this.set(name, labels, value)
  }

  observe<Name extends NamesOf<'histogram'>>(name: Name, labels: Values<Name>, value: number): void {
    const series = this.#at(name, labels)
    const { bounds } = METRICS[name]
    const index = bounds.findIndex((bound) => value <= bound)
    if (index !== -1) series.buckets[index] = (series.buckets[index] ?? 0) + 1
    series.value += value
    series.count += 1
  }

  /** Text in the same format that is shown behind our own. */
  addSource(text: () => string): void {
    this.#sources.push(text)
  }

  /** All figures in the text format of Prometheus, version 0.0.4. */
  text(): string {
    const own = [...this.#series].map(([name, series]) => family(name, METRICS[name], [...series.values()]))
    return [...own, ...this.#sources.map((source) => source())].join('')
  }

  /** The same figures as data. */
  families(): readonly MetricFamily[] {
    const own = [...this.#series].map(([name, all]) => {
      const { type, help, labels, bounds = [] }: MetricSpec = METRICS[name]
      const series = [...all.values()].map(({ labels: values, value, buckets, count }) => {
        const within = bounds.map((_bound, index) => buckets[index] ?? 0)
        const beyond = count - within.reduce((sum, one) => sum + one, 0)
        const named = Object.fromEntries(labels.map((label, index) => [label, values[index] ?? '']))
        return { labels: named, value, buckets: [...within, beyond], count }
      })
      return { name, type, help, bounds, series }
    })
    return [...own, ...this.#sources.flatMap((source) => familiesIn(source()))]
  }

  #at(name: MetricName, labels: Readonly<Record<string, string>>): Series {
    const spec: MetricSpec = METRICS[name]
    let all = this.#series.get(name)
    if (all === undefined) {
      all = new Map()
      this.#series.set(name, all)
    }
    const values = spec.labels.map((label) => (labels[label] ?? '').slice(0, LABEL_CHARS_MAX))
    const key = values.join('\u0000')
    const known = all.get(key)
    if (known !== undefined) return known
    const isFull = all.size >= SERIES_MAX
    const shown = isFull ? spec.labels.map(() => OTHER) : values
    const kept = isFull ? all.get(shown.join('\u0000')) : undefined
    if (kept !== undefined) return kept
    const series: Series = { labels: shown, value: 0, buckets: [], count: 0 }
    all.set(shown.join('\u0000'), series)
    return series
  }
}

function family(name: string, { type, help, labels, bounds = [] }: MetricSpec, all: readonly Series[]): string {
  const lines = all.flatMap((series) => {
    const pairs = labels.map((label, index) => `${label}="${escaped(series.labels[index] ?? '')}"`)
    if (type !== 'histogram') return [`${name}${braces(pairs)} ${series.value}`]
    let within = 0
    const buckets = bounds.map((bound, index) => {
      within += series.buckets[index] ?? 0
      return `${name}_bucket${braces([...pairs, `le="${bound}"`])} ${within}`
    })
    return [
      ...buckets,
      `${name}_bucket${braces([...pairs, 'le="+Inf"'])} ${series.count}`,
      `${name}_sum${braces(pairs)} ${series.value}`,
      `${name}_count${braces(pairs)} ${series.count}`,
    ]
  })
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`
}

function braces(pairs: readonly string[]): string {
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('\n', String.raw`\n`)
    .replaceAll('"', String.raw`\"`)
}
