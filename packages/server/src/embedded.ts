/** The orchestrator without HTTP, for programs that bring it along: `@impresario/server/embedded` loads no web server. */
export { Orchestrator, createOrchestrator } from './orchestrator.ts'
export type { OrchestratorOptions } from './orchestrator.ts'
export type { LocalClientOptions } from './client-api/local-client.ts'
export { JobFailedError, WaitTimeoutError } from '@impresario/client'
export type { Client, Job, JobHandle, StartOptions, WaitOptions } from '@impresario/client'
