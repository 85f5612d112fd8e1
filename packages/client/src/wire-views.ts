import type { Scope, Data, JobStatusName, Json, ScheduleBody, WireWait, WorkerStatusName } from '@impresario/protocol'

export type * from './wire-automations.ts'

/* What the server answers beside jobs, as it stands on the wire. Times are Unix seconds, spans are seconds. */

/** Whom a token belongs to, and how much it may. */
export interface AccountBody {
  readonly client_id: string
  readonly role: 'viewer' | 'client' | 'admin'
  readonly plan: string | null
  /** What an agent may do; `null` for clients, who go by their role. */
  readonly scopes: readonly Scope[] | null
  /** The person for whom an agent acts. */
  readonly on_behalf_of: string | null
  /** Jobs that may be started in a month; `null` without a limit. */
  readonly quota: {
    readonly period: string
    readonly limit: number
    readonly used: number
    readonly left: number
    /** ISO 8601. */
    readonly renews_at: string
  } | null
  readonly limits: {
    readonly body_bytes: number
    readonly batch_items: number
    readonly page_size: number
    readonly requests: { readonly limit: number; readonly period_seconds: number } | null
  }
}

/** What a server is: versions, storage, leads and limits. */
export interface SystemBody {
  readonly version: string
  readonly node_version: string
  readonly platform: string
  /** The instance that answered. */
  readonly instance_id: string
  readonly started_at: number
  readonly time_zone: string
  /** The version of the rules of time zones, such as `2025b`. */
  readonly time_zone_data: string | null
  readonly storage: {
    readonly kind: 'memory' | 'file' | 'redis' | 'postgres'
    readonly address: string
    readonly is_shared: boolean
    /**
     * `always`: what was acknowledged survives a power cut. `everysec`: up to two seconds of it may be lost with the machine.
     * `none`: a crash may lose it. `unknown`: the database server does not tell.
     */
    readonly promise: 'always' | 'everysec' | 'none' | 'unknown'
    /** Why a write that was acknowledged could be lost. */
    readonly doubts: readonly string[]
  }
  /** Those that work on the storage, the one that answered first. */
  readonly instances: readonly {
    readonly instance_id: string
    readonly version: string
    readonly started_at: number
    readonly status: 'running' | 'silent' | 'stopped'
    readonly is_this: boolean
    readonly leads: readonly string[]
    readonly last_seen_at: number
  }[]
  /** The processes of which one runs for all instances. */
  readonly leads: readonly {
    readonly process: string
    readonly led_by: 'this_instance' | 'another_instance' | 'nobody'
    readonly instance_id: string | null
  }[]
  readonly history: {
    readonly is_complete: boolean
    readonly is_away: boolean
    readonly waiting: number
    readonly dropped: number
  }
  readonly limits: {
    readonly body_bytes: number
    readonly batch_items: number
    readonly page_size: number
    readonly requests: { readonly limit: number; readonly period_seconds: number } | null
    readonly open_jobs: number
    readonly open_jobs_per_client: number
    readonly transitions_per_job: number
    readonly attempts: number
    /** `null`: for ever. */
    readonly job_retention_days: number | null
    readonly history_retention_days: number | null
    readonly idempotency_key_hours: number
    readonly worker_silence_seconds: number
  }
}

/** A client of the configuration, without its tokens. */
export interface ConfiguredClientBody {
  readonly client_id: string
  readonly role: 'viewer' | 'client' | 'admin'
  readonly plan: string | null
  readonly monthly_attempts: number | null
  /** How many it has. */
  readonly tokens: number
}

/** Tasks of one kind that wait. */
export interface QueueBody {
  /** `null` where they lie ready for one worker. */
  readonly task_type: string | null
  readonly requirements: Readonly<Record<string, unknown>> | null
  /** The worker that they were placed with; `null` while none fits. */
  readonly worker: string | null
  readonly waiting: number
  /** False: there may be more. */
  readonly is_exact: boolean
  /** How long the task has been waiting that comes next; `null` where none waits, and beyond the hundred longest queues. */
  readonly oldest_seconds: number | null
  /** Tasks of this type that were queued in the last minute; `null` for one worker. */
  readonly placed_per_minute: number | null
  /** Tasks of this type that workers took in the last minute; `null` for one worker. */
  readonly taken_per_minute: number | null
}

