import type { FastifyInstance } from 'fastify'
import { admit } from '../http/access.ts'
import { dashboard } from '../client-api/catalogue-operations.ts'
import type { CatalogueParts } from '../client-api/catalogue-operations.ts'
import { registerAppRoutes } from './app-routes.ts'
import { registerLinkRoute, registerSessionRoutes } from './session-routes.ts'
import type { Sessions } from './sessions.ts'

export interface DashboardOptions extends CatalogueParts {
  readonly sessions: Sessions
  readonly clientApiPrefix: string
  readonly publicUrl: string
}

/** The dashboard: its files, and the sessions of those who use it. What it shows comes from the client API. */
export function registerDashboard(app: FastifyInstance, options: DashboardOptions): void {
  const { sessions, clientApiPrefix } = options
  // Programs send no cookies, and pay nothing for this.
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    if (headers.cookie === undefined) done()
    else sessions.mustNotBeEnded(headers).then(() => done(), done)
  })
  void app.register(async (scope) => {
    registerSessionRoutes(scope, options)
    registerAppRoutes(scope, {
      clientApiPrefix,
      counts: async (request) =>
        dashboard(options, await admit(sessions, request, { role: 'viewer', scope: 'jobs:read' })),
    })
  })
  void app.register(async (scope) => registerLinkRoute(scope, options), { prefix: `/${clientApiPrefix}/v1` })
}
