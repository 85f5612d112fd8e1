import type { Clock, Log } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { BufferedHistory } from './buffered-history.ts'
import type { History, HistoryStore, Retention } from './history.ts'
import { MemoryHistory } from './memory-history.ts'
import { PostgresHistory } from './postgres-history.ts'
import { SqliteHistory } from './sqlite-history.ts'

export interface OpenHistoryOptions {
  readonly clock: Clock
  readonly log: Log
  readonly retention: Retention
  /** Events that may wait to be written. */
  readonly bufferMax?: number
}

/** Opens the history at this address: `sqlite:<file>`, `postgres://…` or `memory:`. */
export function openHistory(uri: string, options: OpenHistoryOptions): History {
  return new BufferedHistory({ ...options, store: openStore(uri, options) })
}

export function openStore(uri: string, { clock, log }: Pick<OpenHistoryOptions, 'clock' | 'log'>): HistoryStore {
  if (uri === 'memory:') return new MemoryHistory()
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(uri)?.[1]
  if (file !== undefined) return new SqliteHistory(file)
  if (/^postgres(?:ql)?:/i.test(uri)) return new PostgresHistory({ url: uri, log, now: () => clock.now() })
  throw new ImpresarioError(
    'INVALID_CONFIGURATION',
    'HISTORY_DATABASE_URI is not understood. Write it as sqlite:./impresario-data/history.db, as ' +
      'postgres://user:password@host:5432/database, or leave it empty.',
  )
}
