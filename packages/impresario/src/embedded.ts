/** The orchestrator inside another program. Loads no web server. */
export * from '@impresario/server/embedded'
export type { Clock, Log, LogFields, Random, Storage, Strategy } from '@impresario/core'
