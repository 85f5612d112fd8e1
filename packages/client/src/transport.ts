import type {
  ApprovalBody,
  ApprovalRequest,
  BulkReply,
  BulkRequest,
  CancelJobRequest,
  CatalogueEntry,
  CreateJobRequest,
  DashboardBody,
  EventBody,
  DurationsBody,
  EventCountBody,
  HistoryBody,
  JobBody,
  JobEventRequest,
  JobListQuery,
  JobQuery,
  ListedJobBody,
  LogLineBody,
  ListedQuarantinedBody,
  QuarantinedBody,
  RetryJobRequest,
  SentEventRequest,
  WorkerHistoryBody,
} from '@impresario/protocol'
import type { FileTransport, WireQuery } from './file-transport.ts'
import type { RequestTransport } from './request-transport.ts'
import type * as wire from './wire-views.ts'

/** One page of a list, as it comes over the wire. */
export interface WirePage<Item> {
  readonly items: readonly Item[]
  /** Where the next page begins; absent on the last one. */
  readonly next?: string
}

export interface Waiting {
  /** How long the answer may be held back. */
  readonly holdMs?: number
  readonly signal?: AbortSignal | undefined
}

/**
 * What a client asks of an orchestrator, in the words of the wire: over HTTP, or in the same process. A refusal is an
 * `ImpresarioError` with the same code, whichever way it comes.
 */
export interface ClientTransport {
  readonly files: FileTransport
  readonly requests: RequestTransport

  /** Gives the job's id, once the job is safe. */
  createJob(request: CreateJobRequest): Promise<string>
  readJob(id: string, query: JobQuery, waiting: Waiting): Promise<JobBody>
  listJobs(query: JobListQuery): Promise<WirePage<ListedJobBody>>
  cancelJob(id: string, request: CancelJobRequest): Promise<void>
  explainJob(id: string): Promise<wire.ExplanationBody>
  jobLog(id: string): Promise<readonly LogLineBody[]>
  jobHistory(id: string, query: WireQuery): Promise<WirePage<HistoryBody>>

  sendEvent(id: string, event: JobEventRequest): Promise<void>
  /** To every job that waits for its topic and key. */
  publishEvent(event: SentEventRequest): Promise<void>

  readApproval(id: string): Promise<ApprovalBody>
  decide(id: string, request: ApprovalRequest): Promise<void>

  listQuarantine(query: WireQuery): Promise<WirePage<ListedQuarantinedBody>>
  readQuarantined(id: string): Promise<QuarantinedBody>
  retryJob(id: string, request: RetryJobRequest): Promise<void>
  discardJob(id: string): Promise<void>
  retryMany(request: BulkRequest): Promise<BulkReply>
  discardMany(request: BulkRequest): Promise<BulkReply>

  listEvents(query: WireQuery): Promise<WirePage<EventBody>>
  countEvents(query: WireQuery): Promise<readonly EventCountBody[]>
  durations(query: WireQuery): Promise<DurationsBody>

  listWorkers(query: WireQuery): Promise<WirePage<wire.WorkerView>>
  readWorker(id: string): Promise<wire.WorkerView>
  workerHistory(id: string, query: WireQuery): Promise<WirePage<WorkerHistoryBody>>
  /** Skills with their names. */
  listSkills(query: WireQuery): Promise<WirePage<readonly [name: string, skill: CatalogueEntry]>>

  listBlueprints(): Promise<readonly wire.BlueprintView[]>
  readBlueprint(name: string, version: number | undefined): Promise<wire.BlueprintView>
  drawBlueprint(name: string, format: 'dot' | 'svg', version: number | undefined): Promise<string>

  listSchedules(): Promise<readonly wire.ScheduleView[]>
  readSchedule(name: string): Promise<wire.ScheduleView>
  /** Gives the id of the job. The same key starts it once. */
  runSchedule(name: string, key: string): Promise<string>
  pauseSchedule(name: string): Promise<wire.ScheduleView>
  resumeSchedule(name: string): Promise<wire.ScheduleView>

  listDeliveries(query: WireQuery): Promise<WirePage<wire.DeliveryBody>>
  readDelivery(id: string): Promise<wire.WholeDeliveryBody>
  redeliver(id: string): Promise<wire.WholeDeliveryBody>
  listEndpoints(query: WireQuery): Promise<WirePage<wire.EndpointBody>>
  readEndpoint(id: string): Promise<wire.EndpointBody>
  declareEndpoint(url: string): Promise<wire.EndpointBody>
  enableEndpoint(id: string): Promise<wire.EnabledEndpointBody>
  readSecret(id: string): Promise<wire.WebhookSecretBody>
  /** With the seconds in which the old secret still counts. The same key replaces it once. */
  rotateSecret(id: string, overlap: number | undefined, key: string): Promise<wire.WebhookSecretBody>

  /** Server-sent events in pieces of text, from after the message with this id. Ends when the stream does. */
  changes(lastId: string | undefined, signal: AbortSignal): Promise<AsyncIterable<string>>

  dashboard(): Promise<DashboardBody>
  account(): Promise<wire.AccountBody>
  reload(): Promise<wire.ReloadedBody>
  setLogLevel(level: string): Promise<wire.LogLevelBody>
}
