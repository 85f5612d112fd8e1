import type { ConfigKey } from './config-keys.ts'

/** Settings of what is kept, and for how long. */
export interface HistorySettings {
  readonly historyDatabaseUri: string
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
    default: '',
    description:
      'Where every event of jobs and workers is kept: sqlite:<file>, or memory: for as long as the process runs. Empty: a job keeps its newest moments itself, and only results that came too late and the events of workers are kept beside it.',
  },
  historyRetentionDays: {
    names: ['HISTORY_RETENTION_DAYS'],
    type: 'number',
    min: 0,
    max: YEARS_10,
    default: 30,
    description: 'How long events of the history are kept; 0 for ever.',
  },
  historyMaxMb: {
    names: ['HISTORY_MAX_MB'],
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 1_024,
    description: 'Largest size of the history. Beyond it the oldest events go first.',
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
    description: 'Jobs of one client that may be open at a time; beyond it new ones are refused with 429.',
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
