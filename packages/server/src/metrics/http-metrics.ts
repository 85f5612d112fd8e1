import type { FastifyInstance } from 'fastify'
import type { Metrics } from './metrics.ts'

/** Counts every answered request under its route: paths with ids in them would have no end. */
export function measureRequests(app: FastifyInstance, metrics: Metrics): void {
  app.decorateRequest('refusal', undefined)
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'none'
    const { statusCode } = reply
    const { method, refusal } = request
    metrics.count('impresario_http_requests_total', { method, route, status: String(statusCode) })
    metrics.observe('impresario_http_request_duration_seconds', { route }, reply.elapsedTime / 1_000)
    if (statusCode === 429) metrics.count('orchestrator_ratelimit_blocked_total', { path: route })
    if (statusCode === 401) metrics.count('orchestrator_security_auth_failures_total', {})
    if (refusal?.reason === 'replay') metrics.count('orchestrator_security_replay_detected_total', {})
    if (refusal?.reason === 'identity') metrics.count('orchestrator_security_identity_mismatch_total', {})
    done()
  })
}
