export { describeEnvironment } from './environment.ts'
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
} from './failure.ts'
export type { AbortCause } from './failure.ts'
export { outcome } from './handler.ts'
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
} from './handler.ts'
export { jsonSchema } from './json-schema.ts'
export type { Log } from './log.ts'
export type { Middleware, MiddlewareContext } from './middleware.ts'
export type { OrchestratorMode, OrchestratorOptions, TlsOptions, WorkerOptions } from './settings.ts'
export { TransportError } from './transport.ts'
export type { Command, Delivered, PollRequest, TransportFailure, WorkerSocket, WorkerTransport } from './transport.ts'
export { createWorker } from './worker.ts'
export type { CommandHandler, Worker } from './worker.ts'
