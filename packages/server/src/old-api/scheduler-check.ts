import type { Clock, Storage } from '@impresario/core'

/** One part of the server and how it is. */
export interface Check {
  readonly name: 'api' | 'database' | 'redis' | 'workers' | 'scheduler'
  readonly status: 'healthy' | 'degraded' | 'unhealthy'
  readonly message: string
  readonly durationMs: number
  readonly details: Readonly<Record<string, unknown>>
}

export interface SchedulerCheckOptions {
  readonly storage: Pick<Storage, 'lanes'>
  readonly clock: Clock
  readonly automations: { readonly lookedAt: number | undefined }
}

const LATE_SECONDS = 60
const DEAD_SECONDS = 300
/** A storage counts exactly up to ten for each lane, so this many mean several owners. */
const OVERDUE_MAX = 50

/**
 * Whether due runs are started: by when this process looked for them last, and by how many wait. A scheduler that has stopped
 * is noticed even when nothing is due.
 */
export async function schedulerCheck({ storage, clock, automations }: SchedulerCheckOptions): Promise<Check> {
  const began = clock.now()
  const lanes = await storage.lanes('firings')
  const overdue = lanes.reduce((sum, { ready }) => sum + ready, 0)
  const { lookedAt } = automations
  const silentSeconds = lookedAt === undefined ? undefined : Math.max(0, (clock.now() - lookedAt) / 1_000)
  const details = { overdue, seconds_since_last_look: silentSeconds ?? null }
  const base = { name: 'scheduler', durationMs: clock.now() - began, details } as const
  if (silentSeconds === undefined || silentSeconds > DEAD_SECONDS) {
    return { ...base, status: 'unhealthy', message: 'The scheduler of this process does not look for due runs.' }
  }
  if (silentSeconds > LATE_SECONDS || overdue > OVERDUE_MAX) {
    return { ...base, status: 'degraded', message: 'Due runs wait for the scheduler.' }
  }
  return { ...base, status: 'healthy', message: 'Due runs are started in time.' }
}
