import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ImpresarioError } from '@impresario/protocol'
import { route } from '../http/route.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { asksForOpenMetrics, OPEN_METRICS_TYPE } from '../metrics/open-metrics.ts'
import { sameSecret } from '../runtime/secret.ts'

export interface MetricsRoutesOptions {
  readonly metrics: Metrics
  /** Who asks must send it as a bearer token; empty: anybody may ask. */
  readonly metricsToken: string
}

const TYPE = 'text/plain; version=0.0.4; charset=utf-8'

function description(id: string) {
  return route({
    access: 'public',
    tag: 'server',
    id,
    summary: 'The figures of this process, for Prometheus',
    description:
      'In the text format of Prometheus, or as OpenMetrics if the request accepts `application/openmetrics-text`; then buckets of durations name a job as their example. With `METRICS_TOKEN` set, the request needs it as `Authorization: Bearer`.',
    replies: { 200: { description: 'All metrics.', types: ['text/plain', 'application/openmetrics-text'] } },
    refusals: ['UNAUTHENTICATED'],
  })
}

export function registerMetricsRoutes(app: FastifyInstance, options: MetricsRoutesOptions): void {
  const { metrics, metricsToken } = options
  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<string> => {
    const given = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
    if (metricsToken !== '' && !sameSecret(given, metricsToken)) {
      throw new ImpresarioError('UNAUTHENTICATED', 'Metrics need the token of METRICS_TOKEN.')
    }
    const isOpen = asksForOpenMetrics(request.headers.accept)
    void reply.header('content-type', isOpen ? OPEN_METRICS_TYPE : TYPE).header('cache-control', 'no-store')
    void reply.header('vary', 'accept')
    return isOpen ? metrics.openText() : metrics.text()
  }
  app.get('/_public/metrics', description('getMetrics'), answer)
  app.get('/metrics', description('getMetricsAtRoot'), answer)
}
