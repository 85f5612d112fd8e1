import type { Data, DataObject, Scope, Usage } from '@impresario/protocol'

/* What the server tells of automations, as it comes over the wire. Times are Unix seconds. */

export type AutomationStatusName = 'active' | 'paused' | 'canceled'
export type RunStatusName = 'running' | 'succeeded' | 'failed' | 'canceled' | 'quarantined'
export type RunTriggerKind = 'time' | 'event' | 'condition' | 'webhook' | 'manual' | 'rerun'

export interface AutomationBody {
  readonly id: string
  readonly owner: string
  readonly status: AutomationStatusName
  /** Counts the changes of its definition. */
  readonly revision: number
  readonly title: string
  /** As it was written. */
  readonly definition: DataObject
  /** Its triggers in words. */
  readonly when: readonly string[]
  readonly next_run_at: number | null
  /** The occurrence that this run stands for. */
  readonly next_run_for: number | null
  /** Who delayed the next run, and why. */
  readonly snoozed: {
    readonly until: number
    readonly by: string
    readonly reason: string | null
    readonly at: number
  } | null
  readonly created_at: number
  readonly created_by: string
  readonly updated_at: number
  readonly updated_by: string
  /** What is doubtful in it. Only in the answer to what wrote it, and only where there is something. */
  readonly warnings?: readonly string[]
}

/** What may be used on a day by UTC. Without a field there is no limit. */
interface BudgetLimits {
  readonly runs_per_day?: number
  readonly usd_per_day?: number
  readonly tokens_per_day?: number
  readonly gpu_seconds_per_day?: number
}

interface MeasureBody {
  readonly used: number
  readonly limit: number | null
}

interface BudgetStateBody {
  /** The day by UTC, as YYYY-MM-DD. */
  readonly period: string
  /** Counted under a limit only. */
  readonly runs: { readonly used: number | null; readonly limit: number | null }
  readonly usd: MeasureBody
  readonly tokens: MeasureBody
  readonly seconds: MeasureBody
}

/** What an automation has used today, and what it may use. */
export interface BudgetBody extends BudgetStateBody {
  /** The same for the agent that owns the automation, if it has a budget. */
  readonly agent: BudgetStateBody | null
}

/** When something runs next by the clock. */
export interface PreviewBody {
  readonly words: readonly string[]
  readonly firings: readonly { readonly at: number; readonly local: string; readonly notes: readonly string[] }[]
  readonly left_out: readonly { readonly at: number; readonly local: string; readonly reason: string }[]
  /** The series ends with the last of these firings. */
  readonly is_complete: boolean
  /** What is doubtful in the definition, where there is something. */
  readonly warnings?: readonly string[]
}

/** One step as it would run. */
export interface RehearsedStepBody {
  readonly id: string
  readonly kind: 'tool' | 'approval' | 'pipeline' | 'parallel'
  /** The tool. */
  readonly uses: string | null
  /** `holds` is null where the condition reads something that is not known before the run. */
  readonly condition: { readonly source: string; readonly values: DataObject; readonly holds: boolean | null } | null
  /** With templates filled in. What is not known stays as it is written. */
  readonly input: Data
  /** Items of its loop; the input is that of the first one. */
  readonly items: number | null
  /** Why something is not known. */
  readonly open: readonly string[]
  readonly steps: readonly RehearsedStepBody[]
}

/** What a run would do, without doing it. */
export interface PreviewRunBody {
  readonly steps: readonly RehearsedStepBody[]
}

/** What became of a wish to run. */
export interface LaunchedBody {
  readonly status: 'started' | 'waiting' | 'skipped'
  readonly run_id: string | null
  /** Why it was skipped. */
  readonly reason?: string
}

export interface ListedRunBody {
  readonly id: string
  readonly automation_id: string
  readonly title: string
  readonly owner: string
  /** `waiting`: it has not begun, because another run is open. Lists do not have it. */
  readonly status: RunStatusName | 'waiting'
  readonly trigger: {
    readonly kind: RunTriggerKind
    readonly scheduled_for?: number
    readonly event_id?: string
    readonly by?: string
    readonly rerun_of?: string
  }
  readonly attempt: number
  readonly output: Data
  readonly error: { readonly code: string; readonly message: string } | null
  readonly created_at: number
  readonly ended_at: number | null
}

export interface RunStepBody {
  readonly id: string
  readonly status: 'running' | 'succeeded' | 'failed' | 'skipped'
  readonly input: Data
  readonly condition: { readonly source: string; readonly values: DataObject; readonly holds: boolean } | null
  readonly output: Data
  readonly attempts: number
  /** ISO 8601. */
  readonly started_at: string
  readonly ended_at: string | null
  readonly error: { readonly code: string; readonly message: string } | null
}

export interface RunBody extends ListedRunBody {
  /** What its tasks have used, as their workers reported; with all parts and child jobs. */
  readonly usage: Usage
  readonly steps: readonly RunStepBody[]
  /** Attempts before this one. */
  readonly attempts: readonly {
    readonly attempt: number
    readonly error: { readonly code: string; readonly message: string }
    readonly steps: readonly RunStepBody[]
  }[]
}

export interface RunStatisticsBody {
  readonly since: number
  readonly until: number
  readonly total: number
  readonly by_status: Readonly<Record<RunStatusName, number>>
  readonly automations: number
  readonly success_rate: number | null
  readonly duration_seconds: { readonly mean: number; readonly p50: number; readonly p95: number } | null
  readonly last_run_at: number | null
  readonly last_success_at: number | null
  readonly last_failure_at: number | null
  /** There were more runs than were counted. */
  readonly is_partial: boolean
}

export interface PublishedEventBody {
  readonly id: string
  readonly topic: string
  readonly payload: Data
  readonly owner: string
  readonly published_at: number
  /** What automations made of it; null until all have heard it. */
  readonly runs:
    | readonly { readonly automation_id: string; readonly run_id: string | null; readonly outcome: string }[]
    | null
}

export interface AuditEntryBody {
  readonly id: string
  readonly at: number
  readonly actor: string
  /** The person for whom an agent did it. */
  readonly on_behalf_of: string | null
  readonly action: string
  readonly subject: string
  readonly owner: string
  readonly details: DataObject
}

export interface ToolBody {
  readonly name: string
  readonly description: string
  readonly kind: string
  readonly input_schema: DataObject
  readonly output_schema: DataObject
  readonly timeout_seconds: number
  readonly is_read_only: boolean
}

export interface AgentTokenBody {
  readonly id: string
  readonly name: string
  readonly created_at: number
  readonly created_by: string
  readonly expires_at: number | null
  readonly is_expired: boolean
  readonly on_behalf_of: string | null
}

export interface NewAgentTokenBody extends AgentTokenBody {
  /** The token itself. It is shown this once. */
  readonly token: string
}

export interface AgentBody {
  readonly id: string
  readonly name: string
  readonly description: string | null
  readonly scopes: readonly Scope[]
  readonly on_behalf_of: string | null
  /** What all its automations together may use in a day. */
  readonly budget: BudgetLimits | null
  readonly tokens: readonly AgentTokenBody[]
  readonly created_at: number
  readonly created_by: string
  readonly updated_at: number
  readonly updated_by: string
}
