import type { Clock, Job, Log, LogFields, TrailEntry } from '@impresario/core'
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
import { DROP_REASONS, ExportQueue } from './export-queue.ts'
import { LogFeed } from './log-feed.ts'
import { loadOtlp, Otlp } from './otlp.ts'
import type { SendMetrics, SendPieces, Signal, Target } from './otlp.ts'
import { recordJson, spanJson } from './otlp-json.ts'
import type { Sampling } from './trace-identity.ts'
import { randomSpanIds } from './random-ids.ts'
import { TraceRate } from './trace-rate.ts'
import { traceNames } from './trace-names.ts'
import type { TraceNames } from './trace-names.ts'
import { withoutEndSlashes } from '../runtime/end-slashes.ts'

export interface TelemetryOptions {
  readonly settings: TelemetrySettings & { readonly instanceId: string }
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** The lines that are to be sent. Nothing when none are asked for. */
  readonly feed?: LogFeed | undefined
}

/** Where the settings ask for the log to be sent: a feed, whose log is to be used instead of the one that is given. */
export function logFeed(settings: TelemetrySettings, log: Log, clock: Clock): LogFeed | undefined {
  return logsUrl(settings) === undefined ? undefined : new LogFeed(log, clock)
}

/** After a failure that was logged, the next ones are only counted for so long. */
const QUIET_MS = 300_000
/** A collector that is gone does not keep the process from stopping. */
const STOP_MS = 5_000

/**
 * Traces, metrics and the log on their way to a collector. Off unless an address is set, and then it costs nothing.
 *
 * `new` → `start` → *on* → `stop`. Where the optional packages are missing it stays off, and the log says so.
 */
export class Telemetry {
  /** Nothing when no traces are asked for. */
  readonly spans: JobSpans | undefined
  /** Requests and calls of tools; nothing when no traces are asked for. */
  readonly calls: CallSpans | undefined
  readonly #options: TelemetryOptions
  readonly #sampling: Sampling
  readonly #spanQueue: ExportQueue | undefined
  readonly #logQueue: ExportQueue | undefined
  readonly #startedAt: number
  #otlp: Otlp | undefined
  #sendSpans: SendPieces | undefined
  #sendRecords: SendPieces | undefined
  #timer: NodeJS.Timeout | undefined
  #sendMetrics: (() => Promise<void>) | undefined
  #exporting: Promise<void> | undefined
  #toldSkippedAt = Number.NEGATIVE_INFINITY
  /** By signal: a collector may take one and not another. */
  readonly #quietUntil = new Map<Signal, number>()

  constructor(options: TelemetryOptions) {
    this.#options = options
    const { settings, clock, feed } = options
    this.#startedAt = clock.now()
    this.#sampling = { sampler: settings.otelSampler, share: settings.otelSamplerShare }
    if (feed !== undefined) this.#logQueue = this.#newLogQueue()
    if (tracesUrl(settings) === undefined) return
    const queue = this.#newSpanQueue()
    this.#spanQueue = queue
    const parts: SpansOptions = {
      clock,
      sampling: this.#sampling,
      rate: this.#newRate(),
      isOn: () => this.#sendSpans !== undefined,
      add: (span) => queue.add(spanJson(span)),
      newSpanId: randomSpanIds(),
      hasLibraries: () => this.#otlp?.hasLibraries === true,
      within: (trace, spanId, code) => (this.#otlp === undefined ? code() : this.#otlp.within(trace, spanId, code)),
    }
    this.spans = new JobSpans(parts)
    this.calls = new CallSpans(parts)
  }

  /** The fields that lead from a line of the log to the trace of its job. `entry`: what happened to it. */
  namesOf(job: Job, entry?: Partial<TrailEntry>): TraceNames {
    return traceNames(job, this.#sendSpans === undefined ? undefined : this.#sampling, entry)
  }

  async start(): Promise<void> {
    const { settings, log } = this.#options
    const [traces, figures, logs] = [tracesUrl(settings), metricsUrl(settings), logsUrl(settings)]
    if (traces === undefined && figures === undefined && logs === undefined) return
    const otlp = await this.#load()
    if (otlp === undefined) {
      this.#options.feed?.detach()
      return
    }
    this.#otlp = otlp
    const on = {
      traces: await this.#turnOn('traces', traces, async (url) => this.#startTraces(otlp, url)),
      metrics: await this.#turnOn('metrics', figures, async (url) => this.#startMetrics(otlp, url)),
      logs: await this.#turnOn('logs', logs, async (url) => this.#startLogs(otlp, url)),
    }
    if (on.logs === undefined) this.#options.feed?.detach()
    if (Object.values(on).some((url) => url !== undefined)) log.info('telemetry is on', on)
  }

  /** Sends what is left, for a few seconds. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    const otlp = this.#otlp
    if (otlp === undefined) {
      this.#options.feed?.detach()
      return
    }
    const last = this.#sendMetrics?.() ?? Promise.resolve()
    const isDone = await within(STOP_MS, Promise.all([this.#spanQueue?.stop(), last]))
    if (!isDone) this.#options.log.warn('the newest spans and figures did not reach the collector')
    this.#options.feed?.detach()
    const areLinesSent = await within(STOP_MS, this.#logQueue?.stop() ?? Promise.resolve())
    if (!areLinesSent) this.#options.log.warn('the newest lines of the log did not reach the collector')
    this.#sendSpans = undefined
    this.#otlp = undefined
    await within(STOP_MS, otlp.close())
  }

  /** A signal whose package is missing stays off, and the others work. Returns the address if it is on. */
  async #turnOn(
    signal: Signal,
    url: string | undefined,
    start: (url: string) => Promise<void>,
  ): Promise<string | undefined> {
    if (url === undefined) return undefined
    try {
      await start(url)
      return url
    } catch (error) {
      this.#options.log.error('telemetry stays off', { signal, ...reasonOf(error) })
      return undefined
    }
  }

  async #startTraces(otlp: Otlp, url: string): Promise<void> {
    this.#sendSpans = await otlp.pieces('traces', this.#target(url))
    for (const reason of DROP_REASONS) this.#options.metrics.count('impresario_spans_dropped_total', { reason }, 0)
    this.#spanQueue?.start()
  }

