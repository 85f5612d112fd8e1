/** The job that a value was measured at. */
export interface JobOfValue {
  readonly id: string
  readonly tracing?: Readonly<Record<string, string>> | undefined
}

/** One value of a bucket, by which a person gets from a figure to the job behind it. */
export interface Example {
  readonly job: JobOfValue
  readonly value: number
  /** By the clock on the wall. */
  readonly at: number
}

/** The content type of OpenMetrics text. */
export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** The names and values of the labels of an example together, by the format. */
const EXAMPLE_CHARS_MAX = 128
const TRACE_ID = /^[\da-f]{2}-([\da-f]{32})-/
/** Ids that clients choose may have any sign. */
const PLAIN_ID = /^[\w.:/-]+$/

/** Whether a scraper asks for OpenMetrics: Prometheus lists it before the plain text. */
export function asksForOpenMetrics(accept: string | undefined): boolean {
  return accept !== undefined && accept.includes('application/openmetrics-text')
}

/** What follows the number of a bucket: the job and, if it has one, its trace. */
export function exampleText(example: Example | undefined): string {
  if (example === undefined) return ''
  const { job, value, at } = example
  const traceId = TRACE_ID.exec(job.tracing?.['traceparent'] ?? '')?.[1]
  const jobChars = 'job_id'.length + job.id.length
  const traceChars = traceId === undefined ? 0 : 'trace_id'.length + traceId.length
  if (!PLAIN_ID.test(job.id) || jobChars > EXAMPLE_CHARS_MAX) return ''
  const hasTrace = traceId !== undefined && jobChars + traceChars <= EXAMPLE_CHARS_MAX
  const labels = `job_id="${job.id}"${hasTrace ? `,trace_id="${traceId}"` : ''}`
  return ` # {${labels}} ${value} ${(at / 1_000).toFixed(3)}`
}

/** In OpenMetrics the name of a counter has no `_total`; its samples have. A counter whose samples have none is of unknown type. */
export function openHeads(text: string): string {
  const counters = new Set<string>()
  for (const [, name = ''] of text.matchAll(/^# TYPE (\S+) counter$/gm)) counters.add(name)
  return text.replaceAll(/^# (HELP|TYPE) (\S+) (.*)$/gm, (line, what: string, name: string, rest: string) => {
    if (!counters.has(name)) return line
    if (name.endsWith('_total')) return `# ${what} ${name.slice(0, -'_total'.length)} ${rest}`
    return what === 'TYPE' ? `# TYPE ${name} unknown` : line
  })
}
