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
  readonly auditRetentionDays: number
  readonly idempotencyKeyHours: number
  readonly maxOpenJobsPerClient: number
  readonly maxOpenJobsBytesPerClient: number
  readonly maxOpenJobsBytes: number
  readonly maxOpenJobs: number
  readonly automationsBytesMax: number
  readonly eventsBytesMax: number
}

const YEARS_10 = 3_650

export const HISTORY_KEYS: Readonly<Record<keyof HistorySettings, ConfigKey>> = {
  historyDatabaseUri: {
    names: ['HISTORY_DATABASE_URI'],
    type: 'secret',
    check: historyProblem,
    default: '',
    description:
      'Database for all events of jobs and workers: sqlite:<file>, postgres://user:password@host/database (with ?schema= for a schema other than impresario_history), or memory: until the process ends. Empty: the record of a job contains its newest events; only late results and events of workers are stored separately. off: those are not stored either.',
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
      'Size of the initial data and state history that is stored with each event of a job. Values that do not fit are omitted and named in `truncated`.',
  },
  historyRetentionDays: {
    names: ['HISTORY_RETENTION_DAYS'],
    type: 'number',
    min: 0,
    max: YEARS_10,
    default: 30,
    description: 'How long events are kept; 0: forever. PostgreSQL removes whole days.',
  },
  historyMaxMb: {
    names: ['HISTORY_MAX_MB'],
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 1_024,
    description: 'Maximum size of the history. Above it, the oldest events are removed first. In memory: at most 256.',
  },
  jobRetentionDays: {
    names: ['JOB_RETENTION_DAYS'],
    type: 'number',
    min: 0,
    max: YEARS_10,
    default: 30,
    description: 'How long a job is kept after its end; 0: forever. Quarantined jobs are kept until a person decides.',
  },
  auditRetentionDays: {
    names: ['AUDIT_RETENTION_DAYS'],
    type: 'number',
    min: 0,
    max: YEARS_10,
    default: 400,
    description:
      'How long entries of the audit log are kept; 0: forever. Entries about single runs and events are kept for 90 days at most. Applies to entries from now on.',
  },
  idempotencyKeyHours: {
    names: ['IDEMPOTENCY_KEY_HOURS'],
    type: 'number',
    min: 0.01,
    max: 24 * YEARS_10,
    default: 24,
    description: 'How long an idempotency key returns the same job, counted from its first use.',
  },
  maxOpenJobsPerClient: {
    names: ['MAX_OPEN_JOBS_PER_CLIENT'],
    type: 'integer',
    min: 1,
    max: 1_000_000_000,
    default: 100_000,
    description:
      'Maximum number of open jobs of one client, over all instances. Above it, new jobs are refused with 429. Under a burst, each additional instance can exceed it by a sixteenth.',
  },
  maxOpenJobsBytesPerClient: {
    names: ['MAX_OPEN_JOBS_BYTES_PER_CLIENT'],
    type: 'integer',
    min: 1_048_576,
    max: 1_000_000_000_000_000,
    default: LIMITS.openJobsBytesMax,
    description:
      'What the jobs of one client that are open or in quarantine may begin with together, in bytes of memory. A new job may have this much divided by their number; a larger one is refused with 429. In the worst case all together have ten times as much.',
  },
  maxOpenJobs: {
    names: ['MAX_OPEN_JOBS'],
    type: 'integer',
    min: 1,
    max: 1_000_000_000,
    default: 5_000_000,
    description: 'Maximum number of open jobs of all clients together.',
  },
  maxOpenJobsBytes: {
    names: ['MAX_OPEN_JOBS_BYTES'],
    type: 'integer',
    min: 1_048_576,
    max: 1_000_000_000_000_000,
    default: LIMITS.allOpenJobsBytesMax,
    description:
      'What the jobs of all clients that are open or in quarantine may begin with together, in bytes of memory. A new job may have this much divided by their number; a larger one is refused with 429. In the worst case all together have ten times as much.',
  },
  automationsBytesMax: {
    names: ['AUTOMATIONS_BYTES_MAX'],
    type: 'integer',
    min: 1_048_576,
    max: 1_000_000_000_000_000,
    default: LIMITS.automationsBytesMax,
    description:
      'What the automations of one owner may have together as they are stored, in bytes, including canceled ones. A new one may have this much divided by their number. In the worst case all together have ten times as much.',
  },
  eventsBytesMax: {
    names: ['EVENTS_BYTES_MAX'],
    type: 'integer',
    min: 1_048_576,
    max: 1_000_000_000_000_000,
    default: LIMITS.eventsBytesMax,
    description:
      'What the events of one owner that are kept may have together, in bytes. A new one may have this much divided by their number. In the worst case all together have ten times as much.',
  },
}
