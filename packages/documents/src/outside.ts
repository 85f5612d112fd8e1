import { DatabaseSync } from '@photostructure/sqlite'
import { join } from 'node:path'
import type { FileQuery, FileRecord, IndexCounts, IndexRequest } from './index/indexer.ts'
import { INDEX_FILE, openForReading } from './index/schema.ts'
import { countsIn, filesIn } from './index/sqlite-index.ts'

/** What another process can see of an index that is open elsewhere, and ask of the process that has it open. */
export interface IndexView {
  counts(): IndexCounts
  files(query: FileQuery): readonly FileRecord[]
  close(): void
}

export function viewIndex(directory: string): IndexView {
  const db = openForReading(directory)
  return { counts: () => countsIn(db), files: (query) => filesIn(db, query), close: () => db.close() }
}

/** Leaves a request for the process that has the index open; it looks four times a second. */
export function requestFrom(directory: string, requests: readonly IndexRequest[]): void {
  openForReading(directory).close()
  const db = new DatabaseSync(join(directory, INDEX_FILE), { timeout: 10_000 })
  try {
    db.exec('BEGIN IMMEDIATE')
    const statement = db.prepare('INSERT INTO requests (kind, path) VALUES (?, ?)')
    for (const { kind, path } of requests) statement.run(kind, path)
    db.exec('COMMIT')
  } finally {
    db.close()
  }
}
