import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { ClientInfo } from '@impresario/core'
import { hasScope, ImpresarioError } from '@impresario/protocol'
import type { Scope } from '@impresario/protocol'

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

/** What an agent's token must have for a route. `any`: every valid token will do. */
export type RouteScope = Scope | 'any'

/** Which rate limit counts a route. */
export type RateKind = 'general' | 'heartbeat' | 'poll'

/** The sender of a request with a client's token. */
export interface Caller {
  readonly client: ClientInfo
  readonly role: ClientRole
  /** Jobs that it may start in a month; without it, as many as it likes. */
  readonly monthlyAttempts?: number
  /** What an agent may do. Absent for clients of the configuration, for whom the role says everything. */
  readonly scopes?: readonly Scope[]
  /** The person for whom an agent acts. */
  readonly onBehalfOf?: string
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
    /** Every route that clients may call names it too. */
    readonly scope?: RouteScope
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
  readonly scope: RouteScope | undefined
  /** The same route is described under another path. */
  readonly isAlias: boolean
  /** Not in the API document. */
  readonly isHidden: boolean
}

export interface Gate {
  /** The caller; refuses requests without valid credentials. */
  authenticate(headers: FastifyRequest['headers']): Caller | Promise<Caller>
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
  app.addHook('onRequest', (request, _reply, done) => {
    const { access, scope } = request.routeOptions.config
    if (access !== 'viewer' && access !== 'client' && access !== 'admin') {
      done()
      return
    }
    admit(gate, request, { role: access, scope }).then((caller) => {
      request.caller = caller
      done()
    }, done)
  })
  return () => routes.flatMap(rowsOf)
}

function rowsOf({ method, url, config, schema }: RouteOptions): readonly DeclaredRoute[] {
  const { access = 'public', scope, isAlias = false } = config ?? {}
  const isHidden = isHiddenSchema(schema)
  return [method].flat().map((one) => ({ method: one, url, access, scope, isAlias, isHidden }))
}

function isHiddenSchema(schema: RouteOptions['schema']): boolean {
  return schema !== undefined && 'hide' in schema && schema.hide
}

/** What a caller must have. */
interface Needs {
  readonly role: ClientRole
  readonly scope: RouteScope | undefined
}

/** Who calls, if the role is high enough and an agent has the scope. */
export async function admit(gate: Gate, { headers }: FastifyRequest, { role, scope }: Needs): Promise<Caller> {
  const caller = await gate.authenticate(headers)
  mustHaveScope(caller, scope ?? 'admin')
  if (isAllowed(caller.role, role)) return caller
  throw new ImpresarioError('FORBIDDEN', `This needs the role ${role}; the token has the role ${caller.role}.`)
}

/** Whether a caller may do what this scope is for. Clients of the configuration have no scopes, and may by their role. */
function hasRouteScope({ scopes }: Caller, needed: RouteScope): boolean {
  return scopes === undefined || needed === 'any' || hasScope(scopes, needed)
}

function mustHaveScope(caller: Caller, needed: RouteScope): void {
  if (hasRouteScope(caller, needed)) return
  const has = caller.scopes?.length === 0 ? 'none' : caller.scopes?.join(', ')
  throw new ImpresarioError('FORBIDDEN', `This needs the scope ${needed}; the token has ${has}.`)
}

function checkRoute({ method, url, config, schema }: RouteOptions): void {
  const isHidden = isHiddenSchema(schema)
  const missing = [
    ...(config?.access === undefined ? ['config.access'] : []),
    ...(needsScope(config?.access) && config?.scope === undefined ? ['config.scope'] : []),
    ...(isHidden || schema?.summary !== undefined ? [] : ['schema.summary']),
  ]
  if (missing.length === 0) return
  throw new Error(`The route ${[method].flat().join(', ')} ${url} has no ${missing.join(' and no ')}.`)
}

/** Routes that agents may reach say which scope they need. */
function needsScope(access: Access | undefined): boolean {
  return access !== undefined && access !== 'public' && access !== 'worker'
}

/** Clients of the client API know these words. */
export const MISSING_HEADER = 'Missing X-Client-Token header'

/** The same message for clients that send their token as bearer, and do not know that header. */
export function forBearers(message: string): string {
  return message === MISSING_HEADER
    ? 'The request has no token. Send it in the header "Authorization: Bearer <token>".'
    : message
}

/** Who calls. Only for routes that need a client. */
export function callerOf(request: FastifyRequest): Caller {
  const { caller } = request
  if (caller === undefined) throw new ImpresarioError('UNAUTHENTICATED', MISSING_HEADER)
  return caller
}
