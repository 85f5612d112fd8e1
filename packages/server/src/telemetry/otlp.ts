import type * as Api from '@opentelemetry/api'
import type * as MetricExporter from '@opentelemetry/exporter-metrics-otlp-http'
import type * as ExporterBase from '@opentelemetry/otlp-exporter-base/node-http'
import type * as Resources from '@opentelemetry/resources'
import { missingPackage } from '@impresario/protocol'
import type { MetricFamily } from '../metrics/metrics.ts'
import { attributesJson } from './otlp-json.ts'
import type { Trace } from './trace-identity.ts'

export type Signal = 'traces' | 'metrics' | 'logs'

const PURPOSE = 'OTEL_EXPORTER_OTLP_ENDPOINT'

/** They take 100 ms and 10 MB to load, and are optional packages: only those who use them load them. */
export async function loadOtlp(): Promise<typeof Api> {
  return found(['@opentelemetry/api'], () => import('@opentelemetry/api'))
}

async function found<T>(packages: readonly string[], load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (error) {
    throw missingPackage(error, { purpose: PURPOSE, packages }) ?? error
  }
}

export type SendMetrics = (
  families: readonly MetricFamily[],
  span: { readonly since: number; readonly now: number },
) => Promise<void>

export interface Target {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

type ResourceMetrics = Parameters<MetricExporter.OTLPMetricExporter['export']>[0]
type MetricData = ResourceMetrics['scopeMetrics'][number]['metrics'][number]

/** Only what we use of their exporters: all of them have it in common. */
interface Exporter<Data> {
  export(data: Data, done: (result: { readonly code: number; readonly error?: Error }) => void): void
  shutdown(): Promise<void>
}

/** Takes spans or lines of the log as JSON values with commas between them. */
export type SendPieces = (pieces: Buffer) => Promise<void>

/** What the two signals that are sent as they are made are called, in the settings and in a request. */
const PIECES = {
  traces: { path: 'v1/traces', all: 'resourceSpans', scoped: 'scopeSpans', each: 'spans', item: 'span' },
  logs: { path: 'v1/logs', all: 'resourceLogs', scoped: 'scopeLogs', each: 'logRecords', item: 'log' },
} as const

/**
 * The way to a collector, by the transport of OpenTelemetry. It repeats what a collector puts off, within the time limit, and
 * reads what else the environment says of the connection (compression, certificates).
 */
export class Otlp {
  readonly #api: typeof Api
  readonly #attributes: Readonly<Record<string, string>>
  readonly #scope: { readonly name: string; readonly version: string }
  readonly #exporters: Exporter<never>[] = []

  constructor(api: typeof Api, attributes: Readonly<Record<string, string>>, version: string) {
    this.#api = api
    this.#attributes = attributes
    this.#scope = { name: 'impresario', version }
  }

  async pieces(signal: keyof typeof PIECES, { url, headers, timeoutMs }: Target): Promise<SendPieces> {
    const { path, all, scoped, each, item } = PIECES[signal]
    const base = await found(['@opentelemetry/otlp-exporter-base'], loadBase)
    const options = { url, headers: { ...headers }, timeoutMillis: timeoutMs }
    // The only way to the settings in the environment. It stays until a version that is not out yet.
    // oxlint-disable-next-line typescript/no-deprecated
    const http = base.convertLegacyHttpOptions(options, signal.toUpperCase(), path, {
      'Content-Type': 'application/json',
    })
    const exporter = base.createOtlpHttpExportDelegate<Buffer, object>(
      http,
      { serializeRequest: (body) => body, deserializeResponse: (body) => answerIn(body) },
      `otlp_http_${item}_exporter`,
      { name: item, countItems: () => 1 },
      undefined,
    )
    this.#exporters.push(exporter)
    const head = Buffer.from(
      `{"${all}":[{"resource":{"attributes":${attributesJson(this.#attributes)}},` +
        `"${scoped}":[{"scope":${JSON.stringify(this.#scope)},"${each}":[`,
    )
    return (pieces) => sent(exporter, Buffer.concat([head, pieces, TAIL]))
  }

  async metrics({ url, headers, timeoutMs }: Target): Promise<SendMetrics> {
    const [{ OTLPMetricExporter }, { resourceFromAttributes }] = await found(METRIC_PACKAGES, loadMetrics)
    const resource = resourceFromAttributes(this.#attributes)
    const exporter = new OTLPMetricExporter({ url, headers, timeoutMillis: timeoutMs })
    this.#exporters.push(exporter)
    return (families, { since, now }) => {
      const metrics = families.map((family) => dataOf(family, timeOf(since), timeOf(now)))
      return sent(exporter, { resource, scopeMetrics: [{ scope: this.#scope, metrics }] })
    }
  }

  /** Without it `within` sets nothing. A program may set it up at any time. */
  get hasLibraries(): boolean {
    return REGISTERED in globalThis && (globalThis as Registered)[REGISTERED]?.context !== undefined
  }

  /** Libraries in the code that make spans, where the program has set up OpenTelemetry, find this one as their parent. */
  within<T>({ traceId, isSampled }: Trace, spanId: string, code: () => T): T {
    const { context, trace, ROOT_CONTEXT } = this.#api
    const spanContext = { traceId, spanId, traceFlags: isSampled ? 1 : 0, isRemote: false }
    return context.with(trace.setSpanContext(ROOT_CONTEXT, spanContext), code)
  }

  async close(): Promise<void> {
    await Promise.all(this.#exporters.map((exporter) => exporter.shutdown()))
  }
}

/** Under this name OpenTelemetry keeps what a program has set up: here, what carries a context along. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

interface Registered {
  readonly [REGISTERED]?: { readonly context?: unknown }
}

const TAIL = Buffer.from(']}]}]}')

const METRIC_PACKAGES = ['@opentelemetry/exporter-metrics-otlp-http', '@opentelemetry/resources']

function loadBase(): Promise<typeof ExporterBase> {
  return import('@opentelemetry/otlp-exporter-base/node-http')
}

function loadMetrics(): Promise<[typeof MetricExporter, typeof Resources]> {
  return Promise.all([import('@opentelemetry/exporter-metrics-otlp-http'), import('@opentelemetry/resources')])
}

/** What a collector says of what it did not take. Not every one answers with JSON. */
function answerIn(body: Uint8Array): object {
  const answer: unknown = JSON.parse(Buffer.from(body).toString())
  return typeof answer === 'object' && answer !== null ? answer : {}
}

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
