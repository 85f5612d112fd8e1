import type { z } from 'zod'
import type * as schemas from './schemas.ts'
import type * as wire from './wire-client.ts'
import type * as worker from './wire.ts'

// Nothing here runs. Wire messages are defined twice: as an interface, which is easy to read and needs no zod, and as a
// schema, which validates them and describes them in the API document. A difference between the two does not compile.

/** Without undeclared fields: most objects may have more fields than we know. */
type Named<T> = { readonly [Key in keyof T as string extends Key ? never : Key]: T[Key] }

/** As `readonly` as the interfaces are, all the way down. */
type Frozen<T> = T extends (infer One)[]
  ? readonly Frozen<One>[]
  : T extends object
    ? [keyof Named<T>] extends [never]
      ? { readonly [Key in keyof T]: Frozen<T[Key]> }
      : { readonly [Key in keyof T as string extends Key ? never : Key]: Frozen<T[Key]> }
    : T

type RequiredOf<T> = { [Key in keyof T]-?: object extends Pick<T, Key> ? never : Key }[keyof T]

/** `true`, or the names of the fields in which the two differ. */
export type Same<Interface, Schema> = [
  Exclude<keyof Named<Interface>, keyof Named<Schema>>,
  Exclude<keyof Named<Schema>, keyof Named<Interface>>,
  Exclude<RequiredOf<Named<Interface>>, RequiredOf<Named<Schema>>>,
  Exclude<RequiredOf<Named<Schema>>, RequiredOf<Named<Interface>>>,
] extends [never, never, never, never]
  ? Named<Interface> extends Named<Frozen<Schema>>
    ? true
    : {
        readonly [Key in keyof Named<Interface> & keyof Named<Schema>]: Interface[Key] extends Frozen<Schema[Key]>
          ? never
          : Key
      }[keyof Named<Interface> & keyof Named<Schema>]
  : {
      readonly onlyInInterface: Exclude<keyof Named<Interface>, keyof Named<Schema>>
      readonly onlyInSchema: Exclude<keyof Named<Schema>, keyof Named<Interface>>
      readonly onlyRequiredByOne:
        | Exclude<RequiredOf<Named<Interface>>, RequiredOf<Named<Schema>>>
        | Exclude<RequiredOf<Named<Schema>>, RequiredOf<Named<Interface>>>
    }

type Out<Name extends keyof typeof schemas> = (typeof schemas)[Name] extends z.ZodType
  ? z.output<(typeof schemas)[Name]>
  : never
type In<Name extends keyof typeof schemas> = (typeof schemas)[Name] extends z.ZodType
  ? z.input<(typeof schemas)[Name]>
  : never

