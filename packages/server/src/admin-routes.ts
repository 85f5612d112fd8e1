import type { FastifyInstance } from 'fastify'
import { ImpresarioError } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { contract } from './route-contract.ts'

/** What came of reading the files of clients and workers anew. */
type ReloadOutcome =
  | { readonly status: 'reloaded'; readonly clients: number; readonly workers: number }
  | { readonly status: 'refused'; readonly error: string }

export interface AdminRoutesOptions {
  readonly reload: () => ReloadOutcome | Promise<ReloadOutcome>
}

const ROUTES = [
  ['/admin/reload', 'reload', 'Read the files of clients and workers anew', 'configs_reloaded'],
  ['/admin/reload-workers', 'reloadWorkers', 'The same, under its old name', 'worker_configs_reloaded'],
  ['/admin/reload-clients', 'reloadClients', 'The same, under its old name', 'client_configs_reloaded'],
] as const

/** Changes of the running server. */
export function registerAdminRoutes(app: FastifyInstance, { reload }: AdminRoutesOptions): void {
  for (const [path, id, summary, status] of ROUTES) {
    const route = contract({
      access: 'admin',
      tag: 'server',
      id,
      summary,
      description:
        'Both files, whole or not at all: when one of them is wrong, what was in force before still is. Removed tokens stop working with the next request.',
      replies: { 200: { description: 'What is in force now.', body: schemas.statusBody } },
      refusals: ['INVALID_REQUEST'],
    })
    app.post(path, route, async () => {
      const outcome = await reload()
      if (outcome.status === 'refused') {
        throw new ImpresarioError('INVALID_REQUEST', `Nothing was reloaded: ${outcome.error}`)
      }
      return { status, clients: outcome.clients, workers: outcome.workers }
    })
  }
}
