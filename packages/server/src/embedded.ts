/** The orchestrator without HTTP, for programs that bring it along: `@impresario/server/embedded` loads no web server. */
export { Orchestrator, createOrchestrator } from './orchestrator/orchestrator.ts'
export type { OrchestratorOptions } from './orchestrator/orchestrator.ts'
export { JobFailedError } from './orchestrator/local-client.ts'
export type { LocalClient, LocalJob, LocalStartOptions, LocalWaitOptions } from './orchestrator/local-client.ts'
