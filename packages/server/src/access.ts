import type { ClientInfo } from '@impresario/core'

/**
 * What a client's token lets it do. `viewer` reads its own jobs; `client` also starts and commands them; `admin` sees and
 * commands everybody's, and may change the running server.
 */
export const CLIENT_ROLES = ['viewer', 'client', 'admin'] as const
export type ClientRole = (typeof CLIENT_ROLES)[number]

/** Who may call a route: anybody, workers, or clients from this role upwards. */
export type Access = 'public' | 'worker' | ClientRole

/** Which rate limit counts a route. */
export type RateKind = 'general' | 'heartbeat' | 'poll'

/** Whoever makes a request with a client's token. */
export interface Caller {
  readonly client: ClientInfo
  readonly role: ClientRole
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body is read, for every route that clients may call. */
    caller: Caller | undefined
  }
  interface FastifyContextConfig {
    /** Every route names it; registration refuses one that does not. */
    readonly access?: Access
    /** `general` where it is not named. */
    readonly rate?: RateKind
  }
}

/** Whether somebody of role `has` may do what `needs` asks for. */
export function isAllowed(has: ClientRole, needs: ClientRole): boolean {
  return CLIENT_ROLES.indexOf(has) >= CLIENT_ROLES.indexOf(needs)
}
