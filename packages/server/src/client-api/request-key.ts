import type { ClientKey } from '@impresario/engine'
import { HEADERS } from '@impresario/protocol'
import type { FastifyRequest } from 'fastify'
import { callerOf } from '../http/access.ts'

/** The idempotency key that a caller gave to its request, in a header. */
export function keyOf(request: FastifyRequest): ClientKey | undefined {
  const { [HEADERS.idempotencyKey]: key } = request.headers
  return typeof key === 'string' ? { clientId: callerOf(request).client.id, key } : undefined
}
