import type {
  ApprovalBody,
  BulkReply as BulkReplyBody,
  CatalogueEntry as CatalogueEntryBody,
  DashboardBody,
  EventBody,
  DurationsBody,
  EventCountBody,
  FileBody,
  FileGrantBody,
  HistoryBody,
  JobBody,
  ListedJobBody,
  ListedQuarantinedBody,
  SavedViewBody,
  LogLineBody,
  QuarantinedBody,
  WorkerHistoryBody,
} from '@impresario/protocol'
import type { CamelCased } from './wire-case.ts'
import type * as automations from './wire-automations.ts'
import type * as wire from './wire-views.ts'

/* What clients give to programs. Times are Unix seconds, spans without a unit in their name are seconds. */

/** A job, with the types of its blueprint. */
export interface Job<Output = unknown, State extends string = string> extends Omit<
  CamelCased<JobBody>,
  'result' | 'currentState'
> {
  readonly currentState: State
  readonly result?: Output
}

/** A job in a list. What is too long for one is left out and named; the job itself has it, and a list with `fields`. */
export interface ListedJob extends CamelCased<ListedJobBody> {}

export interface QuarantinedJob extends CamelCased<QuarantinedBody> {}
export interface ListedQuarantinedJob extends CamelCased<ListedQuarantinedBody> {}

/** What a job asks a person, with links to decide it. */
export interface Approval extends CamelCased<ApprovalBody> {}
/** One moment in the history of a job. */
export interface HistoryEvent extends CamelCased<HistoryBody> {}
/** One moment of any job or worker. */
export interface StoredEvent extends CamelCased<EventBody> {}
export interface Durations extends CamelCased<DurationsBody> {}
export interface EventCount extends CamelCased<EventCountBody> {}
/** One moment in the history of a worker. */
export interface WorkerEvent extends CamelCased<WorkerHistoryBody> {}
/** A file of a job. `uri` is its address in the params of tasks. */
export interface JobFile extends CamelCased<FileBody> {}
/** An address that reads or writes one file without a token. `expiresIn`: seconds. */
export interface FileGrant extends CamelCased<FileGrantBody> {}
export interface UploadedFile extends Omit<JobFile, 'modifiedAt'> {
  readonly sha256: string
}
/** One line that a handler or a worker wrote about a job. */
export interface LogLine extends CamelCased<LogLineBody> {}
export type BulkReply = CamelCased<BulkReplyBody>
/** A skill, as its providers offer it. */
export interface CatalogueEntry extends CamelCased<CatalogueEntryBody> {}
/** How many workers and jobs there are, by status. */
export interface Dashboard extends CamelCased<DashboardBody> {}

export interface Account extends CamelCased<wire.AccountBody> {}
export interface Reloaded extends CamelCased<wire.ReloadedBody> {}
export interface LogLevelChange extends CamelCased<wire.LogLevelBody> {}
export interface System extends CamelCased<wire.SystemBody> {}
export interface ConfiguredClient extends CamelCased<wire.ConfiguredClientBody> {}
export interface TaskQueue extends CamelCased<wire.QueueBody> {}
export interface WorkerExplanation extends CamelCased<wire.WorkerExplanationBody> {}
export interface Explanation extends CamelCased<wire.ExplanationBody> {}
export interface ExplainedChild extends CamelCased<wire.ExplainedChildBody> {}
export interface ExplainedTask extends CamelCased<wire.ExplainedTaskBody> {}
export interface Choice extends CamelCased<wire.ChoiceBody> {}
export interface WorkerVerdict extends CamelCased<wire.WorkerVerdictBody> {}
export interface WorkerInfo extends CamelCased<wire.WorkerView> {}
export interface BlueprintInfo extends CamelCased<wire.BlueprintView> {}
export interface Schedule extends CamelCased<wire.ScheduleView> {}
export interface SavedView extends CamelCased<SavedViewBody> {}
export interface DeliveryAttempt extends CamelCased<wire.DeliveryAttemptBody> {}
export interface Delivery extends CamelCased<wire.DeliveryBody> {}
export interface WholeDelivery extends CamelCased<wire.WholeDeliveryBody> {}
export interface WebhookEndpoint extends CamelCased<wire.EndpointBody> {}
export interface EnabledEndpoint extends CamelCased<wire.EnabledEndpointBody> {}
export interface WebhookSecret extends CamelCased<wire.WebhookSecretBody> {}

/** A standing order. `definition` is as it was written. */
export interface Automation extends CamelCased<automations.AutomationBody> {}
/** What an automation has used today, and what it may use. */
export interface AutomationBudget extends CamelCased<automations.BudgetBody> {}
export interface TimePreview extends CamelCased<automations.PreviewBody> {}
export interface RunPreview extends CamelCased<automations.PreviewRunBody> {}
export interface Launched extends CamelCased<automations.LaunchedBody> {}
export interface ListedRun extends CamelCased<automations.ListedRunBody> {}
/** A run with its steps. */
export interface Run extends CamelCased<automations.RunBody> {}
export interface RunStep extends CamelCased<automations.RunStepBody> {}
export interface RunStatistics extends CamelCased<automations.RunStatisticsBody> {}
/** An event that was published to automations. */
export interface PublishedEvent extends CamelCased<automations.PublishedEventBody> {}
export interface AuditEntry extends CamelCased<automations.AuditEntryBody> {}
export interface Tool extends CamelCased<automations.ToolBody> {}
export interface Agent extends CamelCased<automations.AgentBody> {}
export interface AgentToken extends CamelCased<automations.AgentTokenBody> {}
/** With the token itself. */
export interface NewAgentToken extends CamelCased<automations.NewAgentTokenBody> {}
