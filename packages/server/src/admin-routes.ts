import type { FastifyInstance } from 'fastify'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { contract } from './route-contract.ts'

/** What came of reading the files of clients, workers and schedules anew. */
type ReloadOutcome =
  | { readonly status: 'reloaded'; readonly clients: number; readonly workers: number; readonly schedules: number }
  | { readonly status: 'refused'; readonly error: string }

export interface AdminRoutesOptions {
  readonly reload: () => Promise<ReloadOutcome>
  /** Gives their number. */
  readonly reloadSchedules: () => Promise<number>
}

const ROUTES = [
  ['/admin/reload', 'reload', 'Read the files of clients, workers and schedules anew', 'configs_reloaded'],
  ['/admin/reload-workers', 'reloadWorkers', 'The same, under its old name', 'worker_configs_reloaded'],
  ['/admin/reload-clients', 'reloadClients', 'The same, under its old name', 'client_configs_reloaded'],
] as const

const RELOAD_SCHEDULES = contract({
  access: 'admin',
  tag: 'server',
  id: 'reloadSchedules',
  summary: 'Read the file of schedules anew',
  description: 'Whole or not at all: when something in it cannot work, what was in force before still is.',
  replies: { 200: { description: 'What is in force now.', body: schemas.statusBody } },
  refusals: ['INVALID_REQUEST'],
})

/** Changes of the running server. */
export function registerAdminRoutes(app: FastifyInstance, { reload, reloadSchedules }: AdminRoutesOptions): void {
  for (const [path, id, summary, status] of ROUTES) {
    const route = contract({
      access: 'admin',
      tag: 'server',
      id,
      summary,
      description:
        'All files, whole or not at all: when one of them is wrong, what was in force before still is. Removed tokens stop working with the next request.',
      replies: { 200: { description: 'What is in force now.', body: schemas.statusBody } },
      refusals: ['INVALID_REQUEST'],
    })
    app.post(path, route, async () => {
      const outcome = await reload()
      if (outcome.status === 'refused') {
        throw new ImpresarioError('INVALID_REQUEST', `Nothing was reloaded: ${outcome.error}`)
      }
      const { clients, workers, schedules } = outcome
      return { status, clients, workers, schedules }
    })
  }

  app.post('/admin/reload-schedules', RELOAD_SCHEDULES, async () => {
    try {
      return { status: 'schedules_reloaded', schedules: await reloadSchedules() }
    } catch (error) {
      if (!isImpresarioError(error, 'INVALID_CONFIGURATION')) throw error
      throw new ImpresarioError('INVALID_REQUEST', `Nothing was reloaded: ${error.message}`)
    }
  })
}
