import { METRICS } from './metric-catalogue.ts'
import type { MetricName, MetricSpec } from './metric-catalogue.ts'
import { exampleText, openHeads } from './open-metrics.ts'
import type { Example, JobOfValue } from './open-metrics.ts'
import { familiesIn } from './text-families.ts'

/** Series of one metric. A further combination of labels is counted under `other`. */
export const SERIES_MAX = 200
const OTHER = 'other'
const LABEL_CHARS_MAX = 100
/** Between the labels of a key. */
const BETWEEN = '\u0000'

type Names = typeof METRICS
type NamesOf<Type extends MetricSpec['type']> = {
  [Name in MetricName]: Names[Name]['type'] extends Type ? Name : never
}[MetricName]
type Values<Name extends MetricName> = { readonly [Label in Names[Name]['labels'][number]]: string }

interface Series {
  readonly labels: readonly string[]
  /** The beginnings of its lines, made once: a scrape only adds the numbers. */
  readonly heads: readonly string[]
  value: number
  /** Of a histogram: how many were within each bound, without those of the bounds before. */
  readonly buckets: number[]
  /** Of a histogram: the newest job that was counted in each bucket. */
  readonly examples: (Example | undefined)[]
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

  observe<Name extends NamesOf<'histogram'>>(name: Name, labels: Values<Name>, value: number, job?: JobOfValue): void {
    const series = this.#at(name, labels)
    const { bounds } = METRICS[name]
    const index = bounds.findIndex((bound) => value <= bound)
    if (index !== -1) series.buckets[index] = (series.buckets[index] ?? 0) + 1
    if (job !== undefined) series.examples[index === -1 ? bounds.length : index] = { job, value, at: Date.now() }
    series.value += value
    series.count += 1
  }

  /** Text in the same format that is shown behind our own. */
  addSource(text: () => string): void {
    this.#sources.push(text)
  }

  /** All figures in the text format of Prometheus, version 0.0.4. */
  text(): string {
    const own = [...this.#series].map(([name, series]) => family(name, METRICS[name], series.values()))
    return [...own, ...this.#sources.map((source) => source())].join('')
  }

  /** The same in the text format OpenMetrics 1.0, with the newest job of each bucket as its example. */
  openText(): string {
    const own = [...this.#series].map(([name, series]) => family(name, METRICS[name], series.values(), true))
    const all = [...own, ...this.#sources.map((source) => source())].join('')
    return `${openHeads(all)}# EOF\n`
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
    const known = all.get(keyOf(spec.labels, labels))
    if (known !== undefined) return known
    const values = spec.labels.map((label) => shownLabel(labels[label]))
    const isFull = all.size >= SERIES_MAX
    const shown = isFull ? spec.labels.map(() => OTHER) : values
    const kept = isFull ? all.get(shown.join(BETWEEN)) : undefined
    if (kept !== undefined) return kept
    const heads = headsOf(name, spec, shown)
    const series: Series = { labels: shown, heads, value: 0, buckets: [], examples: [], count: 0 }
    all.set(shown.join(BETWEEN), series)
    return series
  }
}

/** Asked several times for each job and request: it makes no list. */
function keyOf(names: readonly string[], labels: Readonly<Record<string, string>>): string {
  let key = ''
  let isFirst = true
  for (const name of names) {
    const value = shownLabel(labels[name])
    key = isFirst ? value : `${key}${BETWEEN}${value}`
    isFirst = false
  }
  return key
}

function shownLabel(value = ''): string {
  return value.length > LABEL_CHARS_MAX ? value.slice(0, LABEL_CHARS_MAX) : value
}

function family(
  name: string,
  { type, help, bounds = [] }: MetricSpec,
  all: Iterable<Series>,
  hasExamples = false,
): string {
  let text = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
  for (const { heads, value, buckets, examples, count } of all) {
    let within = 0
    for (const [index, head] of heads.entries()) {
      const example = hasExamples ? exampleText(examples[index]) : ''
      if (type !== 'histogram') text += `${head}${value}\n`
      else if (index < bounds.length) {
        within += buckets[index] ?? 0
        text += `${head}${within}${example}\n`
      } else text += `${head}${index === bounds.length + 1 ? value : count}${example}\n`
    }
  }
  return text
}

/** What stands before the numbers of a series: the buckets, all of them, the sum and the count, or the one value. */
function headsOf(name: string, { type, labels, bounds = [] }: MetricSpec, values: readonly string[]): string[] {
  const pairs = labels.map((label, index) => `${label}="${escaped(values[index] ?? '')}"`)
  if (type !== 'histogram') return [`${name}${braces(pairs)} `]
  const limits = [...bounds.map(String), '+Inf']
  return [
    ...limits.map((limit) => `${name}_bucket${braces([...pairs, `le="${limit}"`])} `),
    `${name}_sum${braces(pairs)} `,
    `${name}_count${braces(pairs)} `,
  ]
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
