import type { FastifyInstance } from 'fastify'
import type { Log } from '@impresario/core'
import { registerAgentRoutes } from './agent-routes.ts'
import type { AgentRoutesOptions } from './agent-routes.ts'
import { answerAsBefore } from './answer.ts'
import { registerEventRoutes } from './event-routes.ts'
import type { EventRoutesOptions } from './event-routes.ts'
import { registerRunRoutes } from './run-routes.ts'
import type { RunRoutesOptions } from './run-routes.ts'
import { registerSignInRoutes } from './sign-in-routes.ts'
import type { SignInRoutesOptions } from './sign-in-routes.ts'
import { registerSystemRoutes } from './system-routes.ts'
import type { SystemRoutesOptions } from './system-routes.ts'
import { registerTaskRoutes } from './task-routes.ts'
import type { TaskRoutesOptions } from './task-routes.ts'

export interface OldApiOptions
  extends
    AgentRoutesOptions,
    EventRoutesOptions,
    RunRoutesOptions,
    SignInRoutesOptions,
    SystemRoutesOptions,
    TaskRoutesOptions {
  readonly log: Log
}

/**
 * The interface of the old automation system, at the root as it was there: `/tasks`, `/runs`, `/events`, `/agents`. It
 * translates, and has no rules of its own: a task is an automation, a run is a job.
 */
export function registerOldApi(app: FastifyInstance, options: OldApiOptions): void {
  void app.register(async (scope) => {
    answerAsBefore(scope, options.log)
    registerTaskRoutes(scope, options)
    registerRunRoutes(scope, options)
    registerEventRoutes(scope, options)
    registerSignInRoutes(scope, options)
    registerAgentRoutes(scope, options)
    registerSystemRoutes(scope, options)
  })
}
