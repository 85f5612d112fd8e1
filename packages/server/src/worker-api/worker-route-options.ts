import type { FastifyContextConfig, FastifySchema } from 'fastify'
import { eventRequest, heartbeatRequest, registerRequest, taskBatchRequest } from '@impresario/protocol/schemas'
import { jsonSchema } from '../http/json-schema.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Messages of workers that sign are checked here; `event` leaves out what is added to an event on its way. */
    readonly signed?: 'message' | 'event'
    /** The call brings its own proof of who makes it. */
    readonly isProvenByBody?: boolean
  }
}

interface RouteOptions {
  readonly config: FastifyContextConfig
  readonly schema: FastifySchema
}

/** What the routes of the worker protocol do; what is said about them to readers stands in `worker-route-descriptions.ts`. */
function options(config: FastifyContextConfig, body?: object): RouteOptions {
  return { config: { access: 'worker', ...config }, schema: body === undefined ? {} : { body } }
}

const TOKEN_SCHEMA = {
  anyOf: [
    { type: 'null' },
    { type: 'object', properties: { refresh_token: { type: 'string', minLength: 1, maxLength: 512 } } },
  ],
}

export const ROUTES = {
  register: options({ rate: 'general', signed: 'message' }, jsonSchema(registerRequest)),
  heartbeat: options(
    { rate: 'heartbeat', signed: 'message' },
    { anyOf: [{ type: 'null' }, jsonSchema(heartbeatRequest)] },
  ),
  nextTask: options({ rate: 'poll' }),
  taskBatch: options({ rate: 'poll' }, jsonSchema(taskBatchRequest)),
  // Results are read by hand, because 500 of them come in one body.
  result: options({ rate: 'general', signed: 'message' }),
  results: options({ rate: 'general', signed: 'message' }),
  event: options({ rate: 'general', signed: 'event' }, jsonSchema(eventRequest)),
  token: options({ rate: 'general' }),
  refresh: options({ rate: 'general', isProvenByBody: true }, TOKEN_SCHEMA),
  revoke: options({ rate: 'general' }),
  socket: options({ rate: 'general' }),
} as const
