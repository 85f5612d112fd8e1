export type { Admission, Pass } from './job/admission.ts'
export type { Changes, JobChange } from './job/change-feed.ts'
export { Engine } from './engine.ts'
export type { EngineOptions, EngineSettings, HistorySink, TaskExplanation, WaitOptions } from './engine.ts'
export type { Applied, Commanded } from './job/director.ts'
export { besideJobIdOf } from './job/job-creation.ts'
export type { Beside, Created, NewJob, NewTraces } from './job/job-creation.ts'
export { KeyBook } from './job/key-book.ts'
export type { ClientKey, KeyBookOptions, KeyUse } from './job/key-book.ts'
export type { Quota, QuotaUse } from './job/quota.ts'
export type { HandlerRun, TurnGuard } from './turns/turn-guard.ts'
export type { BlueprintSource } from './job/script-registry.ts'
export type { Desk } from './workers/desk.ts'
export type { JobWork } from './workers/job-work.ts'
export type {
  Delivery,
  Handout,
  PollOptions,
  PollSignal,
  Metering,
  Receipt,
  Report,
  WorkerEvent,
  WorkerEventNews,
} from './workers/desk-messages.ts'
export type { Retention } from './job/batch.ts'
export { OneByOne } from './service/one-by-one.ts'
export { Pump } from './service/pump.ts'
export type { PumpOptions } from './service/pump.ts'
export type { Recall } from './workers/holdings.ts'
export type { LedService, Leadership, Term } from './service/leadership.ts'
export type { Introduction, Peer } from './service/signals.ts'
export type { TaskRate } from './service/task-flow.ts'
export type { ScheduleView, Scheduler } from './background/scheduler.ts'
export type { WorkerMoment } from './workers/roster.ts'
export type { TurnTracing } from './turns/turn-taker.ts'
