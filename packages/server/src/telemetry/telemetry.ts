import { randomBytes } from 'node:crypto'
import type { Clock, Log } from '@impresario/core'
import { isImpresarioError } from '@impresario/protocol'
import { pairsIn } from '../config/telemetry-keys.ts'
import type { TelemetrySettings } from '../config/telemetry-keys.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { errorFields } from '../runtime/log.ts'
import { VERSION } from '../runtime/version.ts'
import { within } from '../runtime/within.ts'
import { CallSpans } from './call-spans.ts'
import { JobSpans } from './job-spans.ts'
import type { SpansOptions } from './spans-options.ts'
import { loadOtlp, Otlp } from './otlp.ts'
import type { Target } from './otlp.ts'
import { SpanQueue } from './span-queue.ts'
import type { Span } from './span.ts'

export interface TelemetryOptions {
  readonly settings: TelemetrySettings & { readonly instanceId: string }
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

const SPAN_ID_BYTES = 8
/** After a failure that was logged, the next ones are only counted for so long. */
const QUIET_MS = 300_000
/** A collector that is gone does not keep the process from stopping. */
const STOP_MS = 5_000

/**
 * Traces and metrics on their way to a collector. Off unless an address is set, and then it costs nothing.
 *
 * `new` → `start` → *on* → `stop`. Where the optional packages are missing it stays off, and the log says so.
 */
export class Telemetry {
  /** Nothing when no traces are asked for. */
  readonly spans: JobSpans | undefined
  /** Requests and calls of tools; nothing when no traces are asked for. */
  readonly calls: CallSpans | undefined
  readonly #options: TelemetryOptions
  readonly #queue: SpanQueue | undefined
  readonly #startedAt: number
  #otlp: Otlp | undefined
  #sendSpans: ((spans: readonly Span[]) => Promise<void>) | undefined
  #timer: NodeJS.Timeout | undefined
  #sendMetrics: (() => Promise<void>) | undefined
  #exporting: Promise<void> | undefined
  #quietUntil = Number.NEGATIVE_INFINITY

  constructor(options: TelemetryOptions) {
    this.#options = options
    const { settings, clock, metrics } = options
    this.#startedAt = clock.now()
    if (tracesUrl(settings) === undefined) return
    const queue = new SpanQueue({
      clock,
      spansMax: settings.otelQueueMax,
      bytesMax: settings.otelQueueBytesMax,
      delayMs: settings.otelTraceDelayMs,
      send: (spans) => this.#export('traces', this.#sendSpans?.(spans)),
      onSent: (spans) => metrics.count('impresario_spans_exported_total', {}, spans),
      onDropped: (spans, reason) => metrics.count('impresario_spans_dropped_total', { reason }, spans),
    })
    this.#queue = queue
    const parts: SpansOptions = {
      clock,
      sampling: { sampler: settings.otelSampler, share: settings.otelSamplerShare },
      isOn: () => this.#otlp !== undefined,
      add: (span) => queue.add(span),
      newSpanId: () => randomBytes(SPAN_ID_BYTES).toString('hex'),
      within: (trace, spanId, code) => (this.#otlp === undefined ? code() : this.#otlp.within(trace, spanId, code)),
    }
    this.spans = new JobSpans(parts)
    this.calls = new CallSpans(parts)
  }

  async start(): Promise<void> {
    const { settings, log, metrics } = this.#options
    const [traces, figures] = [tracesUrl(settings), metricsUrl(settings)]
    if (traces === undefined && figures === undefined) return
    const otlp = await this.#load()
    if (otlp === undefined) return
    if (traces !== undefined) {
      this.#sendSpans = otlp.traces(this.#target(traces))
      for (const reason of ['queue_full', 'export_failed', 'stopped'] as const) {
        metrics.count('impresario_spans_dropped_total', { reason }, 0)
      }
      this.#queue?.start()
    }
    if (figures !== undefined) this.#startMetrics(otlp, figures)
    this.#otlp = otlp
    log.info('telemetry is on', { traces, metrics: figures })
  }

  /** Sends what is left, for a few seconds. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    const otlp = this.#otlp
    if (otlp === undefined) return
    const last = this.#sendMetrics?.() ?? Promise.resolve()
    const isDone = await within(STOP_MS, Promise.all([this.#queue?.stop(), last]))
    if (!isDone) this.#options.log.warn('the newest spans and figures did not reach the collector')
    this.#otlp = undefined
    await within(STOP_MS, otlp.close())
  }

  #startMetrics(otlp: Otlp, url: string): void {
    const { settings, clock, metrics } = this.#options
    const send = otlp.metrics(this.#target(url))
    this.#sendMetrics = () => {
      this.#exporting ??= this.#export(
        'metrics',
        send(metrics.families(), { since: this.#startedAt, now: clock.now() }),
      )
        .catch(() => undefined)
        .finally(() => {
          this.#exporting = undefined
        })
      return this.#exporting
    }
    this.#timer = setInterval(() => {
      void this.#sendMetrics?.()
    }, settings.otelMetricIntervalMs).unref()
  }

  /** Counts what becomes of it. The first failure is logged, those that follow only from time to time. */
  async #export(signal: 'traces' | 'metrics', sending: Promise<void> | undefined): Promise<void> {
    const { metrics, clock, log } = this.#options
    try {
      await sending
      metrics.count('impresario_telemetry_exports_total', { signal, status: 'ok' })
      this.#quietUntil = Number.NEGATIVE_INFINITY
    } catch (error) {
      metrics.count('impresario_telemetry_exports_total', { signal, status: 'error' })
      if (clock.now() >= this.#quietUntil) {
        this.#quietUntil = clock.now() + QUIET_MS
        log.warn('the collector does not take telemetry', { signal, ...errorFields(error) })
      }
      throw error
    }
  }

  async #load(): Promise<Otlp | undefined> {
    const { settings, log } = this.#options
    try {
      const attributes = {
        ...pairsIn(settings.otelResourceAttributes),
        'service.name': settings.otelServiceName,
        'service.version': VERSION,
        'service.instance.id': settings.instanceId,
      }
      return new Otlp(await loadOtlp(), attributes, VERSION)
    } catch (error) {
      const why = isImpresarioError(error, 'INVALID_CONFIGURATION') ? { error: error.message } : errorFields(error)
      log.error('telemetry stays off', why)
      return undefined
    }
  }

  #target(url: string): Target {
    const { otelHeaders, otelTimeoutMs } = this.#options.settings
    return { url, headers: pairsIn(otelHeaders), timeoutMs: otelTimeoutMs }
  }
}

function tracesUrl({ otelIsDisabled, otelEndpoint, otelTracesEndpoint }: TelemetrySettings): string | undefined {
  return otelIsDisabled ? undefined : urlOf(otelTracesEndpoint, otelEndpoint, 'v1/traces')
}

function metricsUrl({ otelIsDisabled, otelEndpoint, otelMetricsEndpoint }: TelemetrySettings): string | undefined {
  return otelIsDisabled ? undefined : urlOf(otelMetricsEndpoint, otelEndpoint, 'v1/metrics')
}

function urlOf(own: string, base: string, path: string): string | undefined {
  if (own !== '') return own
  return base === '' ? undefined : `${base.replace(/\/+$/, '')}/${path}`
}
