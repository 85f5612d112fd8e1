import type { ConfigKey } from './config-keys.ts'

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

export type SamplerName = (typeof SAMPLERS)[number]

/** Settings of traces, metrics and logs over OTLP, under the names that OpenTelemetry gives them. */
export interface TelemetrySettings {
  readonly otelEndpoint: string
  readonly otelTracesEndpoint: string
  readonly otelMetricsEndpoint: string
  readonly otelLogsEndpoint: string
  readonly otelHeaders: string
  readonly otelTimeoutMs: number
  readonly otelServiceName: string
  readonly otelResourceAttributes: string
  readonly otelSampler: SamplerName
  readonly otelSamplerShare: number
  readonly tracesPerSecond: number
  readonly otelQueueMax: number
  readonly otelQueueBytesMax: number
  readonly otelTraceDelayMs: number
  readonly otelMetricIntervalMs: number
  readonly otelLogQueueMax: number
  readonly otelLogQueueBytesMax: number
  readonly otelLogDelayMs: number
  readonly otelIsDisabled: boolean
}

export const TELEMETRY_KEYS: Readonly<Record<keyof TelemetrySettings, ConfigKey>> = {
  otelEndpoint: {
    names: ['OTEL_EXPORTER_OTLP_ENDPOINT'],
    type: 'text',
    check: addressProblem,
    default: '',
    description:
      'Address of an OpenTelemetry collector that takes OTLP over HTTP, such as http://localhost:4318. Traces go to /v1/traces ' +
      'below it, metrics to /v1/metrics, the log to /v1/logs. Empty: nothing is sent. Needs the packages @opentelemetry/api and ' +
      '@opentelemetry/otlp-exporter-base, and for metrics also @opentelemetry/exporter-metrics-otlp-http and ' +
      '@opentelemetry/resources.',
  },
  otelTracesEndpoint: {
    names: ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'],
    type: 'text',
    check: addressProblem,
    default: '',
    description: 'Full URL for traces only, such as http://localhost:4318/v1/traces.',
  },
  otelMetricsEndpoint: {
    names: ['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'],
    type: 'text',
    check: addressProblem,
    default: '',
    description: 'Full URL for metrics only, such as http://localhost:4318/v1/metrics.',
  },
  otelLogsEndpoint: {
    names: ['OTEL_EXPORTER_OTLP_LOGS_ENDPOINT'],
    type: 'text',
    check: addressProblem,
    default: '',
    description: 'Full URL for the log only, such as http://localhost:4318/v1/logs.',
  },
  otelHeaders: {
    names: ['OTEL_EXPORTER_OTLP_HEADERS'],
    type: 'secret',
    check: pairsProblem,
    default: '',
    description: 'Headers of requests to the collector: name=value, separated by commas, values percent-encoded.',
  },
  otelTimeoutMs: {
    names: ['OTEL_EXPORTER_OTLP_TIMEOUT'],
    type: 'integer',
    min: 1,
    max: 600_000,
    default: 10_000,
    description: 'Time limit of one export including retries, in milliseconds.',
  },
  otelServiceName: {
    names: ['OTEL_SERVICE_NAME'],
    type: 'text',
    check: nameProblem,
    default: 'impresario',
    description: 'Name of this service in traces, metrics and logs.',
  },
  otelResourceAttributes: {
    names: ['OTEL_RESOURCE_ATTRIBUTES'],
    type: 'text',
    check: pairsProblem,
    default: '',
    description:
      'Additional resource attributes of this service: name=value, separated by commas, values percent-encoded.',
  },
  otelSampler: {
    names: ['OTEL_TRACES_SAMPLER'],
    type: 'choice',
    of: SAMPLERS,
    default: 'parentbased_always_on',
    description:
      'Which traces are recorded. With parentbased_…, the trace context of the caller decides, if the job was started with one.',
  },
  otelSamplerShare: {
    names: ['OTEL_TRACES_SAMPLER_ARG'],
    type: 'number',
    min: 0,
    max: 1,
    default: 1,
    description: 'Share of traces that the …traceidratio samplers record, from 0 to 1.',
  },
  tracesPerSecond: {
    names: ['TRACES_PER_SECOND'],
    type: 'integer',
    min: 0,
    max: 1_000_000,
    default: 100,
    description:
      'Traces that may begin on this instance in a second, with the default sampler. Jobs beyond it run without a trace, unless their caller has begun one. 0 means any number.',
  },
  otelQueueMax: {
    names: ['OTEL_BSP_MAX_QUEUE_SIZE'],
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 8_192,
    description: 'Maximum number of spans that wait for the collector. Further spans are dropped and counted.',
  },
  otelQueueBytesMax: {
    names: ['TRACE_QUEUE_BYTES_MAX'],
    type: 'integer',
    min: 1_024,
    max: 1_073_741_824,
    default: 16_777_216,
    description: 'Maximum memory of the spans that wait for the collector, in bytes.',
  },
  otelTraceDelayMs: {
    names: ['OTEL_BSP_SCHEDULE_DELAY'],
    type: 'integer',
    min: 1,
    max: 3_600_000,
    default: 5_000,
    description: 'Maximum time between the end of a span and its export, in milliseconds.',
  },
  otelMetricIntervalMs: {
    names: ['OTEL_METRIC_EXPORT_INTERVAL'],
    type: 'integer',
    min: 100,
    max: 3_600_000,
    default: 60_000,
    description: 'How often metrics are sent, in milliseconds.',
  },
  otelLogQueueMax: {
    names: ['OTEL_BLRP_MAX_QUEUE_SIZE'],
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 8_192,
    description:
      'Maximum number of lines of the log that wait for the collector. Further lines are not sent, and counted.',
  },
  otelLogQueueBytesMax: {
    names: ['LOG_QUEUE_BYTES_MAX'],
    type: 'integer',
    min: 1_024,
    max: 1_073_741_824,
    default: 8_388_608,
    description: 'Maximum memory of the lines of the log that wait for the collector, in bytes.',
  },
  otelLogDelayMs: {
    names: ['OTEL_BLRP_SCHEDULE_DELAY'],
    type: 'integer',
    min: 1,
    max: 3_600_000,
    default: 1_000,
    description: 'Maximum time between a line of the log and its export, in milliseconds.',
  },
  otelIsDisabled: {
    names: ['OTEL_SDK_DISABLED'],
    type: 'switch',
    default: false,
    description: 'Send no traces, metrics and logs, regardless of the other settings.',
  },
}

