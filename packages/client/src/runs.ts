import type { DataObject } from '@impresario/protocol'
import { ask, askAll } from './asking.ts'
import { given } from './connection.ts'
import { timeText } from './events.ts'
import type { Listing, PageQuery } from './listing.ts'
import type { RequestTransport } from './request-transport.ts'
import type { Launched, ListedRun, Run, RunStatistics } from './views.ts'
import type * as wire from './wire-automations.ts'

export interface RunFilter {
  readonly automationId?: string | undefined
  readonly trigger?: wire.RunTriggerKind | undefined
  readonly owner?: string | undefined
}

export interface RunQuery extends RunFilter, PageQuery {
  readonly status?: wire.RunStatusName | undefined
  readonly createdAfter?: Date | string | number | undefined
  readonly createdBefore?: Date | string | number | undefined
}

export interface RerunOptions {
  /** The step to begin with; the outputs of the steps before it are kept. */
  readonly from?: string | undefined
  /** In place of single params. */
  readonly params?: DataObject | undefined
}

/** Runs of automations. Each is a job too. */
export class Runs {
  readonly #transport: RequestTransport

  constructor(transport: RequestTransport) {
    this.#transport = transport
  }

  /** Newest first, without their steps. */
  list({ cursor, createdAfter, createdBefore, automationId, ...query }: RunQuery = {}): Listing<ListedRun> {
    const wanted = {
      ...query,
      automation_id: automationId,
      created_after: timeText(createdAfter),
      created_before: timeText(createdBefore),
    }
    return askAll<wire.ListedRunBody>(this.#transport, ['runs'], wanted, cursor)
  }

  /** With every step. */
  get(id: string): Promise<Run> {
    return ask<wire.RunBody>(this.#transport, { method: 'GET', path: ['runs', id] })
  }

  /** Also one that waits for its place. One that has ended stays as it is. */
  async cancel(id: string, reason?: string): Promise<void> {
    const body = given({ reason })
    await this.#transport.ask({ method: 'POST', path: ['runs', id, 'cancel'], body, repeatable: true })
  }

  /** Once more, with its event and params and the pipeline that the automation has now. */
  rerun(id: string, options: RerunOptions = {}): Promise<Launched> {
    const body = given<unknown>({ ...options })
    return ask<wire.LaunchedBody>(this.#transport, { method: 'POST', path: ['runs', id, 'rerun'], body })
  }

  /** Of the last seven days, or of so many. */
  statistics({ automationId, ...filter }: RunFilter & { readonly days?: number } = {}): Promise<RunStatistics> {
    const query = given({ ...filter, automation_id: automationId })
    return ask<wire.RunStatisticsBody>(this.#transport, { method: 'GET', path: ['runs', 'statistics'], query })
  }
}
