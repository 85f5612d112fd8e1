import type { ConfigKey } from './config-keys.ts'

/** Settings of what goes on without being asked. */
export interface BackgroundSettings {
  readonly schedulesConfigPath: string
  readonly documentsConfigPath: string
  readonly documentsDirectory: string
  readonly leaderLeaseSeconds: number
  readonly overloadWaitSeconds: number
  readonly overloadTurnWaitSeconds: number
  readonly stallLimitSeconds: number
  readonly workerForgetSeconds: number
  readonly reputationIntervalSeconds: number
  readonly reputationFlushSeconds: number
  readonly reputationMinThreshold: number
  readonly reputationPenaltyContractViolation: number
  readonly reputationPenaltyTaskFailure: number
  readonly reputationRewardSuccess: number
}

const DAY_S = 86_400

export const BACKGROUND_KEYS: Readonly<Record<keyof BackgroundSettings, ConfigKey>> = {
  schedulesConfigPath: {
    names: ['SCHEDULES_CONFIG_PATH'],
    type: 'path',
    default: '',
    description: 'TOML file with one table per schedule: blueprint, input_data, and when it fires.',
  },
  documentsConfigPath: {
    names: ['DOCUMENTS_CONFIG_PATH'],
    type: 'path',
    default: '',
    description:
      'YAML file of the documents app: the folders of each client, limits and retries. Empty: the documents app is off.',
  },
  documentsDirectory: {
    names: ['DOCUMENTS_DIR'],
    type: 'path',
    default: './impresario-documents',
    description: 'Directory for the indexes of the documents app, with one subdirectory per client.',
  },
  leaderLeaseSeconds: {
    names: ['LEADER_LEASE_SECONDS'],
    type: 'seconds',
    min: 1,
    max: 3_600,
    default: 15,
    description: 'Maximum time until another instance takes over the background work of an instance that died.',
  },
  overloadWaitSeconds: {
    names: ['OVERLOAD_WAIT_SECONDS'],
    type: 'seconds',
    min: 0,
    max: 60,
    default: 1,
    description:
      'New jobs are refused with 503 while accepted requests wait longer than this for the storage or the process. 0 turns this check off.',
  },
  overloadTurnWaitSeconds: {
    names: ['OVERLOAD_TURN_WAIT_SECONDS'],
    type: 'seconds',
    min: 1,
    max: DAY_S,
    default: 30,
    description:
      'New jobs of a client are refused with 503 while its jobs wait longer than this for their first turn, because handlers do not keep up.',
  },
  stallLimitSeconds: {
    names: ['STALL_LIMIT_SECONDS'],
    type: 'seconds',
    min: 0,
    max: 3_600,
    default: 30,
    description:
      'The process exits if its event loop is blocked for this long, for example by an endless loop in a handler. A service manager should restart it. 0: never.',
  },
  workerForgetSeconds: {
    names: ['WORKER_FORGET_SECONDS'],
    type: 'seconds',
    min: 60,
    max: 365 * DAY_S,
    default: DAY_S,
    description: 'The record of a worker is removed after this time without contact.',
  },
  reputationIntervalSeconds: {
    names: ['REPUTATION_INTERVAL_SECONDS'],
    type: 'seconds',
    min: 1,
    max: 30 * DAY_S,
    default: 3_600,
    description: 'How often the reputation of workers is computed from the outcomes of their tasks.',
  },
  reputationFlushSeconds: {
    names: ['REPUTATION_FLUSH_SECONDS'],
    type: 'seconds',
    min: 0.1,
    max: 60,
    default: 5,
    description: 'How long outcomes are collected in memory before they are written. A crash loses at most these.',
  },
  reputationMinThreshold: {
    names: ['REPUTATION_MIN_THRESHOLD'],
    type: 'number',
    min: 0,
    max: 1,
    default: 0,
    description: 'A worker below this reputation gets a task only if no better worker is free.',
  },
  reputationPenaltyContractViolation: {
    names: ['REPUTATION_PENALTY_CONTRACT_VIOLATION'],
    type: 'number',
    min: 0,
    max: 1,
    default: 0.2,
    description: 'Subtracted from a worker’s reputation for each result that violates its contract.',
  },
  reputationPenaltyTaskFailure: {
    names: ['REPUTATION_PENALTY_TASK_FAILURE'],
    type: 'number',
    min: 0,
    max: 1,
    default: 0.05,
    description: 'Subtracted for each permanent failure, timeout or abandoned task.',
  },
  reputationRewardSuccess: {
    names: ['REPUTATION_REWARD_SUCCESS'],
    type: 'number',
    min: 0,
    max: 1,
    default: 0.001,
    description: 'Added for each success.',
  },
}
