import type { JsonObject } from '@impresario/protocol'

/** Minutes since the beginning of a day, as the clock on the wall shows them. */
type MinuteOfDay = number

/** When a schedule fires. Days of the week go from 1 (Monday) to 7; `last` is the last day of any month. */
export type Trigger =
  | { readonly kind: 'interval'; readonly everyMs: number }
  | { readonly kind: 'daily'; readonly at: MinuteOfDay }
  | { readonly kind: 'weekly'; readonly days: readonly number[]; readonly at: MinuteOfDay }
  | { readonly kind: 'monthly'; readonly dates: readonly (number | 'last')[]; readonly at: MinuteOfDay }

/**
 * What becomes of firings that were not served in time, because no orchestrator was running: none of them (`skip`), the
 * newest alone (`run_once`), or each of them, oldest first (`catch_up`).
 */
export type Misfire = 'skip' | 'run_once' | 'catch_up'

/** A job that is started again and again. */
export interface Schedule {
  readonly name: string
  readonly blueprint: string
  readonly initialData: JsonObject
  readonly isEnabled: boolean
  readonly trigger: Trigger
  readonly timeZone: string
  readonly misfire: Misfire
  /** The most firings that `catch_up` makes good; older ones are skipped. */
  readonly catchUpMax: number
  /** Whose jobs they are. */
  readonly clientId: string
  readonly priority?: number | undefined
  readonly dispatchTimeoutMs?: number | undefined
  readonly resultTimeoutMs?: number | undefined
  readonly metadata?: JsonObject | undefined
  readonly webhookUrl?: string | undefined
}

/** The owner of the jobs of a schedule that names no client. */
export const SCHEDULER_CLIENT = 'scheduler'

export const CATCH_UP_DEFAULT = 10

/** Names what a record of firings belongs to. Changed hours make it another one; changed data do not. */
export function triggerKey({ trigger, timeZone }: Pick<Schedule, 'trigger' | 'timeZone'>): string {
  return trigger.kind === 'interval' ? `every ${trigger.everyMs} ms` : `${JSON.stringify(trigger)} in ${timeZone}`
}
