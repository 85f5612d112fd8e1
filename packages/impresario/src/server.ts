/** The orchestrator with its HTTP interface, and what it takes to configure it. */
export * from './embedded.ts'
export { renderGraph } from '@impresario/graph'
export type { RenderOptions } from '@impresario/graph'
export { createLog, createServer, loadBlueprints, loadSettings, Server } from '@impresario/server'
export type {
  ConfigSource,
  LoadedBlueprint,
  LoadOptions,
  LogLevel,
  LogOptions,
  ServerOptions,
  Settings,
} from '@impresario/server'
