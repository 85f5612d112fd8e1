import type * as Api from '@opentelemetry/api'
import type * as MetricExporter from '@opentelemetry/exporter-metrics-otlp-http'
import type * as TraceExporter from '@opentelemetry/exporter-trace-otlp-http'
import type * as Resources from '@opentelemetry/resources'
import { missingPackage } from '@impresario/protocol'
import type { MetricFamily } from '../metrics/metrics.ts'
import type { Span } from './span.ts'
import type { Trace } from './trace-identity.ts'

interface Packages {
  readonly api: typeof Api
  readonly traces: typeof TraceExporter
  readonly metrics: typeof MetricExporter
  readonly resources: typeof Resources
}

/** They take 100 ms and 10 MB to load, and are optional packages: only those who use them load them. */
export async function loadOtlp(): Promise<Packages> {
  try {
    const [api, traces, metrics, resources] = await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/exporter-metrics-otlp-http'),
      import('@opentelemetry/resources'),
    ])
    return { api, traces, metrics, resources }
  } catch (error) {
    throw missingPackage(error, { purpose: 'OTEL_EXPORTER_OTLP_ENDPOINT', packages: PACKAGES }) ?? error
  }
}

const PACKAGES = [
  '@opentelemetry/api',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/exporter-metrics-otlp-http',
  '@opentelemetry/resources',
]

export interface Target {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

type ReadableSpan = Parameters<TraceExporter.OTLPTraceExporter['export']>[0][number]
type ResourceMetrics = Parameters<MetricExporter.OTLPMetricExporter['export']>[0]
type MetricData = ResourceMetrics['scopeMetrics'][number]['metrics'][number]

/** Only what we use of their exporters: those of traces and metrics have it in common. */
interface Exporter<Data> {
  export(data: Data, done: (result: { readonly code: number; readonly error?: Error }) => void): void
  shutdown(): Promise<void>
}

/**
 * The way to a collector, by the exporters of OpenTelemetry. They retry what a collector puts off, within the time limit, and
 * read what else the environment says of the connection (compression, certificates).
 */
export class Otlp {
  readonly #packages: Packages
  readonly #resource: Resources.Resource
  readonly #scope: { readonly name: string; readonly version: string }
  readonly #exporters: Exporter<never>[] = []

  constructor(packages: Packages, attributes: Readonly<Record<string, string>>, version: string) {
    this.#packages = packages
    this.#resource = packages.resources.resourceFromAttributes(attributes)
    this.#scope = { name: 'impresario', version }
  }

  traces({ url, headers, timeoutMs }: Target): (spans: readonly Span[]) => Promise<void> {
    const exporter = new this.#packages.traces.OTLPTraceExporter({ url, headers, timeoutMillis: timeoutMs })
    this.#exporters.push(exporter)
    return (spans) =>
      sent(
        exporter,
        spans.map((span) => this.#readable(span)),
      )
  }

  metrics({
    url,
    headers,
    timeoutMs,
  }: Target): (
    families: readonly MetricFamily[],
    span: { readonly since: number; readonly now: number },
  ) => Promise<void> {
    const exporter = new this.#packages.metrics.OTLPMetricExporter({ url, headers, timeoutMillis: timeoutMs })
    this.#exporters.push(exporter)
    return (families, { since, now }) => {
      const metrics = families.map((family) => dataOf(family, timeOf(since), timeOf(now)))
      return sent(exporter, { resource: this.#resource, scopeMetrics: [{ scope: this.#scope, metrics }] })
    }
  }

  /** Libraries in the code that make spans, where the program has set up OpenTelemetry, find this one as their parent. */
  within<T>({ traceId, isSampled }: Trace, spanId: string, code: () => T): T {
    const { context, trace, ROOT_CONTEXT } = this.#packages.api
    const spanContext = { traceId, spanId, traceFlags: isSampled ? 1 : 0, isRemote: false }
    return context.with(trace.setSpanContext(ROOT_CONTEXT, spanContext), code)
  }

  async close(): Promise<void> {
    await Promise.all(this.#exporters.map((exporter) => exporter.shutdown()))
  }

  #readable(span: Span): ReadableSpan {
    const { api } = this.#packages
    const { traceId, spanId, parentId, error, links = [], startedAt, endedAt } = span
    const traceState = span.traceState === undefined ? undefined : api.createTraceState(span.traceState)
    const contextOf = (id: string): Api.SpanContext => ({
      traceId,
      spanId: id,
      traceFlags: 1,
      ...(traceState === undefined ? {} : { traceState }),
    })
    return {
      name: span.name,
      kind: KINDS[span.kind],
      spanContext: () => contextOf(spanId),
      ...(parentId === undefined ? {} : { parentSpanContext: contextOf(parentId) }),
      startTime: timeOf(startedAt),
      endTime: timeOf(endedAt),
      duration: timeOf(endedAt - startedAt),
      status: error === undefined ? { code: STATUS_OK } : { code: STATUS_ERROR, message: error },
      attributes: span.attributes,
      links: links.map((id) => ({ context: contextOf(id) })),
      events: [],
      ended: true,
      resource: this.#resource,
      instrumentationScope: this.#scope,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    }
  }
}

/* The enums of OpenTelemetry, which are numbers in its protocol: INTERNAL, SERVER, PRODUCER, and so on. */
const KINDS: Readonly<Record<Span['kind'], Api.SpanKind>> = { internal: 0, server: 1, client: 2, producer: 3 }
const STATUS_OK: Api.SpanStatusCode = 1
const STATUS_ERROR: Api.SpanStatusCode = 2

function timeOf(ms: number): [seconds: number, nanos: number] {
  const seconds = Math.floor(ms / 1_000)
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000_000)]
}

function sent<Data>(exporter: Exporter<Data>, data: Data): Promise<void> {
  return new Promise((resolve, reject) => {
    exporter.export(data, ({ code, error }) => {
      if (code === 0) resolve()
      else reject(error ?? new Error('The collector did not take it.'))
    })
  })
}

const CUMULATIVE = 1
const HISTOGRAM = 0
const GAUGE = 2
const SUM = 3

type Time = [seconds: number, nanos: number]

/** Boundary: the kinds of data are told apart by numbers of enums, which their types do not take as such. */
function dataOf({ name, type, help, bounds, series }: MetricFamily, startTime: Time, endTime: Time): MetricData {
  const unit = name.endsWith('_seconds') ? 's' : name.endsWith('_bytes') ? 'By' : ''
  const descriptor = { name, description: help, unit, valueType: 1 }
  const dataPoints = series.map(({ labels, value, buckets, count }) => ({
    startTime,
    endTime,
    attributes: labels,
    value: type === 'histogram' ? { buckets: { boundaries: bounds, counts: buckets }, sum: value, count } : value,
  }))
  const kind = type === 'histogram' ? HISTOGRAM : type === 'gauge' ? GAUGE : SUM
  const data = { descriptor, aggregationTemporality: CUMULATIVE, dataPointType: kind, dataPoints }
  return (type === 'counter' ? { ...data, isMonotonic: true } : data) as unknown as MetricData
}
