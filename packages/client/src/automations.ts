import type { DataObject } from '@impresario/protocol'
import { ask, askAll } from './asking.ts'
import { given } from './connection.ts'
import type { Listing, PageQuery } from './listing.ts'
import type { RequestTransport } from './request-transport.ts'
import type { Automation, AutomationBudget, Launched, RunPreview, TimePreview } from './views.ts'
import type * as wire from './wire-automations.ts'
import { toWire } from './wire-case.ts'

/** An automation as it is written. Names may be in camelCase (`saveAs`) or as in files (`save_as`). */
export interface AutomationDefinition {
  /** By which files find it again, whatever its title becomes. */
  readonly key?: string
  readonly title: string
  readonly description?: string
  readonly timezone?: string
  readonly triggers?: readonly object[]
  readonly pipeline: readonly object[]
  readonly params?: DataObject
  /** 1 is the most important one; 5 without it. */
  readonly priority?: number
  readonly overlap?: 'queue' | 'skip' | 'restart' | 'parallel'
  /** Everything else that the guide of automations names. */
  readonly [field: string]: unknown
}

export interface AutomationQuery extends PageQuery {
  readonly status?: wire.AutomationStatusName | undefined
  /** Only those whose id or title contains this. */
  readonly search?: string | undefined
  readonly owner?: string | undefined
}

/** What a run would read. */
export interface PreviewRunOptions {
  /** In place of single params. */
  readonly params?: DataObject
  readonly event?: DataObject
  /** Supposed outputs of steps, by their names. */
  readonly steps?: DataObject
}

const PATH = 'automations'

/** Standing orders: what runs when. A client sees its own, an admin all. */
export class Automations {
  readonly #transport: RequestTransport

  constructor(transport: RequestTransport) {
    this.#transport = transport
  }

  /** Newest first. */
  list({ cursor, ...query }: AutomationQuery = {}): Listing<Automation> {
    return askAll<wire.AutomationBody>(this.#transport, [PATH], query, cursor)
  }

  /** Refused with every problem of the definition. */
  create(definition: AutomationDefinition): Promise<Automation> {
    return ask<wire.AutomationBody>(this.#transport, { method: 'POST', path: [PATH], body: wireDefinition(definition) })
  }

  get(id: string): Promise<Automation> {
    return ask<wire.AutomationBody>(this.#transport, { method: 'GET', path: [PATH, id] })
  }

  /**
   * Replaces the definition. Open runs keep the pipeline that they began with. With the revision that was read, a change that
   * another author made meanwhile is not overwritten: the error has the code `STALE_REVISION`.
   */
  update(
    id: string,
    definition: AutomationDefinition,
    { revision }: { readonly revision?: number } = {},
  ): Promise<Automation> {
    const [body, query] = [wireDefinition(definition), given({ revision })]
    return ask<wire.AutomationBody>(this.#transport, { method: 'PUT', path: [PATH, id], query, body, repeatable: true })
  }

  /** Only one that has no open runs. */
  async delete(id: string): Promise<void> {
    await this.#transport.ask({ method: 'DELETE', path: [PATH, id] })
  }

  /** Runs it now, with these params in place of its own. */
  run(id: string, params?: DataObject): Promise<Launched> {
    const body = params === undefined ? {} : { params }
    return ask<wire.LaunchedBody>(this.#transport, { method: 'POST', path: [PATH, id, 'run'], body })
  }

  /** What it has used today, and what it may use. */
  budget(id: string): Promise<AutomationBudget> {
    return ask<wire.BudgetBody>(this.#transport, { method: 'GET', path: [PATH, id, 'budget'] })
  }

  /** Puts the next run off. Who did it and why is on record. */
  snooze(id: string, seconds: number, reason?: string): Promise<Automation> {
    return this.#command(id, 'snooze', given({ seconds, reason }), false)
  }

  pause(id: string): Promise<Automation> {
    return this.#command(id, 'pause', {}, true)
  }

  resume(id: string): Promise<Automation> {
    return this.#command(id, 'resume', {}, true)
  }

  /** For good. Runs that are open go on. */
  cancel(id: string, reason?: string): Promise<Automation> {
    return this.#command(id, 'cancel', given({ reason }), true)
  }

  /** When it runs next: an automation by its id, or a definition that is not kept. */
  preview(automation: string | AutomationDefinition, count?: number): Promise<TimePreview> {
    const query = given({ count })
    return ask<wire.PreviewBody>(
      this.#transport,
      typeof automation === 'string'
        ? { method: 'GET', path: [PATH, automation, 'preview'], query }
        : { method: 'POST', path: [PATH, 'preview'], query, body: wireDefinition(automation), repeatable: true },
    )
  }

  /** What a run would do: templates filled in, conditions evaluated, no tool called. */
  previewRun(definition: AutomationDefinition, options: PreviewRunOptions = {}): Promise<RunPreview> {
    const body = { ...options, definition: wireDefinition(definition) }
    return ask<wire.PreviewRunBody>(this.#transport, {
      method: 'POST',
      path: [PATH, 'preview_run'],
      body,
      repeatable: true,
    })
  }

  #command(id: string, verb: string, body: object, repeatable: boolean): Promise<Automation> {
    return ask<wire.AutomationBody>(this.#transport, { method: 'POST', path: [PATH, id, verb], body, repeatable })
  }
}

/** What users wrote inside of `with` and `params` stays as it is. */
function wireDefinition(definition: AutomationDefinition): object {
  return toWire(definition) as object
}
