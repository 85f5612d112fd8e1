import { REPUTATION_RULES } from '@impresario/core'
import type { Clock, Log, Random, ReputationRules, Service, Storage } from '@impresario/core'
import type { JobCreation } from '../job/job-creation.ts'
import type { KeyBook } from '../job/key-book.ts'
import type { Dispatcher } from '../workers/dispatcher.ts'
import { HealthChecker } from './health-checker.ts'
import { Leadership } from '../service/leadership.ts'
import type { LedService } from '../service/leadership.ts'
import { Reputation } from './reputation.ts'
import type { WorkerMoment } from '../workers/roster.ts'
import { Scheduler } from './scheduler.ts'

export interface BackgroundSettings {
  /** How long an instance leads a background process without renewing its lead. */
  readonly leaderLeaseMs: number
  /** The record of a worker that has been silent for so long is removed. */
  readonly workerForgetMs: number
  /** How often reputations are worked out from what became of the workers' tasks. */
  readonly reputationMs: number
  /** How long what became of tasks is gathered in memory before it is written to the workers' standing. */
  readonly reputationFlushMs: number
  readonly reputationRules: ReputationRules
}

export const BACKGROUND_DEFAULTS: BackgroundSettings = {
  leaderLeaseMs: 15_000,
  workerForgetMs: 86_400_000,
  reputationMs: 3_600_000,
  reputationFlushMs: 5_000,
  reputationRules: REPUTATION_RULES,
}

export interface BackgroundOptions {
  readonly storage: Storage
  readonly creation: JobCreation
  readonly dispatcher: Dispatcher
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly keys: KeyBook
  readonly settings: BackgroundSettings
  /** Gets what happens to workers, for the history. */
  readonly onMoment?: ((moment: WorkerMoment) => void) | undefined
  /** Further processes of which one runs in the whole cluster. */
  readonly led?: readonly LedService[] | undefined
}

/** What goes on without being asked, most of it on one instance for the whole cluster. */
export interface Background {
  readonly scheduler: Scheduler
  readonly reputation: Reputation
  readonly leadership: Leadership
  /** To be started in this order, after everything else. */
  readonly services: readonly Service[]
}

export function createBackground(options: BackgroundOptions): Background {
  const { storage, creation, dispatcher, clock, random, log, keys, settings, onMoment } = options
  const reputation = new Reputation({
    storage,
    clock,
    log,
    rules: settings.reputationRules,
    flushMs: settings.reputationFlushMs,
    judgeMs: settings.reputationMs,
    // Only who is here already: a score is no sign of life.
    onScored: (worker) => {
      if (dispatcher.worker(worker.id) !== undefined) dispatcher.put(worker)
      onMoment?.({ at: clock.now(), event: 'reputation', worker })
    },
  })
  const onReplaced = (): void => leadership.wake('scheduler')
  const scheduler = new Scheduler({ storage, creation, clock, random, log, keys, onReplaced })
  const healthChecker = new HealthChecker({
    storage,
    clock,
    log,
    forgetMs: settings.workerForgetMs,
    onForgotten: (worker) => {
      dispatcher.remove(worker.id)
      onMoment?.({ at: clock.now(), event: 'removed', worker })
    },
  })
  const services = [scheduler, reputation.judge, healthChecker, ...(options.led ?? [])]
  const leadership = new Leadership({ storage, clock, log, services, leaseMs: settings.leaderLeaseMs })
  return { scheduler, reputation, leadership, services: [reputation, leadership] }
}
