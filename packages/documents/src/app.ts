/** What programs use. Its declarations need neither SQLite nor the driver of PostgreSQL. */
export { createDocuments, Documents } from './documents.ts'
export type { Added, DocumentsOptions } from './documents.ts'
export { ClientDocuments } from './client-documents.ts'
export type { ClientDocumentsOptions } from './client-documents.ts'
export { documentsConfig, loadDocumentsConfig } from './config/config.ts'
export type { DocumentsConfig } from './config/config.ts'
export type { DocumentEngine } from './engine/engine.ts'
export { metricsText } from './engine/metrics.ts'
export type { Metric } from './engine/metrics.ts'
export type { ComponentHealth, EngineState, EngineStats, EngineStatus } from './engine/state.ts'
export type { TaskFigures } from './engine/statistics.ts'
export type { Change, EndedTask, FileTask, QueueStats, TaskQueue, TaskStatus, TaskType } from './engine/task.ts'
export type { WorkerPool } from './engine/worker-pool.ts'
export type {
  FileChange,
  FileQuery,
  FileRecord,
  FileStatus,
  IndexCounts,
  Indexer,
  IndexRequest,
} from './index/indexer.ts'
export type { Hit, SearchOptions, SearchResult } from './index/search.ts'
export { parsedDocument } from './parsing/parsed-document.ts'
export { ParseFailure } from './parsing/parser.ts'
export type { DocumentParser, Fingerprint, ParsedDocument, ParseFailureCode } from './parsing/parser.ts'
export type { FileEvent, FileMonitor, MonitorHealth } from './watching/monitor.ts'