/** The pairs of a list such as `a=1,b=2`. Values are percent-encoded, as in W3C Baggage. */
export function pairsIn(text: string): Readonly<Record<string, string>> {
  const pairs: Record<string, string> = {}
  for (const part of text.split(',')) {
    const [name = '', ...rest] = part.split('=')
    if (name.trim() !== '') pairs[name.trim()] = decodeURIComponent(rest.join('=').trim())
  }
  return pairs
}

function pairsProblem(text: string): string | undefined {
  const problem = 'must be pairs of name=value, separated by commas, with values that are percent-encoded.'
  const parts = text.split(',').filter((part) => part.trim() !== '')
  if (!parts.every((part) => /^\s*[\w!#$%&'*+.^`|~-]+\s*=[\u0020-\u007E]*$/.test(part))) return problem
  try {
    pairsIn(text)
    return undefined
  } catch {
    return problem
  }
}

function addressProblem(text: string): string | undefined {
  if (text === '') return undefined
  const problem = 'must be an address that begins with http:// or https://, without a user.'
  if (!URL.canParse(text)) return problem
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === '' ? undefined : problem
}

function nameProblem(text: string): string | undefined {
  return /^[\u0020-\u007E]{1,255}$/.test(text) ? undefined : 'must be 1 to 255 printable ASCII characters.'
}
