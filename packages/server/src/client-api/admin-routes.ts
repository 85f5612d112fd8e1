import type { FastifyInstance } from 'fastify'
import type { Log } from '@impresario/core'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { z } from 'zod'
import { route } from '../http/route.ts'
import { isLeveled, LOG_LEVELS } from '../runtime/log.ts'
import type { LogLevel } from '../runtime/log.ts'

/** The outcome of a reload of the files of clients, workers and schedules. */
type ReloadOutcome =
  | { readonly status: 'reloaded'; readonly clients: number; readonly workers: number; readonly schedules: number }
  | { readonly status: 'refused'; readonly error: string }

/** Whom a reload reaches: all that share the storage, each with the files of its own machine; or only who was asked. */
export type ReloadScope = 'all_instances' | 'this_instance'

export interface AdminRoutesOptions {
  readonly log: Log
  readonly reload: () => Promise<ReloadOutcome>
  /** Gives their number. */
  readonly reloadSchedules: () => Promise<number>
  readonly announceReload: () => Promise<ReloadScope>
}

const ROUTES = [
  ['/admin/reload', 'reload', 'Reload the files of clients, workers and schedules', 'configs_reloaded'],
  ['/admin/reload-workers', 'reloadWorkers', 'The same, under its old name', 'worker_configs_reloaded'],
  ['/admin/reload-clients', 'reloadClients', 'The same, under its old name', 'client_configs_reloaded'],
] as const

const SCOPE =
  'The other instances on the same storage read the files of their own machines within five seconds; what is wrong there is in their logs. `scope` is then `all_instances`.'

const RELOAD_SCHEDULES = route({
  access: 'admin',
  scope: 'admin',
  tag: 'server',
  id: 'reloadSchedules',
  summary: 'Reload the file of schedules',
  description: `Whole or not at all: when something in it cannot work, what was in force before still is. ${SCOPE}`,
  replies: { 200: { description: 'What is in force now.', body: schemas.statusBody } },
  refusals: ['INVALID_REQUEST'],
})

export const logLevelRequest = z.strictObject({
  level: z.enum(LOG_LEVELS).describe('From this level on, lines are written. `silent`: none.'),
})

const LOG_LEVEL = route({
  access: 'admin',
  scope: 'admin',
  tag: 'server',
  id: 'setLogLevel',
  summary: 'Change the level of the log',
  description:
    'Until the next start, and only of the instance that gets the request. The level at the start is `LOG_LEVEL`.',
  body: logLevelRequest,
  replies: { 200: { description: 'The level before and now.', body: schemas.logLevelBody } },
  refusals: ['INVALID_REQUEST'],
})

/** The same over HTTP and in the process. */
export function setLogLevel(log: Log, level: LogLevel): { readonly level: LogLevel; readonly before: LogLevel } {
  if (!isLeveled(log)) {
    throw new ImpresarioError(
      'INVALID_REQUEST',
      'The program that runs this server has a log of its own: change it there.',
    )
  }
  const { level: before } = log
  log.setLevel(level)
  return { level, before }
}

/** Changes of the running server. */
export function registerAdminRoutes(app: FastifyInstance, options: AdminRoutesOptions): void {
  const { reload, reloadSchedules, announceReload, log } = options
  app.put<{ Body: z.output<typeof logLevelRequest> }>('/admin/log-level', LOG_LEVEL, async ({ body }) =>
    setLogLevel(log, body.level),
  )
  for (const [path, id, summary, status] of ROUTES) {
    const declared = route({
      access: 'admin',
      scope: 'admin',
      tag: 'server',
      id,
      summary,
      description: `All files, whole or not at all: when one of them is wrong, what was in force before still is. Removed tokens stop working with the next request. ${SCOPE}`,
      replies: { 200: { description: 'What is in force now.', body: schemas.statusBody } },
      refusals: ['INVALID_REQUEST'],
    })
    app.post(path, declared, async () => {
      const outcome = await reload()
      if (outcome.status === 'refused') {
        throw new ImpresarioError('INVALID_REQUEST', `Nothing was reloaded: ${outcome.error}`)
      }
      const { clients, workers, schedules } = outcome
      return { status, clients, workers, schedules, scope: await announceReload() }
    })
  }

  app.post('/admin/reload-schedules', RELOAD_SCHEDULES, async () => {
    try {
      const schedules = await reloadSchedules()
      return { status: 'schedules_reloaded', schedules, scope: await announceReload() }
    } catch (error) {
      if (!isImpresarioError(error, 'INVALID_CONFIGURATION')) throw error
      throw new ImpresarioError('INVALID_REQUEST', `Nothing was reloaded: ${error.message}`)
    }
  })
}
