import type { Clock, Log } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { BufferedHistory } from './buffered-history.ts'
import type { History, HistoryStore, Retention } from './history.ts'
import { MemoryHistory } from './memory-history.ts'
import { SqliteHistory } from './sqlite-history.ts'

export interface OpenHistoryOptions {
  readonly clock: Clock
  readonly log: Log
  readonly retention: Retention
}

/** Opens the history that the address names: `sqlite:<file>` or `memory:`. */
export function openHistory(uri: string, options: OpenHistoryOptions): History {
  return new BufferedHistory({ ...options, store: storeOf(uri) })
}

function storeOf(uri: string): HistoryStore {
  if (uri === 'memory:') return new MemoryHistory()
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(uri)?.[1]
  if (file !== undefined) return new SqliteHistory(file)
  throw new ImpresarioError(
    'INVALID_CONFIGURATION',
    'HISTORY_DATABASE_URI is not understood. Write it as sqlite:./impresario-data/history.db, or leave it empty.',
  )
}
