import type { Fingerprint, ParsedDocument } from '../parsing/parser.ts'
import type { SearchOptions, SearchResult } from './search.ts'

/** The words of the seed for what becomes of a file. */
export type FileStatus = 'pending' | 'running' | 'completed' | 'failed' | 'retry'

export interface FileRecord {
  readonly id: number
  readonly path: string
  readonly status: FileStatus
  readonly priority: number
  readonly attempts: number
  readonly code: string | undefined
  readonly error: string | undefined
  readonly kind: string | undefined
  readonly title: string
  readonly size: number
  readonly mtimeMs: number
  readonly hash: string | undefined
  readonly textChars: number
  readonly isTruncated: boolean
  /** Of the tokenizer that its terms were made with. */
  readonly tokenizer: number
  readonly updatedAt: number
}

export interface FileChange {
  readonly status: FileStatus
  readonly priority?: number
  readonly attempts?: number
  readonly code?: string
  readonly error?: string
}

export interface FileQuery {
  readonly status?: FileStatus
  readonly limit?: number
  /** Paths after this one, in their order. */
  readonly after?: string
  readonly under?: string
}

/** How long a deleted document may come back under another path and still be the same one. */
export const GONE_MS = 60_000
export const PAGE_MAX = 1_000
export const NO_COUNTS: Readonly<Record<FileStatus, number>> = {
  pending: 0,
  running: 0,
  completed: 0,
  failed: 0,
  retry: 0,
}

export interface IndexCounts {
  readonly documents: number
  readonly byStatus: Readonly<Record<FileStatus, number>>
  readonly textChars: number
}

/** What a caller outside asks of the process that has the index open. */
export interface IndexRequest {
  readonly kind: 'add' | 'retry' | 'reindex'
  readonly path: string
}

/**
 * Keeps what is known of files, and finds documents. Replaceable: an option of `createDocuments`. Every write is visible to
 * searches once its promise resolves.
 */
export interface Indexer {
  /** Every machine that shares the storage has this index; otherwise it is on this machine alone. */
  readonly isShared?: boolean
  file(path: string): Promise<FileRecord | undefined>
  files(query: FileQuery): Promise<readonly FileRecord[]>
  /** Other files with this content, those that are just gone included. */
  withHash(hash: string, exceptPath: string): Promise<readonly FileRecord[]>
  /** Writes down a file that will be read, or what became of it. Makes the record where there is none. */
  mark(path: string, change: FileChange): Promise<void>
  /**
   * Makes a document searchable. It keeps the identity of the one that was moved here, unless that record has changed since it
   * was read: then its file is back, and the two are different documents.
   */
  put(path: string, print: Fingerprint, document: ParsedDocument, moved?: FileRecord): Promise<void>
  /** The content is the same, only its times have changed. */
  touch(path: string, print: Fingerprint): Promise<void>
  /** A file that cannot be read any more is not found any more either. */
  fail(path: string, print: Pick<Fingerprint, 'size' | 'mtimeMs'>, change: FileChange): Promise<void>
  remove(path: string): Promise<boolean>
  /** Every file counts as changed: all are read again. */
  invalidate(under?: string): Promise<number>
  counts(): Promise<IndexCounts>
  search(query: string, options?: SearchOptions): Promise<SearchResult>
  /** The whole text of a document. */
  text(id: number): Promise<{ readonly path: string; readonly text: string } | undefined>
  takeRequests(): Promise<readonly IndexRequest[]>
  check(): Promise<void>
  close(): Promise<void>
}
