export type { Account, Admin, Reloaded } from './account.ts'
export { createClient } from './client.ts'
export type { BlueprintRef, Client, ClientOptions, ListQuery, StartOptions, WorkerHistoryQuery } from './client.ts'
export type { Fetch } from './connection.ts'
export { ConnectionError, JobEndedError, WaitTimeoutError } from './errors.ts'
export type { EventCountQuery, EventFilter, EventQuery, Events } from './events.ts'
export type { Choice, ExplainedChild, ExplainedTask, Explanation, WorkerVerdict } from './explanation.ts'
export type { ApproveOptions, HistoryQuery, Job, JobHandle, RetryOptions, WaitOptions } from './job.ts'
export type { Listing, Page, PageQuery } from './listing.ts'
export type { Quarantine, QuarantineFilter, QuarantineQuery, Selection } from './quarantine.ts'
export type { Schedules } from './schedules.ts'
export type { KeyedSend, SendOptions } from './sent-event.ts'
export { verifyWebhook, WebhookError } from './webhook-signature.ts'
export type { VerifyOptions, WebhookBody, WebhookHeaders, WebhookMessage } from './webhook-signature.ts'
export type {
  Delivery,
  DeliveryAttempt,
  DeliveryQuery,
  EndpointQuery,
  RotateOptions,
  WebhookEndpoint,
  Webhooks,
  WebhookSecret,
  WholeDelivery,
} from './webhooks.ts'
export type {
  ApprovalBody as Approval,
  BlueprintBody,
  BulkReply,
  CatalogueEntry,
  DashboardBody,
  EventBody as StoredEvent,
  EventCountBody as EventCount,
  HistoryBody as HistoryEvent,
  ListedJobBody as ListedJob,
  ListedQuarantinedBody as ListedQuarantinedJob,
  QuarantinedBody as QuarantinedJob,
  ScheduleBody as Schedule,
  WorkerBody,
  WorkerHistoryBody as WorkerEvent,
} from '@impresario/protocol'
export { ExactNumber, ImpresarioError, isImpresarioError, parseExact, stringifyExact } from '@impresario/protocol'
export type { Data, DataObject } from '@impresario/protocol'
