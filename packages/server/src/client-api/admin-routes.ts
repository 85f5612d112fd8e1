import type { FastifyInstance } from 'fastify'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { route } from '../http/route.ts'

/** What came of reading the files of clients, workers and schedules anew. */
type ReloadOutcome =
  | { readonly status: 'reloaded'; readonly clients: number; readonly workers: number; readonly schedules: number }
  | { readonly status: 'refused'; readonly error: string }

/** Whom a reload reaches: all that share the storage, each with the files of its own machine; or only who was asked. */
export type ReloadScope = 'all_instances' | 'this_instance'

export interface AdminRoutesOptions {
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
  tag: 'server',
  id: 'reloadSchedules',
  summary: 'Reload the file of schedules',
  description: `Whole or not at all: when something in it cannot work, what was in force before still is. ${SCOPE}`,
  replies: { 200: { description: 'What is in force now.', body: schemas.statusBody } },
  refusals: ['INVALID_REQUEST'],
})

/** Changes of the running server. */
export function registerAdminRoutes(app: FastifyInstance, options: AdminRoutesOptions): void {
  const { reload, reloadSchedules, announceReload } = options
  for (const [path, id, summary, status] of ROUTES) {
    const declared = route({
      access: 'admin',
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