/** Why a worker gets tasks, or gets none. */
export interface WorkerExplanationBody {
  readonly worker_id: string
  readonly gets_tasks: boolean
  readonly reasons: readonly {
    readonly code: 'silent' | 'draining' | 'offline' | 'full' | 'reputation' | 'skills' | 'requirements' | 'no_tasks'
    readonly message: string
    /** What the message names. */
    readonly values: Readonly<Record<string, number | null>>
  }[]
  /** Tasks that wait for any worker; `null` for all but admins. */
  readonly waiting:
    | readonly {
        readonly task_type: string
        readonly waiting: number
        readonly is_exact: boolean
        readonly fits: boolean
        readonly reasons: readonly string[]
        /** The same as data. */
        readonly mismatches: readonly MismatchBody[]
      }[]
    | null
}

/** How many clients, workers and schedules are in force now. */
export interface ReloadedBody {
  readonly status: string
  readonly clients: number
  readonly workers: number
  readonly schedules: number
  /** Whom it reached: all instances on the storage, each with the files of its own machine, or the one that was asked. */
  readonly scope: 'all_instances' | 'this_instance'
}

/** Why the tasks of a job are where they are. */
export interface ExplanationBody {
  readonly job_id: string
  readonly status: JobStatusName
  readonly current_state: string
  /** The job that waits for this one. */
  readonly parent_job_id: string | null
  /** The jobs that it waits for. */
  readonly children: readonly ExplainedChildBody[]
  /** What it stands still for, in a sentence; null for a job that does not. */
  readonly summary: string | null
  /** The same as data. */
  readonly reasons: readonly ReasonBody[]
  /** While it waits for a moment. */
  readonly waits_for: WireWait | null
  readonly tasks: readonly ExplainedTaskBody[]
}

/** A sentence as data, for those who say it in another language. Other codes may come. */
export interface ReasonBody {
  readonly code: string
  readonly values: Readonly<Record<string, unknown>>
}

/** One thing that keeps a worker from a task. */
export interface MismatchBody {
  readonly reason: string
  /** Which software or property. */
  readonly name?: string | undefined
  readonly needed: unknown
  readonly has?: unknown
}

export interface ExplainedChildBody {
  readonly job_id: string
  readonly blueprint_name: string
  /** Null while it is being created, and beyond the first twenty. */
  readonly status: string | null
}

export interface ExplainedTaskBody {
  readonly task_id: string
  readonly type: string
  readonly where: 'waiting' | 'assigned' | 'running' | 'delayed' | 'ended'
  readonly worker: string | null
  /** Which try it is. */
  readonly attempt: number
  /** When the result must be there; null without a result timeout. */
  readonly deadline: number | null
  /** Why the try before failed. */
  readonly last_error: { readonly code: string; readonly message: string } | null
  readonly explanation: ChoiceBody | null
}

/** How a worker was chosen, or why there is none. */
export interface ChoiceBody {
  readonly strategy: string
  /** What the strategy looks at, the weightiest first. */
  readonly criteria: readonly string[]
  readonly chosen: string | null
  /** In a sentence. */
  readonly summary: string
  /** The same as data. */
  readonly reason: ReasonBody
  readonly live: number
  readonly skilled: number
  readonly candidates: number
  /** Workers that are live: what keeps each out, or how it scores. */
  readonly workers: readonly WorkerVerdictBody[]
  /** Workers that are counted above but not listed. */
  readonly omitted: number
}

export interface WorkerVerdictBody {
  readonly worker_id: string
  readonly verdict: 'candidate' | 'filtered'
  readonly place?: number
  readonly score?: {
    readonly warm: boolean
    readonly cost: number | null
    readonly reputation: number
    readonly load: number
  }
  readonly reasons?: readonly string[]
  /** The same as data. */
  readonly mismatches?: readonly MismatchBody[]
}

