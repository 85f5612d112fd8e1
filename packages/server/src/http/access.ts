import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { ClientInfo } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'

/**
 * What a client's token lets it do. `viewer` reads its own jobs; `client` also starts and commands them; `admin` sees and
 * commands everybody's, and may change the running server.
 */
export const CLIENT_ROLES = ['viewer', 'client', 'admin'] as const
export type ClientRole = (typeof CLIENT_ROLES)[number]

/**
 * Who may call a route: everyone, workers, or clients from this role upwards. `capability`: clients, and holders of a
 * signed permission for this one thing, which the handler then checks.
 */
export type Access = 'public' | 'worker' | 'capability' | ClientRole

/** Which rate limit counts a route. */
export type RateKind = 'general' | 'heartbeat' | 'poll'

/** The sender of a request with a client's token. */
export interface Caller {
  readonly client: ClientInfo
  readonly role: ClientRole
  /** Jobs that it may start in a month; without it, as many as it likes. */
  readonly monthlyAttempts?: number
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body is read, for every route that clients may call. */
    caller: Caller | undefined
    /** A poll that brought at least one task. */
    hasBrought?: boolean
  }
  interface FastifyContextConfig {
    /** Every route names it; registration refuses one that does not. */
    readonly access?: Access
    /** `general` where it is not named. */
    readonly rate?: RateKind
  }
  /** As the plugin that makes the API document declares it, repeated for programs that load this file alone. */
  interface FastifySchema {
    hide?: boolean
    tags?: readonly string[]
    description?: string
    summary?: string
    security?: readonly { [scheme: string]: readonly string[] }[]
    operationId?: string
  }
}

/** Whether the role `has` includes the role `needs`. */
export function isAllowed(has: ClientRole, needs: ClientRole): boolean {
  return CLIENT_ROLES.indexOf(has) >= CLIENT_ROLES.indexOf(needs)
}

export function isAdmin({ role }: Caller): boolean {
  return isAllowed(role, 'admin')
}

/** A route as it was declared. */
export interface DeclaredRoute {
  readonly method: string
  /** With its parameters as `:name`. */
  readonly url: string
  readonly access: Access
  /** The same route is described under another path. */
  readonly isAlias: boolean
  /** Not in the API document. */
  readonly isHidden: boolean
}

export interface Gate {
  /** The caller; refuses requests without valid credentials. */
  authenticate(headers: FastifyRequest['headers']): Caller
}

/**
 * The one place where clients are let in: by what the route says, before the body is read. Workers are recognised where
 * their routes are. A route that does not say who may call it stops the start. Gives the table of all routes.
 */
export function guardRoutes(app: FastifyInstance, gate: Gate): () => readonly DeclaredRoute[] {
  app.decorateRequest('caller', undefined)
  const routes: RouteOptions[] = []
  app.addHook('onRoute', (route) => {
    routes.push(route)
  })
  app.addHook('onReady', async () => {
    for (const route of routes) checkRoute(route)
  })
  app.addHook('onRequest', async (request) => {
    const { access } = request.routeOptions.config
    if (access === 'viewer' || access === 'client' || access === 'admin') request.caller = admit(gate, request, access)
  })
  return () => routes.flatMap(rowsOf)
}

function rowsOf({ method, url, config, schema }: RouteOptions): readonly DeclaredRoute[] {
  const { access = 'public', isAlias = false } = config ?? {}
  return [method].flat().map((one) => ({ method: one, url, access, isAlias, isHidden: isHiddenSchema(schema) }))
}

function isHiddenSchema(schema: RouteOptions['schema']): boolean {
  return schema !== undefined && 'hide' in schema && schema.hide
}

/** Who calls, if the role is high enough. */
export function admit(gate: Gate, { headers }: FastifyRequest, needs: ClientRole): Caller {
  const caller = gate.authenticate(headers)
  if (isAllowed(caller.role, needs)) return caller
  throw new ImpresarioError('FORBIDDEN', `This needs the role ${needs}; the token has the role ${caller.role}.`)
}

function checkRoute({ method, url, config, schema }: RouteOptions): void {
  const isHidden = isHiddenSchema(schema)
  const missing = [
    ...(config?.access === undefined ? ['config.access'] : []),
    ...(isHidden || schema?.summary !== undefined ? [] : ['schema.summary']),
  ]
  if (missing.length === 0) return
  throw new Error(`The route ${[method].flat().join(', ')} ${url} has no ${missing.join(' and no ')}.`)
}

/** Who calls. Only for routes that need a client. */
export function callerOf(request: FastifyRequest): Caller {
  const { caller } = request
  if (caller === undefined) throw new ImpresarioError('UNAUTHENTICATED', 'Missing X-Client-Token header')
  return caller
}
