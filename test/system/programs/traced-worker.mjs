/** A worker process that has set up OpenTelemetry for itself, as any program does. */
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { createWorker } from '@impresario/worker'

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
trace.setGlobalTracerProvider(
  new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: new OTLPTraceExporter() })] }),
)

const worker = createWorker({ heartbeatMs: 1_000 })
worker.task('double', async ({ value }) => {
  await Promise.resolve()
  trace.getTracer('own').startSpan('inside').end()
  return { value: value * 2 }
})
await worker.start()
console.log('ready')