/** A worker that is live. */
export interface WorkerView {
  readonly worker_id: string
  readonly worker_type: string
  readonly status: WorkerStatusName
  readonly supported_skills: readonly string[]
  /** What it could start now. */
  readonly available_skills: readonly string[]
  readonly hot_skills: readonly string[]
  readonly hot_cache: readonly string[]
  /** Null for one that takes as many as it asks for. */
  readonly max_concurrent_tasks: number | null
  /** Tasks that it has now. */
  readonly load: number
  readonly resources: {
    readonly cpu_cores: number
    readonly ram_gb: number
    readonly gpus: readonly { readonly model: string; readonly vram_gb: number }[]
    readonly properties: Readonly<Record<string, Json>>
  }
  readonly installed_models: readonly string[]
  readonly installed_software: Readonly<Record<string, string>>
  readonly cost_per_second: number | null
  readonly cost_per_skill: Readonly<Record<string, number>>
  /** From 0 to 1. */
  readonly reputation: number
  readonly registered_at: number
  readonly seen_at: number
}

/** A version of a blueprint: its states and where they lead. */
export interface BlueprintView {
  readonly name: string
  readonly version: number
  readonly start: string
  readonly endpoint: string | null
  readonly api_version: string | null
  /** JSON Schema of the initial data, where the blueprint has one. */
  readonly input_schema: Readonly<Record<string, Json>> | null
  readonly states: readonly {
    readonly name: string
    readonly kind: string
    readonly outcome: string | null
    /** What it waits for beside tasks, children and people, such as `after 3d`. */
    readonly waits: readonly string[]
    /** Whether the blueprint says how to undo it. */
    readonly has_undo: boolean
    /** Tasks that it hands out, as far as its code shows: types, or names of contracts. */
    readonly tasks: readonly string[]
    /** Blueprints that it runs as children, the same way. */
    readonly children: readonly string[]
    readonly asks_person: boolean
    readonly transitions: readonly { readonly to: string; readonly label: string | null }[]
  }[]
}

export interface ScheduleView extends Omit<ScheduleBody, 'trigger'> {
  readonly trigger: {
    readonly kind: 'interval' | 'daily' | 'weekly' | 'monthly'
    /** Of an interval. */
    readonly every_seconds?: number
    /** Such as 03:30. */
    readonly time?: string
    /** From 1, Monday. */
    readonly days?: readonly number[]
    readonly dates?: readonly (number | 'last')[]
  }
}

/** One try to send a message. */
export interface DeliveryAttemptBody {
  readonly at: number
  readonly duration: number
  /** What the receiver answered. */
  readonly status: number | null
  /** Why it does not count as delivered. */
  readonly error: string | null
}

/** A message to the outside, and what became of it. */
export interface DeliveryBody {
  /** What receivers see as `webhook-id`. */
  readonly id: string
  readonly owner: string
  readonly job_id: string
  readonly event: string
  readonly url: string
  readonly endpoint_id: string
  readonly status: 'pending' | 'delivered' | 'failed'
  readonly created_at: number
  /** The oldest first. */
  readonly attempts: readonly DeliveryAttemptBody[]
  readonly next_attempt_at: number | null
  /** Why it waits, or why it was given up. */
  readonly note: string | null
  readonly ended_at: number | null
}

export interface WholeDeliveryBody extends DeliveryBody {
  /** What is sent, as it is sent. */
  readonly body: Data
}

/** A receiver of messages, and how it fares. */
export interface EndpointBody {
  readonly id: string
  readonly owner: string
  /** Without its query. */
  readonly address: string
  readonly status: 'active' | 'open' | 'half_open' | 'disabled'
  readonly consecutive_failures: number
  readonly failing_since: number | null
  readonly last_success_at: number | null
  readonly last_failure_at: number | null
  readonly last_error: string | null
  readonly paused_until: number | null
  readonly disabled_at: number | null
  readonly disabled_reason: 'gone' | 'failing' | null
  readonly created_at: number
}

export interface EnabledEndpointBody extends EndpointBody {
  /** Messages that waited for it and are sent now. */
  readonly released: number
}

export interface WebhookSecretBody {
  readonly endpoint_id: string
  readonly secret: string
  /** Until then messages are signed with the secret before this one, too. */
  readonly old_secret_until: number | null
}

/** The level of the log of one instance. */
export interface LogLevelBody {
  readonly level: string
  readonly before: string
}
