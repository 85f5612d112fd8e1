import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { onTestFinished } from 'vitest'

/** A span as OTLP has it in JSON. */
export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { readonly key: string; readonly value: OtlpValue }[]
  readonly status: { readonly code: number; readonly message?: string }
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
}

interface OtlpValue {
  readonly stringValue?: string
  readonly intValue?: number | string
  readonly doubleValue?: number
  readonly boolValue?: boolean
}

interface OtlpPoint {
  readonly asDouble?: number
  readonly asInt?: number | string
  readonly count?: number | string
  readonly bucketCounts?: readonly (number | string)[]
  readonly explicitBounds?: readonly number[]
  readonly attributes: OtlpSpan['attributes']
}

export interface OtlpMetric {
  readonly name: string
  readonly sum?: { readonly dataPoints: readonly OtlpPoint[]; readonly isMonotonic: boolean }
  readonly gauge?: { readonly dataPoints: readonly OtlpPoint[] }
  readonly histogram?: { readonly dataPoints: readonly OtlpPoint[] }
}

/** A line of a log as OTLP has it in JSON. */
export interface OtlpLogRecord {
  readonly timeUnixNano: string
  readonly severityNumber: number
  readonly severityText: string
  readonly body: OtlpValue
  readonly attributes: OtlpSpan['attributes']
  readonly traceId?: string
  readonly spanId?: string
}

interface Body {
  readonly resourceLogs?: readonly {
    readonly resource: { readonly attributes: OtlpSpan['attributes'] }
    readonly scopeLogs: readonly { readonly logRecords: readonly OtlpLogRecord[] }[]
  }[]
  readonly resourceSpans?: readonly {
    readonly resource: { readonly attributes: OtlpSpan['attributes'] }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
  readonly resourceMetrics?: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly OtlpMetric[] }[]
  }[]
}

/** Takes OTLP over HTTP, as a collector does, and keeps what it got. */
export class Collector {
  readonly spans: OtlpSpan[] = []
  readonly metrics: OtlpMetric[] = []
  readonly records: OtlpLogRecord[] = []
  readonly resources: Readonly<Record<string, unknown>>[] = []
  readonly requests: { readonly url: string; readonly headers: IncomingMessage['headers'] }[] = []
  /** What it answers. */
  status = 200
  /** Paths that it does not know. */
  readonly unknown = new Set<string>()
  url = ''
  readonly #server = createServer((request, reply) => {
    void this.#take(request).then(() => {
      reply
        .writeHead(this.unknown.has(request.url ?? '') ? 404 : this.status, { 'content-type': 'application/json' })
        .end('{}')
      this.#server.emit('taken')
    })
  })

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    onTestFinished(() => {
      this.#server.closeAllConnections()
      this.#server.close()
    })
    return this
  }

  /** Resolves once it has what is looked for. */
  async until<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      await once(this.#server, 'taken')
    }
  }

  named(name: string): readonly OtlpSpan[] {
    return this.spans.filter((span) => span.name === name)
  }

  /** Lines of the log with this message. */
  lines(message: string): readonly OtlpLogRecord[] {
    return this.records.filter(({ body }) => body.stringValue === message)
  }

  async #take(request: IncomingMessage): Promise<void> {
    this.requests.push({ url: request.url ?? '', headers: request.headers })
    const bytes = await buffer(request)
    const text = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
    if (this.status !== 200) return
    const body = JSON.parse(text.toString()) as Body
    for (const { resource, scopeSpans } of body.resourceSpans ?? []) {
      this.resources.push(attributesIn(resource.attributes))
      this.spans.push(...scopeSpans.flatMap(({ spans }) => spans))
    }
    for (const { resource, scopeLogs } of body.resourceLogs ?? []) {
      this.resources.push(attributesIn(resource.attributes))
      this.records.push(...scopeLogs.flatMap(({ logRecords }) => logRecords))
    }
    for (const { scopeMetrics } of body.resourceMetrics ?? []) {
      this.metrics.push(...scopeMetrics.flatMap(({ metrics }) => metrics))
    }
  }
}

export function attributesIn(attributes: OtlpSpan['attributes']): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? value.doubleValue ?? Number(value.intValue),
    ]),
  )
}