export const ANSWERS: {
  readonly job: Same<Required<Pick<wire.JobBody, 'owner'>> & Omit<wire.JobBody, 'owner'>, Out<'jobBody'>>
  readonly trailEntry: Same<wire.WireTrailEntry, Out<'trailEntry'>>
  readonly jobEventRequest: Same<wire.JobEventRequest, In<'jobEventRequest'>>
  readonly sentEventRequest: Same<wire.SentEventRequest, In<'sentEventRequest'>>
  readonly sentEventReply: Same<wire.SentEventReply, Out<'sentEventReply'>>
  readonly jobEventReply: Same<wire.JobEventReply, Out<'jobEventReply'>>
  readonly jobCompensation: Same<wire.WireCompensation, Out<'jobCompensation'>>
  readonly jobWait: Same<wire.WireWait, Out<'jobWait'>>
  readonly jobFailure: Same<wire.WireJobFailure, Out<'jobFailure'>>
  readonly openApproval: Same<wire.WireApproval, Out<'openApproval'>>
  readonly approval: Same<wire.ApprovalBody, Out<'approvalBody'>>
  readonly approvalReply: Same<wire.ApprovalReply, Out<'approvalReply'>>
  readonly jobError: Same<wire.WireJobError, Out<'jobError'>>
  readonly createJobReply: Same<wire.CreateJobReply, Out<'createJobReply'>>
  readonly createJobBatchReply: Same<wire.CreateJobBatchReply, Out<'createJobBatchReply'>>
  readonly cancelJobReply: Same<wire.CancelJobReply, Out<'cancelJobReply'>>
  readonly commandReply: Same<wire.CommandReply, Out<'commandReply'>>
  readonly bulkReply: Same<wire.BulkReply, Out<'bulkReply'>>
  readonly itemError: Same<wire.ItemError, Out<'itemError'>>
  readonly jobEvent: Same<wire.HistoryBody, Out<'jobEvent'>>
  readonly anyEvent: Same<wire.EventBody, Out<'anyEvent'>>
  readonly workerEvent: Same<wire.WorkerHistoryBody, Out<'workerEvent'>>
  readonly durations: Same<wire.DurationsBody, Out<'durations'>>
  readonly eventCount: Same<wire.EventCountBody, Out<'eventCount'>>
  readonly catalogueEntry: Same<wire.CatalogueEntry, Out<'catalogueEntry'>>
  readonly work: Same<wire.WireWork, Out<'jobWork'>>
  readonly quarantined: Same<
    Required<Pick<wire.QuarantinedBody, 'owner'>> & Omit<wire.QuarantinedBody, 'owner'>,
    Out<'quarantinedBody'>
  >
  readonly dashboard: Same<wire.DashboardBody, Out<'dashboardBody'>>
  readonly problem: Same<wire.ErrorBody, Out<'problem'>>
  readonly schedule: Same<Omit<wire.ScheduleBody, 'trigger'>, Omit<Named<Out<'scheduleBody'>>, 'trigger'>>
} = {
  job: true,
  trailEntry: true,
  jobEventRequest: true,
  sentEventRequest: true,
  sentEventReply: true,
  jobEventReply: true,
  jobCompensation: true,
  jobWait: true,
  jobFailure: true,
  openApproval: true,
  approval: true,
  approvalReply: true,
  jobError: true,
  createJobReply: true,
  createJobBatchReply: true,
  cancelJobReply: true,
  commandReply: true,
  bulkReply: true,
  itemError: true,
  jobEvent: true,
  anyEvent: true,
  workerEvent: true,
  durations: true,
  eventCount: true,
  catalogueEntry: true,
  work: true,
  quarantined: true,
  dashboard: true,
  problem: true,
  schedule: true,
}

export const REQUESTS: {
  readonly createJob: Same<wire.CreateJobRequest, In<'createJobRequest'>>
  readonly cancelJob: Same<wire.CancelJobRequest, In<'cancelJobRequest'>>
  readonly retryJob: Same<wire.RetryJobRequest, In<'retryJobRequest'>>
  readonly rerunJob: Same<wire.RerunJobRequest, In<'rerunJobRequest'>>
  readonly bulk: Same<wire.BulkRequest, In<'bulkRequest'>>
  readonly approval: Same<wire.ApprovalRequest, In<'approvalRequest'>>
} = { createJob: true, cancelJob: true, retryJob: true, rerunJob: true, bulk: true, approval: true }

/** The seal is checked by hand. */
type Unsealed<T> = Omit<Named<T>, 'security'>

export const WORKERS: {
  readonly register: Same<Unsealed<worker.RegisterRequest>, Unsealed<In<'registerRequest'>>>
  readonly heartbeat: Same<Unsealed<worker.HeartbeatRequest>, Unsealed<In<'heartbeatRequest'>>>
  readonly event: Same<Unsealed<worker.EventRequest>, Unsealed<In<'eventRequest'>>>
  readonly taskBatch: Same<worker.TaskBatchRequest, In<'taskBatchRequest'>>
  readonly result: Same<Unsealed<worker.ResultRequest>, Unsealed<In<'resultRequest'>>>
} = { register: true, heartbeat: true, event: true, taskBatch: true, result: true }
