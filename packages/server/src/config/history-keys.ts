import { LIMITS } from '@impresario/protocol'
import type { ConfigKey } from './config-keys.ts'
import { historyProblem } from '../runtime/text-checks.ts'

/** Settings of what is kept, and for how long. */
export interface HistorySettings {
  readonly historyDatabaseUri: string
  readonly historyBufferEvents: number
  readonly historySnapshotBytes: number
  readonly historyRetentionDays: number
  readonly historyMaxMb: number
  readonly jobRetentionDays: number
  readonly idempotencyKeyHours: number
  readonly maxOpenJobsPerClient: number
  readonly maxOpenJobs: number
}

const YEARS_10 = 3_650

export const HISTORY_KEYS: Readonly<Record<keyof HistorySettings, ConfigKey>> = {
  historyDatabaseUri: {
    names: ['HISTORY_DATABASE_URI'],
    type: 'secret',
    check: historyProblem,
    default: '',
    description:
      'Where every event of jobs and workers is kept: sqlite:<file>, postgres://user:password@host/database (with ?schema= for another schema than impresario_history), or memory: for as long as the process runs. Empty: a job keeps its newest moments itself, and only results that came too late and the events of workers are kept beside it. off: these neither.',
  },
  historyBufferEvents: {
    names: ['HISTORY_BUFFER_EVENTS'],
    type: 'integer',
    min: 1_000,
    max: 10_000_000,
    default: 50_000,
    description:
      'Events kept in memory while the history database is slow or unavailable, about 0.5 kB each. Further events are dropped, counted and logged.',
  },
  historySnapshotBytes: {
    names: ['HISTORY_SNAPSHOT_BYTES'],
    type: 'integer',
    min: 0,
    max: 1_048_576,
    default: LIMITS.historySnapshotBytes,
    description:
      'How much of a job’s initial data and state history each of its events keeps. Values that do not fit are left out and named in `truncated`.',
  },
  historyRetentionDays: {
    names: ['HISTORY_RETENTION_DAYS'],
    type: 'number',
    min: 0,
    max: YEARS_10,
    default: 30,
    description: 'How long events of the history are shown and kept; 0 for ever. PostgreSQL removes whole days.',
  },
  historyMaxMb: {
    names: ['HISTORY_MAX_MB'],
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 1_024,
    description: 'Largest size of the history. Beyond it the oldest events go first. In memory: 256 at most.',
  },
  jobRetentionDays: {
    names: ['JOB_RETENTION_DAYS'],
    type: 'number',
    min: 0,
    max: YEARS_10,
    default: 30,
    description: 'How long a job is kept after its end; 0 for ever. Quarantined jobs wait for a person and stay.',
  },
  idempotencyKeyHours: {
    names: ['IDEMPOTENCY_KEY_HOURS'],
    type: 'number',
    min: 0.01,
    max: 24 * YEARS_10,
    default: 24,
    description: 'How long the same idempotency key gives the same job, from its first use.',
  },
  maxOpenJobsPerClient: {
    names: ['MAX_OPEN_JOBS_PER_CLIENT'],
    type: 'integer',
    min: 1,
    max: 1_000_000_000,
    default: 100_000,
    description:
      'Jobs of one client that may be open at a time, over all instances; beyond it new ones are refused with 429. Each further instance may exceed it by a sixteenth in a rush.',
  },
  maxOpenJobs: {
    names: ['MAX_OPEN_JOBS'],
    type: 'integer',
    min: 1,
    max: 1_000_000_000,
    default: 5_000_000,
    description: 'The same over all clients.',
  },
}
