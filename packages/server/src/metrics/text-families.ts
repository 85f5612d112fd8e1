import type { MetricFamily } from './metrics.ts'

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const SAMPLE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** The metrics in a text of Prometheus (0.0.4), as data. Lines that are not understood are left out. */
export function familiesIn(text: string): readonly MetricFamily[] {
  const types = new Map<string, MetricFamily['type']>()
  const helps = new Map<string, string>()
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const [hash, what = '', name = '', ...rest] = line.split(' ')
    if (hash === '#') {
      const said = rest.join(' ')
      if (what === 'HELP') helps.set(name, said)
      if (what === 'TYPE' && isType(said)) types.set(name, said)
      continue
    }
    const sample = sampleIn(line)
    if (sample !== undefined) samples.push(sample)
  }
  return [...types].map(([name, type]) => {
    const help = helps.get(name) ?? ''
    return type === 'histogram'
      ? { name, type, help, ...histogramOf(name, samples) }
      : { name, type, help, bounds: [], series: plainOf(name, samples) }
  })
}

function isType(text: string): text is MetricFamily['type'] {
  return text === 'counter' || text === 'gauge' || text === 'histogram'
}

function sampleIn(line: string): Sample | undefined {
  const [, name, pairs = '', number] = SAMPLE.exec(line) ?? []
  const value = Number(number)
  if (name === undefined || Number.isNaN(value)) return undefined
  const labels = [...pairs.matchAll(LABEL)].map(([, key = '', text = '']) => [key, unescaped(text)] as const)
  return { name, labels: Object.fromEntries(labels), value }
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_whole, letter: string) => (letter === 'n' ? '\n' : letter))
}

function plainOf(name: string, samples: readonly Sample[]): MetricFamily['series'] {
  return samples
    .filter((sample) => sample.name === name)
    .map(({ labels, value }) => ({ labels, value, buckets: [], count: 0 }))
}

/** Buckets of a text hold those below them too; those of a family do not. */
function histogramOf(name: string, samples: readonly Sample[]): Pick<MetricFamily, 'bounds' | 'series'> {
  const bounds = new Set<number>()
  const all = new Map<string, { labels: Readonly<Record<string, string>>; sum: number; within: Map<number, number> }>()
  for (const { name: sampled, labels: given, value } of samples) {
    if (sampled !== `${name}_bucket` && sampled !== `${name}_sum`) continue
    const { le, ...labels } = given
    const key = JSON.stringify(labels)
    const one = all.get(key) ?? { labels, sum: 0, within: new Map<number, number>() }
    all.set(key, one)
    if (le === undefined) one.sum = value
    else one.within.set(le === '+Inf' ? Infinity : Number(le), value)
    if (le !== undefined && le !== '+Inf') bounds.add(Number(le))
  }
  const sorted = [...bounds].toSorted((a, b) => a - b)
  const series = [...all.values()].map(({ labels, sum, within }) => {
    let below = 0
    const buckets = [...sorted, Infinity].map((bound) => {
      const upTo = within.get(bound) ?? below
      const own = upTo - below
      below = upTo
      return own
    })
    return { labels, value: sum, buckets, count: below }
  })
  return { bounds: sorted, series }
}