  async #startLogs(otlp: Otlp, url: string): Promise<void> {
    const queue = this.#logQueue
    if (queue === undefined) return
    this.#sendRecords = await otlp.pieces('logs', this.#target(url))
    for (const reason of DROP_REASONS) this.#options.metrics.count('impresario_log_lines_dropped_total', { reason }, 0)
    queue.start()
    this.#options.feed?.attach((record) => queue.add(recordJson(record)))
  }

  /** The sampler of the default takes everything; with another one the settings say how much is taken. */
  #newRate(): TraceRate | undefined {
    const { settings, clock, metrics, log } = this.#options
    if (settings.otelSampler !== 'parentbased_always_on' || settings.tracesPerSecond === 0) return undefined
    return new TraceRate(clock, settings.tracesPerSecond, () => {
      metrics.count('impresario_traces_skipped_total', {})
      if (clock.now() < this.#toldSkippedAt + QUIET_MS) return
      this.#toldSkippedAt = clock.now()
      log.info('more traces begin than are recorded; TRACES_PER_SECOND sets how many', {
        traces_per_second: settings.tracesPerSecond,
      })
    })
  }

  #newSpanQueue(): ExportQueue {
    const { settings, clock, metrics } = this.#options
    return new ExportQueue({
      clock,
      itemsMax: settings.otelQueueMax,
      bytesMax: settings.otelQueueBytesMax,
      delayMs: settings.otelTraceDelayMs,
      send: (spans) => this.#export('traces', this.#sendSpans?.(spans)),
      onSent: (spans) => metrics.count('impresario_spans_exported_total', {}, spans),
      onDropped: (spans, reason) => metrics.count('impresario_spans_dropped_total', { reason }, spans),
    })
  }

  #newLogQueue(): ExportQueue {
    const { settings, clock, metrics } = this.#options
    return new ExportQueue({
      clock,
      itemsMax: settings.otelLogQueueMax,
      bytesMax: settings.otelLogQueueBytesMax,
      delayMs: settings.otelLogDelayMs,
      send: (records) => this.#export('logs', this.#sendRecords?.(records)),
      onSent: (records) => metrics.count('impresario_log_lines_exported_total', {}, records),
      onDropped: (records, reason) => metrics.count('impresario_log_lines_dropped_total', { reason }, records),
    })
  }

  async #startMetrics(otlp: Otlp, url: string): Promise<void> {
    const { settings, clock, metrics } = this.#options
    const send: SendMetrics = await otlp.metrics(this.#target(url))
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
  async #export(signal: Signal, sending: Promise<void> | undefined): Promise<void> {
    const { metrics, clock, log } = this.#options
    try {
      await sending
      metrics.count('impresario_telemetry_exports_total', { signal, status: 'ok' })
      this.#quietUntil.delete(signal)
    } catch (error) {
      metrics.count('impresario_telemetry_exports_total', { signal, status: 'error' })
      if (clock.now() >= (this.#quietUntil.get(signal) ?? 0)) {
        this.#quietUntil.set(signal, clock.now() + QUIET_MS)
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
      log.error('telemetry stays off', reasonOf(error))
      return undefined
    }
  }

  #target(url: string): Target {
    const { otelHeaders, otelTimeoutMs } = this.#options.settings
    return { url, headers: pairsIn(otelHeaders), timeoutMs: otelTimeoutMs }
  }
}

function reasonOf(error: unknown): LogFields {
  return isImpresarioError(error, 'INVALID_CONFIGURATION') ? { error: error.message } : errorFields(error)
}

function logsUrl({ otelIsDisabled, otelEndpoint, otelLogsEndpoint }: TelemetrySettings): string | undefined {
  return otelIsDisabled ? undefined : urlOf(otelLogsEndpoint, otelEndpoint, 'v1/logs')
}

function tracesUrl({ otelIsDisabled, otelEndpoint, otelTracesEndpoint }: TelemetrySettings): string | undefined {
  return otelIsDisabled ? undefined : urlOf(otelTracesEndpoint, otelEndpoint, 'v1/traces')
}

function metricsUrl({ otelIsDisabled, otelEndpoint, otelMetricsEndpoint }: TelemetrySettings): string | undefined {
  return otelIsDisabled ? undefined : urlOf(otelMetricsEndpoint, otelEndpoint, 'v1/metrics')
}

function urlOf(own: string, base: string, path: string): string | undefined {
  if (own !== '') return own
  return base === '' ? undefined : `${withoutEndSlashes(base)}/${path}`
}
