import { blueprint } from '@impresario/core'
import type { RunnableBlueprint } from '@impresario/core'
import { z } from 'zod'
import type { DocumentsConfig } from '../config/config.ts'
import { documentTasks as tasks } from './contract.ts'

export const BLUEPRINT_NAME = 'document'

/** The property of workers by which tasks find the process that they belong to. */
export const PLACE_PROPERTY = 'documents_instance'
/** A process that has read a file and does not take it up again in this time is gone: another one reads it. */
const PICKUP = '30s'

/** Only this process can do the task; any can without one. */
function at(instance: string | undefined): { readonly resourceRequirements?: { properties: Record<string, string> } } {
  return instance === undefined ? {} : { resourceRequirements: { properties: { [PLACE_PROPERTY]: instance } } }
}

/** What happens to one file: parse, then index or update; or delete. Durability, tries and history are the orchestrator's. */
export function documentBlueprint({ engine: { workers, retry } }: Pick<DocumentsConfig, 'engine'>): RunnableBlueprint {
  return blueprint(
    BLUEPRINT_NAME,
    {
      input: z.object({
        owner: z.string(),
        path: z.string(),
        change: z.enum(['present', 'gone']),
        priority: z.number().int().min(0).max(9),
        /** The process that alone has the index, where it is on one machine. */
        home: z.string().optional(),
      }),
      start: 'begin',
      taskAttemptsMax: retry.max_attempts,
      backoffMs: retry.initial_delay,
      backoffMsMax: retry.max_delay,
      backoffFactor: retry.backoff_factor,
      runTimeout: workers.timeout,
      retryTimeouts: true,
    },
    (state) => ({
      begin: state
        .when("context.initial_data.change == 'gone'", (_context, actions) => actions.transitionTo('delete'))
        .otherwise((_context, actions) => actions.transitionTo('parse')),
      parse: state.handler(({ initialData: { owner, path, priority, home } }, actions) =>
        actions.dispatchTask(tasks.parse, {
          params: { owner, path },
          priority,
          ...at(home),
          transitions: { success: 'index', known: 'update', unchanged: 'done', gone: 'delete', failure: 'unreadable' },
        }),
      ),
      index: state.handler(({ initialData: { owner, path, priority, home }, resultOf }, actions) =>
        actions.dispatchTask(tasks.index, {
          params: { owner, path },
          priority,
          ...at(home ?? resultOf(tasks.parse).by),
          // What was read is kept in memory only: after a crash the file is read again.
          ...(home === undefined ? { dispatchTimeout: PICKUP } : {}),
          transitions: { success: 'done', lost: 'parse', timeout: 'parse', failure: 'unreadable' },
        }),
      ),
      update: state.handler(({ initialData: { owner, path, priority, home }, resultOf }, actions) =>
        actions.dispatchTask(tasks.update, {
          params: { owner, path },
          priority,
          ...at(home ?? resultOf(tasks.parse, { status: 'known' }).by),
          ...(home === undefined ? { dispatchTimeout: PICKUP } : {}),
          transitions: { success: 'done', lost: 'parse', timeout: 'parse', failure: 'unreadable' },
        }),
      ),
      delete: state.handler(({ initialData: { owner, path, priority, home } }, actions) =>
        actions.dispatchTask(tasks.delete, {
          params: { owner, path },
          priority,
          ...at(home),
          transitions: { success: 'done', failure: 'unreadable' },
        }),
      ),
      done: state.end(),
      unreadable: state.end({ outcome: 'failed' }),
    }),
  )
}
