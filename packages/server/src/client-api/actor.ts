import type { FastifyRequest } from 'fastify'
import type { Actor } from '@impresario/automations'
import { callerOf, isAdmin } from '../http/access.ts'
import type { Caller } from '../http/access.ts'

/** Who calls, as automations know it. */
export function actorOf(request: FastifyRequest): Actor {
  return actorFor(callerOf(request))
}

export function actorFor(caller: Caller): Actor {
  const { client, scopes, onBehalfOf } = caller
  return {
    id: client.id,
    isAdmin: isAdmin(caller),
    ...(scopes === undefined ? {} : { scopes }),
    ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
  }
}
