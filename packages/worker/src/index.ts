export { describeEnvironment } from './settings/environment.ts'
export {
  DependencyError,
  DependencyMissingError,
  IntegrityMismatchError,
  InvalidInputError,
  PermanentError,
  ResourceExhaustedError,
  SecurityError,
  TaskAborted,
  TaskFailure,
  TimeoutError,
  TransientError,
} from './tasks/failure.ts'
export type { AbortCause } from './tasks/failure.ts'
export { outcome } from './tasks/handler.ts'
export type {
  ContractGroup,
  HandlerFor,
  HandlersFor,
  HandlerWith,
  NamedOutcome,
  Returned,
  SkillOptions,
  Task,
  UntypedHandler,
} from './tasks/handler.ts'
export { jsonSchema } from './tasks/json-schema.ts'
export type { Log } from './runtime/log.ts'
export type { Middleware, MiddlewareContext } from './tasks/middleware.ts'
export type { OrchestratorMode, OrchestratorOptions, TlsOptions, WorkerOptions } from './settings/settings.ts'
export { TransportError } from './transport/transport.ts'
export type {
  Command,
  Delivered,
  PollRequest,
  TransportFailure,
  WorkerSocket,
  WorkerTransport,
} from './transport/transport.ts'
export { createWorker } from './worker.ts'
export type { CommandHandler, Worker } from './worker.ts'
